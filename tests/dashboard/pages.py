"""The screens of somebody who has signed in with the key, and their words."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.cache import cache
from django.test import Client

from dashboard import shared
from jobs import health
from tests.api.client import KEY


@contextmanager
def signed_in() -> Iterator[Client]:
    """A browser that reads English; nothing is remembered from before, and nothing afterwards."""
    cache.clear()
    health.forget()
    shared.forget()
    client = Client(headers={"Accept": "text/html", "Accept-Language": "en"})
    client.post("/entrar", {"chave": KEY})
    yield client
    shared.forget()


def text(html: str) -> str:
    """The words, without markup."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))
