"""The admin as a signed-in browser sees it."""

import pytest
from django.core.cache import cache

from tests.kit.people import signed_in


@pytest.fixture(autouse=True)
def _english(settings):
    settings.LANGUAGE_CODE = "en"
    cache.clear()


@pytest.fixture
def root(db):
    """A superuser's browser."""
    return signed_in("raiz", is_staff=True, is_superuser=True)
