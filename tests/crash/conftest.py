"""Whatever was killed, frozen or cut off: what always holds holds at the end of each test too."""

import pytest

from jobs import invariants


@pytest.fixture(autouse=True)
def promises_kept(clean_tables):
    """After the test, whose processes have ended by then, before its rows are deleted: no promise is broken.

    What only holds soon is not asked, since nobody leads any more.
    """
    yield
    assert [str(broken) for broken in invariants.check(whole=True, margin=0, attended=False)] == []
