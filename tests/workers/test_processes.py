"""Real workers run plain handlers in child processes: losses, time limits, cancels, stops, as the tables tell them."""

import os
import signal

import pytest

import tests.isolation.handlers
import tests.kit.handlers  # noqa: F401
from jobs import transitions
from jobs.enqueue import enqueue
from jobs.models import JobLog, Worker
from tests.isolation.house import gone, told
from tests.kit.look import attempts, job, started, steps, wait_state
from tests.kit.processes import eventually
from workers import tree

pytestmark = pytest.mark.crash
HANDLERS = {"TURNO_HANDLERS": '["tests.kit.handlers", "tests.isolation.handlers"]'}


def test_a_plain_handler_runs_in_a_process_of_its_own_and_says_what_it_does(fleet):
    fleet.start(**HANDLERS).wait_ready()
    done = wait_state(enqueue("iso.talk", {"lines": 3, "steps": 4, "size": 10}).id, "Succeeded")
    assert done.result == {"text": "é" * 10, "folder": ""}
    assert (done.progress, done.stage) == (100, "step 3")
    lines = JobLog.objects.filter(job_id=done.id).order_by("number").values_list("number", "message")
    assert list(lines) == [(n + 1, f"line {n} ?  é") for n in range(3)]
    look = wait_state(enqueue("iso.look").id, "Succeeded").result
    assert look["session"] == look["pid"] != Worker.objects.get(name="a").pid
    attempt = job(done.id).attempts.get()
    assert attempt.peak_memory > 1024**2
    assert (attempt.exit_code, attempt.signal) == (None, None)


@pytest.mark.parametrize("tries", [2, 3])
def test_a_job_that_always_gets_its_process_killed_ends_failed_and_costs_no_other(fleet, tmp_path, tries):
    worker = fleet.start(TURNO_RESILIENCE__BACKOFF_BASE="50ms", **HANDLERS).wait_ready()
    pid = Worker.objects.get(name="a").pid
    neighbour = enqueue("probe.process", {"key": "neighbour", "hold": 1.5}).id
    started(fleet, "neighbour")
    starts = tmp_path / "starts"
    id_ = enqueue("iso.end", {"how": "signal", "signal": 9, "tell": str(starts)}, max_attempts=tries).id
    dead = wait_state(id_, "Failed")
    assert attempts(id_) == [(n + 1, "WorkerLost", True) for n in range(tries)]
    assert (dead.failure_kind, dead.error_type, dead.lost_count) == ("worker_lost", "WorkerLost", tries)
    assert "9 (SIGKILL)" in dead.error_message
    assert len(told(starts, tries)) == tries
    assert [a.signal for a in dead.attempts.all()] == [9] * tries
    assert steps(id_)[3] == ("Enqueued", "Processing", "claimed")
    wait_state(neighbour, "Succeeded")
    assert attempts(neighbour) == [(1, "Succeeded", True)]
    assert Worker.objects.get(name="a").pid == pid
    assert worker.process.poll() is None


def test_a_cancel_ends_the_external_programs_of_a_job_too(fleet, tmp_path):
    fleet.start(**HANDLERS).wait_ready()
    pids = tmp_path / "pids"
    id_ = enqueue("iso.family", {"tell": str(pids), "depth": 3, "setsid": True}).id
    family = told(pids, 4)
    assert transitions.cancel([id_])[0].requested
    wait_state(id_, "Cancelled")
    gone(family, 0)
    wait_state(enqueue("probe.process", {"key": "next"}).id, "Succeeded")


@pytest.mark.parametrize("setsid", [False, True])
def test_the_time_limit_ends_all_that_a_job_has_started(fleet, tmp_path, setsid):
    fleet.start(**HANDLERS).wait_ready()
    pids = tmp_path / "pids"
    payload = {"tell": str(pids), "depth": 3, "setsid": setsid}
    id_ = enqueue("iso.family", payload, timeout=5, max_attempts=1).id
    family = told(pids, 4)
    dead = wait_state(id_, "Failed")
    assert (dead.failure_kind, attempts(id_)) == ("timeout", [(1, "TimedOut", True)])
    assert "5 s" in dead.error_message
    gone(family, 0)


