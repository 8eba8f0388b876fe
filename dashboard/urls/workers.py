"""The workers: the list, one of them, and their live parts."""

from django.urls import path

from dashboard.views import workers

urlpatterns = [
    path("workers", workers.page, name="workers"),
    path("workers/<uuid:id>", workers.one, name="worker"),
    path("partes/workers", workers.part, name="workers-lista"),
    path("partes/workers/<uuid:id>", workers.one_part, name="worker-agora"),
]
