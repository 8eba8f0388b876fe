import pytest

from tests.database.scratch import scratch_database


@pytest.fixture
def scratch():
    """The address of an empty database of this test's own."""
    with scratch_database() as url:
        yield url
