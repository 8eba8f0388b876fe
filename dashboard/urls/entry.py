"""The door: in, out, and the root."""

from django.urls import path
from django.views.generic import RedirectView

from dashboard.views import entry

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="painel", query_string=True), name="home"),
    path("entrar", entry.sign_in, name="sign-in"),
    path("sair", entry.sign_out, name="sign-out"),
]
