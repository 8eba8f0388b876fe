"""The Painel and its parts."""

from django.urls import path

from dashboard.views import painel

urlpatterns = [
    path("", painel.overview, name="painel"),
    path("partes/veredito", painel.verdict_part, name="painel-veredito"),
    path("partes/atencao", painel.attention_part, name="painel-atencao"),
    path("partes/faixa", painel.strip_part, name="painel-faixa"),
    path("partes/ritmo", painel.rhythm_part, name="painel-ritmo"),
    path("partes/quadro", painel.board_part, name="painel-quadro"),
]
