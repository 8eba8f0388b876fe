"""The supervisor is small: no Django, no thread, little memory."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.processes import PROJECT
from tests.supervisor.stand_in import SEVERAL, StandIn
from workers import tree

HEAVY = (
    "django", "jobs", "orjson", "pydantic", "psycopg", "asyncio", "threading", "logging", "subprocess", "dataclasses",
    "inspect",
)  # fmt: skip
MOST_MEMORY = 20 * 1024  # KiB


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_it_imports_neither_django_nor_any_other_program_of_ours():
    code = "import sys, workers.supervision.door; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert [name for name in done.stdout.split() if name.partition(".")[0] in HEAVY] == []


@pytest.mark.crash
def test_it_has_one_thread_and_little_memory(over: StandIn):
    over.start("introduce(); say(protocol.ready()); mark('ready'); forever()")
    over.marked("ready")
    status = _status(over.pid)
    assert status["Threads"] == "1"
    assert int(status["VmRSS"].split()[0]) < MOST_MEMORY


@pytest.mark.crash
def test_so_has_each_of_several(over: StandIn):
    over.env["COUNT"] = "2"
    over.start("introduce(); say(protocol.ready()); mark('ready'); forever()", SEVERAL)
    over.marked("ready", 2)
    for pid in (over.pid, *tree.children(over.pid)):
        assert int(_status(pid)["VmRSS"].split()[0]) < MOST_MEMORY
