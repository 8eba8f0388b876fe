"""Answers that a test puts on a shelf of the web process, to be fetched as any page: real HTTP, real headers."""

import http.client
import json
from typing import Any

SHELF = "/-/shelf/"
_answers: dict[str, dict[str, Any]] = {}


async def serve(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """In the web process: PUT lays an answer down, GET fetches it."""
    name = scope["path"].removeprefix(SHELF)
    if scope["method"] == "PUT":
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        _answers[name] = json.loads(body)
        answer: dict[str, Any] = {"status": 204}
    else:
        answer = _answers.get(name, {"status": 404})
    headers = {"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store"} | answer.get("headers", {})
    raw = [(key.lower().encode(), str(value).encode()) for key, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.get("status", 200), "headers": raw})
    await send({"type": "http.response.body", "body": answer.get("body", "").encode()})


def put(port: int, name: str, body: str, *, status: int = 200, headers: dict[str, str] | None = None) -> None:
    """In the test: lay an answer down for the web process on that port."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("PUT", SHELF + name, json.dumps({"status": status, "headers": headers or {}, "body": body}))
        assert connection.getresponse().status == 204
    finally:
        connection.close()
