"""What the running web process says over HTTP."""

import http.client
import json
import urllib.error
import urllib.request
from typing import Any

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback never goes through a proxy


def request(address: str, path: str, *, key: str = "", body: object = None, timeout: float = 5.0) -> tuple[int, Any]:
    """Status and decoded JSON of a request (POST with a body). Raises OSError when nobody answers."""
    headers = {"Accept": "application/json", **({"X-Turno-Key": key} if key else {})}
    data = None
    if body is not None:
        data = json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
    asked = urllib.request.Request(address + path, data=data, headers=headers)  # noqa: S310
    try:
        with _direct.open(asked, timeout=timeout) as answer:
            return answer.status, _decoded(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _decoded(error.read())
    except urllib.error.URLError as error:
        raise ConnectionError(str(error.reason)) from error
    except http.client.HTTPException as error:  # something else listens there, or the answer broke off
        raise ConnectionError(str(error)) from error


def ready(address: str) -> bool:
    """Whether the installation says that it is ready."""
    try:
        return request(address, "/health/ready")[0] == 200
    except (OSError, ValueError):
        return False


def online_workers(address: str, key: str) -> set[tuple[str, int]]:
    """Names and pids of the workers that are online; empty while nobody answers."""
    try:
        status, answer = request(address, "/api/workers", key=key)
    except (OSError, ValueError):
        return set()
    if status != 200 or not isinstance(answer, dict):
        return set()
    return {(item["name"], item["pid"]) for item in answer["items"] if item["state"] == "Online"}


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")
