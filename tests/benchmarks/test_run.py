"""`python -m benchmarks`, run as a person would, at a scale that takes seconds: what it starts, measures and says."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.plan import FIGURES, LONG
from benchmarks.targets import TARGETS
from tests.kit.processes import PROJECT
from workers import tree

PATIENCE = 1800.0  # seconds; far more than it takes


def run(folder: Path, *arguments: str) -> tuple[list[dict[str, Any]], str]:
    """The JSON lines, and the tables; fails when a side failed."""
    lines = folder / "lines.json"
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        *arguments,
        "--repeat",
        "1",
        "--scale",
        "smoke",
        "--json",
        str(lines),
    ]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in lines.read_text().splitlines()], done.stdout


def of(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The lines of one kind."""
    return [line for line in lines if line["kind"] == kind]


@pytest.mark.slow
def test_a_drain_of_the_embedded_profile_is_measured_on_servers_of_its_own_and_leaves_nothing_behind(tmp_path):
    lines, tables = run(tmp_path, "drain", "enqueue", "--sides", "turno")

    [machine], [end] = of(lines, "machine"), of(lines, "end")
    turns = {line["figure"]: line for line in of(lines, "turn")}
    assert machine["cores"] > 0
    assert machine["postgresql"]
    assert turns.keys() == {"drain", "enqueue"}
    drain = turns["drain"]
    assert drain["jobs"] == 300
    assert drain["value"] == pytest.approx(drain["jobs"] / drain["seconds"], rel=0.01)
    assert drain["cpu_us"].keys() == {"workers", "postgres"}
    assert drain["cpu_us"]["workers"] > 0
    assert drain["cpu_us"]["postgres"] > 0
    assert [line["side"] for line in of(lines, "figure")] == ["turno", "turno"]
    assert of(lines, "target") == []  # there is nobody to compare it with
    assert end["failures"] == 0
    assert "workers µs/job" in tables
    folder = machine["folder"]
    assert not Path(folder).exists()
    assert [pid for pid in tree.descendants(1) if folder in command_of(pid)] == []


def command_of(pid: int) -> str:
    """Its command line, empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


@pytest.mark.longo
def test_every_figure_is_measured_on_every_side_peers_included(tmp_path):
    lines, tables = run(tmp_path, "all")

    measured = {(line["figure"], line["side"]) for line in of(lines, "figure")}
    assert measured == {
        (figure.name, side) for figure in FIGURES.values() if figure.name not in LONG for side in figure.sides
    }
    judged = {(line["figure"], line["one"], line["other"]) for line in of(lines, "target")}
    assert judged == {(one.figure, one.one, one.other) for one in TARGETS if one.figure not in LONG}
    assert all(f"{name}: " in tables for name in FIGURES if name not in LONG)
