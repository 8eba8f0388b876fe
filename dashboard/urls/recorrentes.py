"""Recurring jobs: the list, its live parts, the editor, what people do to one."""

from django.urls import path

from dashboard.views import recorrente, recorrentes

urlpatterns = [
    path("recorrentes", recorrentes.page, name="recorrentes"),
    path("recorrentes/nova", recorrente.new, name="recorrente-nova"),
    path("recorrentes/previa", recorrente.preview, name="recorrente-previa"),
    path("recorrentes/<uuid:id>", recorrente.edit, name="recorrente"),
    path("recorrentes/<uuid:id>/disparar", recorrentes.trigger, name="recorrente-disparar"),
    path("recorrentes/<uuid:id>/ativar", recorrentes.enable, name="recorrente-ativar"),
    path("recorrentes/<uuid:id>/desativar", recorrentes.disable, name="recorrente-desativar"),
    path("recorrentes/<uuid:id>/excluir", recorrentes.delete, name="recorrente-excluir"),
    path("partes/recorrentes", recorrentes.part, name="recorrentes-lista"),
    path("partes/recorrentes/<uuid:id>/cabeca", recorrente.head, name="recorrente-cabeca"),
    path("partes/recorrentes/<uuid:id>/detalhe", recorrentes.detail, name="recorrente-detalhe"),
]
