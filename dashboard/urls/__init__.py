"""The pages: what stands at which address, one file a screen. Verbs are resources: what acts is a POST of its own."""

from django.urls import include, path

SCREENS = ("app", "painel", "tarefas", "tarefa", "workers", "erros", "lotes", "recorrentes", "filas", "promessas")

urlpatterns = [
    path("", include("dashboard.urls.entry")),
    path("", include("dashboard.urls.live")),
    *(path("painel/", include(f"dashboard.urls.{screen}")) for screen in SCREENS),
]
