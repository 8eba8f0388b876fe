"""What every test may use."""

import pytest
from django.db import connections

from tests.kit.processes import fleet_of

OUR_TABLES = "SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') FROM pg_tables WHERE schemaname = 'turno'"


@pytest.fixture
def clean_tables(transactional_db):
    """For tests whose rows are committed (threads, processes): empties our tables afterwards.

    Django's own flush sees only tables on the search_path; ours stand in the schema `turno`.
    """
    yield
    with connections["default"].cursor() as cursor:
        cursor.execute(OUR_TABLES)
        cursor.execute(f"TRUNCATE {cursor.fetchone()[0]} CASCADE")


@pytest.fixture
def fleet(clean_tables, tmp_path):
    """Real workers on the test database; what they started is ended with the test."""
    yield from fleet_of(tmp_path)
