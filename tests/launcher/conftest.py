"""Folders that a service user can reach, and stand-in projects."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launcher.stand_in import StandIn
from turno.launcher import say
from turno.launcher.postgres import QUICK, PrivatePostgres


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The launcher speaks English here, whatever the machine's language."""
    monkeypatch.setenv("TURNO_LANG", "en")
    say._catalogue.cache_clear()
    yield
    say._catalogue.cache_clear()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder outside pytest's own, which only this user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="turno-launcher-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def server(open_folder: Path) -> Iterator[PrivatePostgres]:
    """A private server that is not started yet."""
    found = PrivatePostgres(open_folder / "postgres", options=QUICK)
    yield found
    found.stop("immediate")


@pytest.fixture
def stand_in(open_folder: Path) -> Iterator[StandIn]:
    """A project of a few lines around the real launcher."""
    project = StandIn(open_folder)
    yield project
    project.close()
