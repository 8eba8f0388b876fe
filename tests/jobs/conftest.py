"""Acts over many, with and without the threads that do them."""

import pytest

from jobs import bulk


@pytest.fixture
def quiet(clean_tables, monkeypatch):
    """Committed rows, and no thread: the test itself takes runs and does their batches."""
    monkeypatch.setattr(bulk.crew, "wake", lambda: None)


@pytest.fixture
def crew(clean_tables):
    """Committed rows and the threads of this process, which have ended when the test ends."""
    yield bulk.crew
    bulk.crew.join()
