"""The sockets' addresses."""

from django.urls import path

from dashboard.live.sockets import JobsSocket, PanelSocket

websocket_urlpatterns = [
    path("hubs/painel", PanelSocket.as_asgi()),
    path("hubs/jobs", JobsSocket.as_asgi()),
]
