"""The promises and their live part."""

from django.urls import path

from dashboard.views import promessas

urlpatterns = [
    path("promessas", promessas.page, name="promessas"),
    path("partes/promessas", promessas.part, name="promessas-agora"),
]
