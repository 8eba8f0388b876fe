"""Acts over many."""

from django.urls import URLPattern, path

from dashboard.views import lotes

urlpatterns: list[URLPattern] = [
    path("lotes", lotes.start, name="lote-iniciar"),
    path("lotes/previa", lotes.preview, name="lote-previa"),
    path("lotes/<uuid:id>", lotes.status, name="lote"),
    path("lotes/<uuid:id>/parar", lotes.stop, name="lote-parar"),
]
