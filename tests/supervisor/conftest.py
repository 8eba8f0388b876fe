"""A supervisor over a worker of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.supervisor.stand_in import StandIn


@pytest.fixture
def over(tmp_path: Path) -> Iterator[StandIn]:
    found = StandIn(tmp_path)
    yield found
    found.close()
