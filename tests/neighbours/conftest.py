"""A run folder and processes of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.conf import overridden
from tests.neighbours.stand_ins import Processes
from tests.transitions.rows import empty_tables, execute


@pytest.fixture
def run_dir(tmp_path: Path) -> Iterator[Path]:
    """The run folder that the configuration of this process names."""
    folder = tmp_path / "run"
    folder.mkdir()
    with overridden(worker={"run_dir": str(folder)}):
        yield folder


@pytest.fixture
def processes(tmp_path: Path, run_dir: Path) -> Iterator[Processes]:
    """Starts processes in the place of workers; what is left of them is ended with the test."""
    started = Processes(tmp_path, run_dir)
    yield started
    started.close()


@pytest.fixture
def committed(transactional_db: None) -> Iterator[None]:
    """Rows are committed and visible to every connection; deleted afterwards."""
    yield
    empty_tables()
    execute("DELETE FROM turno.workers")
    execute("DELETE FROM turno.leases")
