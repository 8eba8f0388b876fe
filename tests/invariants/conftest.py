"""One house for a file of tests; what a test spoils in it is undone."""

import pytest
from django.db import transaction

from tests.invariants.house import build


@pytest.fixture(scope="module")
def built(django_db_setup, django_db_blocker):
    """The house, in a transaction of its own that is rolled back after the file."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield build()
        transaction.set_rollback(True)


@pytest.fixture
def house(built, db):
    """The jobs of the house by what they are."""
    with transaction.atomic():
        yield built
        transaction.set_rollback(True)
