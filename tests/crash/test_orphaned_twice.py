"""A job whose owner is killed again and again, in a fleet where nobody starts anything anew."""

import signal

import pytest

import tests.kit.beats
import tests.kit.deaths
import tests.kit.handlers  # noqa: F401
from jobs.enqueue import enqueue
from jobs.models import JobAttempt, Worker
from tests.kit.look import attempts, job, started, steps, wait_state
from tests.kit.processes import LAPSING, eventually

pytestmark = pytest.mark.crash
HANDLERS = '["tests.kit.handlers", "tests.kit.beats", "tests.kit.deaths"]'


def test_a_job_that_is_orphaned_twice_runs_on_the_third_worker_without_any_start(fleet):
    """None can prove another one's death, as on three machines: only the leases count."""
    fleet.env["TURNO_RETENTION__OFFLINE_WORKERS"] = "1s"  # the dead one's row may be gone before its job is found
    workers = {n: fleet.start(n, **LAPSING, TURNO_WORKER__RUN_DIR=str(fleet.folder / n)) for n in "abc"}
    for worker in workers.values():
        worker.wait_ready()
    id_ = enqueue("beats.thread", {"key": "k", "hold": 3600}).id
    for times in (1, 2):
        started(fleet, "k", times=times)
        owner = eventually(lambda: (job(id_).worker_label or {}).get("name"), "somebody has it")
        workers.pop(owner).signal(signal.SIGKILL)  # the supervisor, and its worker with it
    started(fleet, "k", times=3)
    assert [outcome for _, outcome, _ in attempts(id_)] == ["WorkerLost"] * 2
    left = [step for step in steps(id_) if step[0] == "Processing"]
    assert left == [("Processing", "Enqueued", "worker_lost"), ("Processing", "Scheduled", "worker_lost")]
    [last] = workers.values()
    assert job(id_).worker_label["name"] == last.name
    assert (job(id_).attempts_used, job(id_).lost_count, len(fleet.starts("k"))) == (2, 2, 3)
    eventually(lambda: Worker.objects.count() == 1, "the rows of the dead are forgotten")
    assert job(id_).state == "Processing"
    assert len(last.events("worker.ready")) == 1


@pytest.mark.both
def test_a_job_that_kills_its_child_is_lost_by_signal_fails_and_costs_its_neighbours_nothing(fleet, profile, request):
    worker = fleet.start("a", "default:4", TURNO_HANDLERS=HANDLERS).wait_ready()
    neighbours = [enqueue(type_, {"key": type_, "hold": 2}).id for type_ in ("probe.async", "probe.process")]
    started(fleet, "probe.process")
    id_ = enqueue("deaths.process", {"key": "hungry", "mebibytes": 64}, max_attempts=2).id
    dead = wait_state(id_, "Failed", 60)
    assert attempts(id_) == [(1, "WorkerLost", True), (2, "WorkerLost", True)]
    assert (dead.failure_kind, dead.attempts_used, len(fleet.starts("hungry"))) == ("worker_lost", 2, 2)
    last = dead.attempts.last()
    assert (last.signal, last.peak_memory > 64 << 20) == (signal.SIGKILL, True)
    for told in ("9 (SIGKILL)", last.worker_host, f"{last.peak_memory / 2**20:.1f} MiB"):
        assert told in dead.error_message
    for neighbour in neighbours:
        assert wait_state(neighbour, "Succeeded", 60).lost_count == 0
    assert JobAttempt.objects.filter(outcome="WorkerLost").count() == 2
    assert len(worker.events("worker.ready")) == 1
    if profile == "cluster":
        eventually(lambda: request.getfixturevalue("cluster").depth() == 0, "no message is left")
