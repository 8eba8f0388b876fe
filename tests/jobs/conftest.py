"""Acts over many, with and without the threads that do them."""

import pytest

from jobs import bulk


@pytest.fixture
def quiet(clean_tables, monkeypatch):
    """Committed rows, and no thread: the test itself takes runs and does their batches."""
    monkeypatch.setattr(bulk.crew, "wake", lambda: None)
