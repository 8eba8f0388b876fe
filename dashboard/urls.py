"""The pages: what stands at which address."""

from django.urls import path

from dashboard.views import entry, status

urlpatterns = [
    path("", status.home, name="home"),
    path("entrar", entry.sign_in, name="sign-in"),
    path("sair", entry.sign_out, name="sign-out"),
]
