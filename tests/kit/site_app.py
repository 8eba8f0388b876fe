"""The ASGI application that browser tests are served: the product's own, and two addresses for the tests.

FORGET drops what the web process keeps in memory (shared figures, counted wrong keys), as if it had just started: a new
process for each test would cost seconds. STATEMENTS answers how often each statement ran since it was last asked.
`SHELF` has what a test has put there (`tests.kit.shelf`).
"""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from django.core.cache import cache
from django.db.backends.signals import connection_created

from dashboard import shared
from tests.kit import shelf
from tests.kit.site import FORGET, STATEMENTS
from turno.asgi import application as turno

statements: Counter[str] = Counter()


def _count(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
    statements[sql] += 1
    return execute(sql, *rest)


def _listen(connection: Any, **_signal: Any) -> None:
    if _count not in connection.execute_wrappers:
        connection.execute_wrappers.append(_count)


connection_created.connect(_listen)


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """The product's application, behind the tests' own addresses."""
    if scope["type"] == "http" and scope["path"] in {FORGET, STATEMENTS}:
        body = b""
        if scope["path"] == FORGET:
            shared.forget()
            cache.clear()
        else:
            body = json.dumps(statements).encode()
            statements.clear()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": body})
        return
    if scope["type"] == "http" and scope["path"].startswith(shelf.SHELF):
        await shelf.serve(scope, receive, send)
        return
    await turno(scope, receive, send)
