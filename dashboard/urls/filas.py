"""The queues: the list, one of them, what is paused, and the live parts of both pages."""

from django.urls import URLPattern, path, re_path

from dashboard.views import filas

QUEUE = r"(?P<queue>[a-z0-9._-]{1,100})"

urlpatterns: list[URLPattern] = [
    path("filas", filas.page, name="filas"),
    re_path(rf"^filas/{QUEUE}$", filas.one, name="fila"),
    re_path(rf"^filas/{QUEUE}/ajustes$", filas.settings, name="fila-ajustes"),
    path("pausas", filas.pause, name="pausar"),
    path("pausas/retomar", filas.resume, name="retomar"),
    path("partes/filas", filas.part, name="filas-lista"),
    path("partes/filas/exclusao", filas.flow_part, name="filas-exclusao"),
    re_path(rf"^partes/filas/{QUEUE}/agora$", filas.one_part, name="fila-agora"),
]
