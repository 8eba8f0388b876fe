"""What stands at a socket's address for plain HTTP."""

from django.urls import path

from dashboard.views import live

urlpatterns = [path("hubs/painel", live.hub, name="hub")]
