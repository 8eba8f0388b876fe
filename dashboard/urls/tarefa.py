"""One job: its page, its live parts, its log, what people do to it."""

from django.urls import path

from dashboard.views import joblog, tarefa

urlpatterns = [
    path("tarefas/<uuid:id>", tarefa.page, name="tarefa"),
    path("tarefas/<uuid:id>/log", joblog.lines, name="tarefa-log"),
    path("tarefas/<uuid:id>/log.txt", joblog.download, name="tarefa-log-arquivo"),
    path("tarefas/<uuid:id>/cancelar", tarefa.cancel, name="tarefa-cancelar"),
    path("tarefas/<uuid:id>/reenfileirar", tarefa.requeue, name="tarefa-reenfileirar"),
    path("tarefas/<uuid:id>/executar-agora", tarefa.run_now, name="tarefa-executar"),
    path("tarefas/<uuid:id>/excluir", tarefa.delete, name="tarefa-excluir"),
    path("partes/tarefas/<uuid:id>/agora", tarefa.now_part, name="tarefa-agora"),
    path("partes/tarefas/<uuid:id>/estado", tarefa.state_part, name="tarefa-estado"),
]
