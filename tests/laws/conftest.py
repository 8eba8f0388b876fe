"""Committed rows, emptied after each test."""

import pytest

from tests.transitions.rows import empty_tables, execute


@pytest.fixture
def committed(transactional_db):
    """Rows are committed and visible to every connection; deleted afterwards."""
    yield
    empty_tables()
    for table in ("circuits", "workers"):
        execute(f"DELETE FROM turno.{table}")
