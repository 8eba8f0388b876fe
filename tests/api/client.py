"""A small client over Django's own: the key in its header, JSON in and out."""

import json
from typing import Any

from django.conf import settings
from django.test import Client

KEY = settings.CONF.api.key
PROBLEM = "application/problem+json"


class Answer:
    """A response with its JSON read."""

    def __init__(self, response: Any) -> None:
        self.response = response
        self.status = response.status_code
        self.headers = response.headers
        self.json = json.loads(response.content) if response.content else None

    def problem(self, status: int) -> dict[str, Any]:
        """The members of a problem, after checking that it is one and of this status."""
        assert self.status == status, (self.status, self.json)
        assert self.headers["Content-Type"] == PROBLEM
        assert self.json["status"] == status
        assert {"title", "detail", "instance", "code"} <= self.json.keys()
        return self.json


class Api:
    """`key` goes in X-Turno-Key; None sends none."""

    def __init__(self, key: str | None = KEY, **defaults: Any) -> None:
        self.client = Client(raise_request_exception=False, **defaults)
        self.key = key

    def ask(self, method: str, path: str, raw: bytes | str = b"", content_type: str = "", **headers: str) -> Answer:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.key is not None:
            given.setdefault("X-Turno-Key", self.key)
        data = raw.encode() if isinstance(raw, str) else raw
        response = self.client.generic(method, path, data, content_type or "application/octet-stream", headers=given)
        return Answer(response)

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def delete(self, path: str) -> Answer:
        return self.ask("DELETE", path)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        raw = b"" if body is None else json.dumps(body).encode()
        return self.ask("POST", path, raw, "application/json", **headers)

    def send(self, raw: bytes | str, content_type: str = "application/json", **headers: str) -> Answer:
        """POST /api/jobs with a body as it is."""
        return self.ask("POST", "/api/jobs", raw, content_type, **headers)

    def enqueue(self, type_: str = "test.any", **fields: Any) -> str:
        """Enqueue a job and return its id."""
        answer = self.post("/api/jobs", {"type": type_, **fields})
        assert answer.status == 201, answer.json
        return answer.json["id"]