@pytest.mark.parametrize("how", ["sleeps", "deaf", "busy"])
def test_a_stop_with_a_shorter_grace_than_the_job_returns_it_and_another_worker_runs_it(fleet, tmp_path, how):
    first = fleet.start("a", "default:2", "--shutdown-timeout", "500ms", **HANDLERS).wait_ready()
    tell = tmp_path / "pids"
    id_ = enqueue("iso.hold", {"how": how, "seconds": 60, "tell": str(tell)}).id
    old = told(tell)
    second = fleet.start("b", "default:2", **HANDLERS).wait_ready()
    first.signal(signal.SIGTERM)
    assert first.wait() == 0
    gone(old, 0)
    new = told(tell, 2)
    assert new[0] == old[0] != new[1]
    assert attempts(id_) == [(1, "Interrupted", False)]
    assert job(id_).attempts_used == 0
    assert second.process.poll() is None


def test_a_worker_that_is_stopped_leaves_no_process(fleet):
    worker = fleet.start(**HANDLERS).wait_ready()
    for _ in range(3):
        wait_state(enqueue("iso.fresh").id, "Succeeded")
    wait_state(enqueue("iso.echo").id, "Succeeded")
    below = tree.descendants(worker.pid)
    assert len(below) >= 2
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    gone(below, 0)


def test_a_busy_handler_in_a_child_keeps_its_lease_for_longer_than_it_lasts(fleet):
    fleet.start(**HANDLERS).wait_ready()
    id_ = enqueue("probe.process", {"key": "busy", "spin": 5}).id  # the lease is 3 s
    done = wait_state(id_, "Succeeded")
    assert attempts(id_) == [(1, "Succeeded", True)]
    assert len(fleet.starts("busy")) == 1
    assert done.lost_count == 0


def test_a_killed_forkserver_costs_only_what_ran(fleet, tmp_path):
    fleet.start(**HANDLERS).wait_ready()
    tell = tmp_path / "pids"
    id_ = enqueue("iso.hold", {"how": "sleeps", "tell": str(tell)}, timeout=60).id
    child = int(told(tell)[0])
    ended = wait_state(enqueue("iso.kill_parent", {"signal": 9}, max_attempts=1).id, "Failed")
    assert ended.failure_kind == "worker_lost"
    eventually(lambda: not tree.alive(child), "the other child is dead")
    eventually(lambda: attempts(id_), "its loss is written")
    assert attempts(id_)[0] == (1, "WorkerLost", True)
    wait_state(enqueue("probe.process", {"key": "after"}).id, "Succeeded")


VANISHING = """
from turno.handlers import job_type

@job_type("t.{name}")
def handler(ctx):
    \"\"\"Does nothing.\"\"\"
"""


def test_a_worker_whose_forkserver_does_not_come_back_ends_in_order_and_a_whole_one_takes_over(fleet, tmp_path):
    """A handler module was replaced while the worker ran: a new forkserver does not know its types any more."""
    module = tmp_path / "vanishing.py"
    module.write_text(VANISHING.format(name="before"))
    handlers = '["tests.kit.handlers", "tests.isolation.handlers", "vanishing"]'
    worker = fleet.start(TURNO_HANDLERS=handlers, TURNO_PYTHON_PATH=f'["{tmp_path}"]').wait_ready()
    first = worker.pid
    module.write_text(VANISHING.format(name="afterwards"))
    os.kill(worker.forkserver(), signal.SIGKILL)
    waits = enqueue("iso.echo", {"a": 1}).id
    eventually(lambda: Worker.objects.get(pid=first).problems, "it says that it has none")
    worker.wait_ready(times=2)
    assert worker.pid != first
    assert not tree.alive(first)
    wait_state(waits, "Succeeded", 40)
    assert all(not counted for _, outcome, counted in attempts(waits) if outcome != "Succeeded")
    eventually(lambda: worker.events("forkserver.broken"), "it says forkserver.broken")
