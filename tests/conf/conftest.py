import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.conf import Settings, load


@pytest.fixture
def read(monkeypatch, tmp_path) -> Callable[..., Settings]:
    """Load the settings from this text as the file and these variables, and from nothing else."""
    for name in list(os.environ):
        if name.startswith("TURNO_") or name in {"DATABASE_URL", "JOBS_DATABASE_URL"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("TURNO_LANG", "en")
    path: Path = tmp_path / "turno.toml"

    def read(file: str | bytes = "", **variables: str) -> Settings:
        path.write_bytes(file if isinstance(file, bytes) else file.encode())
        monkeypatch.setenv("TURNO_CONFIG", str(path))
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return load()

    return read
