"""What every screen has: counts in the navigation, the palette, language and zone."""

from django.urls import path

from dashboard.views import app

urlpatterns = [
    path("partes/contagens", app.counts, name="nav-counts"),
    path("partes/achados", app.found, name="palette-found"),
    path("idioma", app.language, name="language"),
    path("fuso", app.zone, name="zone"),
]
