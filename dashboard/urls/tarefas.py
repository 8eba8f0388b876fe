"""The list of jobs, the parts of it that refresh, and its export."""

from django.urls import path

from dashboard.views import export, tarefas

urlpatterns = [
    path("tarefas", tarefas.page, name="tarefas"),
    path("tarefas.csv", export.as_csv, name="tarefas-csv"),
    path("tarefas.json", export.as_json, name="tarefas-json"),
    path("partes/tarefas/abas", tarefas.tabs, name="tarefas-abas"),
    path("partes/tarefas/novas", tarefas.new, name="tarefas-novas"),
    path("partes/tarefas/linhas", tarefas.lines, name="tarefas-linhas"),
    path("partes/tarefas/quantas", tarefas.number, name="tarefas-quantas"),
]
