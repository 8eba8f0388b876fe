"""What handlers of a real worker put into the background: whose it is, and who ends it."""

import os
import signal
from pathlib import Path

import pytest

import tests.kit.handlers
import tests.supervisor.handlers  # noqa: F401
from jobs.enqueue import enqueue
from jobs.states import State
from tests.kit.look import attempts, job, started, wait_state
from tests.kit.processes import Fleet, WorkerProcess, eventually
from workers import marks, tree

pytestmark = pytest.mark.crash


@pytest.fixture
def own(fleet: Fleet) -> Fleet:
    """Its workers know the handlers of this folder."""
    fleet.env["TURNO_HANDLERS"] = '["tests.supervisor.handlers", "tests.kit.handlers"]'
    return fleet


def _told(path: Path, count: int) -> list[int]:
    return eventually(
        lambda: path.exists() and len(found := path.read_text().split()) >= count and list(map(int, found)),
        f"{count} pids in {path.name}",
        40,
    )


def _kill_at_once(pids: list[int]) -> None:
    """None of them sees another one die."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, number)


@pytest.mark.parametrize("kind", ["async", "thread"])
def test_a_program_that_a_handler_in_the_worker_puts_into_the_background_lives_until_the_workers_end(own, kind):
    worker = own.start().wait_ready()
    tell = own.folder / "pids"
    id_ = enqueue(f"background.{kind}", {"tell": str(tell)}).id
    kept, bare = _told(tell, 2)
    eventually(lambda: not tree.alive(bare), "the supervisor has looked, and ended what carries no marker")
    wait_state(id_, "Succeeded")
    assert tree.alive(kept)
    ignored = int(next(x for x in Path(f"/proc/{kept}/status").read_text().splitlines() if "SigIgn" in x)[8:], 16)
    assert not ignored >> (signal.SIGTTOU - 1) & 1
    worker.signal(signal.SIGTERM)
    assert worker.wait(120) == 0
    assert not tree.alive(kept)


def test_what_children_left_whose_forkserver_died_with_them_is_found_under_the_first_and_under_later_ones(own):
    worker = own.start().wait_ready()
    tell = own.folder / "pids"
    id_ = enqueue("background.process", {"tell": str(tell), "hold": 600}).id
    for execution in (1, 2):
        left = _told(tell, 2 * execution)[-2:]
        [child] = tree.children(server := worker.forkserver())
        assert {pid for pid in left if tree.alive(pid)} == set(left) <= set(tree.descendants(child))
        _kill_at_once([child, server])
        eventually(lambda n=execution: len(attempts(id_)) == n, "the loss is written")
        assert attempts(id_)[-1][1] == "WorkerLost"
        assert not [pid for pid in left if tree.alive(pid)], "it was found before the end was told"
    assert len(worker.events("worker.ready")) == 1


def test_a_daemon_without_descriptors_is_found_after_all_above_it_were_killed_at_once(own):
    worker, neighbour = own.start("a").wait_ready(), own.start("b", "other:1").wait_ready()
    tell = own.folder / "pids"
    id_ = enqueue("background.process", {"tell": str(tell), "hold": 600}).id
    left = _told(tell, 2)
    id_of_worker = str(job(id_).worker_id)
    assert worker.events("worker.ready")[0]["id"] == id_of_worker
    for pid in left:
        assert f"TURNO_WORKER_ID={id_of_worker}".encode() in marks.environment(pid)
    _kill_at_once([worker.supervisor_pid, *(pid for pid in worker.tree() if pid not in left)])
    assert all(tree.alive(pid) for pid in left)
    eventually(lambda: job(id_).state != State.PROCESSING, "the neighbour takes it back")
    assert not [pid for pid in left if tree.alive(pid)]
    eventually(lambda: neighbour.events("worker.taken_back"), "it says worker.taken_back")


def test_a_worker_whose_line_is_closed_by_a_handler_ends_and_is_replaced(own):
    worker = own.start().wait_ready()
    enqueue("background.line", {"tell": ""})
    worker.wait_ready(2)
    eventually(lambda: worker.events("supervisor.gone"), "it says supervisor.gone")
    assert worker.events("supervisor.worker_ended")[0]["code"] == 1


def test_a_worker_whose_end_breaks_is_gone_at_once_though_a_handler_runs_on(own):
    worker = own.start("a", "default:4", "--shutdown-timeout", "200ms", PROBE_BROKEN_END="1").wait_ready()
    id_ = enqueue("probe.thread", {"key": "deaf", "spin": 600}).id
    started(own, "deaf")
    worker.signal(signal.SIGTERM)
    assert worker.wait(120) == 1
    eventually(lambda: worker.events("worker.failed"), "it says worker.failed")
    wait_state(id_, "Enqueued")


def test_a_stop_while_the_database_is_awaited_is_no_fault_and_leaves_nothing(own):
    worker: WorkerProcess = own.start("a", TURNO_DATABASE__URL="postgresql://nobody@127.0.0.1:9/turno")
    eventually(lambda: worker.events("worker.waiting"), "it waits for the database")
    [waits] = [event["pid"] for event in worker.events("supervisor.worker_started")]
    assert not tree.descendants(waits), "what is shared with children is complete before they are forked"
    worker.signal(signal.SIGTERM)
    assert worker.wait(120) == 0
    assert worker.events("supervisor.worker_ended")[0]["code"] == 0
    assert not worker.events("supervisor.killed"), "nothing was left of it"
    assert not [event for event in worker.events() if event["level"] in ("error", "critical")]
    assert not list((own.folder / "run").glob("*.lock"))
