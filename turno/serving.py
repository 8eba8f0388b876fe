"""How the house meets an ASGI server: what Django's own handler answers with a traceback is answered like all else."""

from typing import Any

from django.core.exceptions import BadRequest
from django.core.handlers.asgi import ASGIHandler


class Handler(ASGIHandler):
    """A Content-Type that can't be read counts as none, so that the request is judged, and refused, like any other."""

    def create_request(self, scope: dict[str, Any], body_file: Any) -> Any:
        """Django's, which lets the error of that one header out of the application."""
        try:
            return super().create_request(scope, body_file)
        except BadRequest:
            headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-type"]
            return super().create_request({**scope, "headers": headers}, body_file)


async def refuse_websocket(_scope: Any, receive: Any, send: Any) -> None:
    """Where no socket is: the handshake is answered with 403."""
    await receive()
    await send({"type": "websocket.close"})
