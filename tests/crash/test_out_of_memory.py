"""The kernel's own out-of-memory kill, in a memory group of the test's own: only the hungry job is lost."""

import signal
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest

import tests.kit.beats
import tests.kit.deaths
import tests.kit.handlers  # noqa: F401
from jobs.enqueue import enqueue
from tests.kit.look import attempts, started, wait_state
from tests.kit.processes import eventually

pytestmark = pytest.mark.crash
ROOT = Path("/sys/fs/cgroup")
ROOM = 512 << 20  # bytes


def own_group():
    """The folder of this process's memory group and the name of its limit: of the first version, else the second."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    groups = {names: path.lstrip("/") for _, names, path in (line.split(":", 2) for line in lines)}
    if "memory" in groups:
        return ROOT / "memory" / groups["memory"], "memory.limit_in_bytes"
    return ROOT / groups.get("", ""), "memory.max"


@pytest.fixture
def narrow():
    """A memory group with room for ROOM bytes; puts processes into it. Skips where none can be made."""
    parent, limit = own_group()
    group = parent / f"turno-{uuid4().hex}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no memory group can be made here: {error}")
    try:
        (group / limit).write_text(str(ROOM))
    except OSError as error:
        group.rmdir()
        pytest.skip(f"no memory group can be limited here: {error}")

    def put(pids):
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))

    yield put
    for pid in (group / "cgroup.procs").read_text().split():
        with suppress(OSError):
            (parent / "cgroup.procs").write_text(pid)
    group.rmdir()


def test_a_handler_that_takes_more_memory_than_there_is_is_lost_alone(fleet, narrow):
    fleet.env["TURNO_HANDLERS"] = '["tests.kit.handlers", "tests.kit.deaths"]'
    worker = fleet.start("a", "default:4").wait_ready()
    narrow([worker.supervisor_pid, *worker.tree()])
    neighbours = [enqueue(type_, {"key": type_, "hold": 4}).id for type_ in ("probe.async", "probe.process")]
    started(fleet, "probe.process")
    id_ = enqueue("deaths.process", {"key": "hungry", "mebibytes": 2048, "hold": 60}, max_attempts=1).id
    dead = wait_state(id_, "Failed", 60)
    assert (dead.failure_kind, attempts(id_)) == ("worker_lost", [(1, "WorkerLost", True)])
    assert (dead.attempts.get().signal, "9 (SIGKILL)" in dead.error_message) == (signal.SIGKILL, True)
    for neighbour in neighbours:
        done = wait_state(neighbour, "Succeeded", 60)
        assert (done.lost_count, attempts(neighbour)) == (0, [(1, "Succeeded", True)])
    wait_state(enqueue("probe.process", {"key": "next"}).id, "Succeeded", 60)
    assert len(worker.events("worker.ready")) == 1
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    eventually(lambda: not fleet.living("a"), "nothing of it is left")
