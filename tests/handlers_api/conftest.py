"""Job types that a test declares are gone after it."""

import pytest

from turno.testing import temporary_types


@pytest.fixture(autouse=True)
def types():
    with temporary_types() as catalogue:
        yield catalogue
