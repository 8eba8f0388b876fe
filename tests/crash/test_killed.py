"""SIGKILL, and many jobs on many processes: what is lost comes back, what ran once does not run again."""

import signal
from collections import Counter

import pytest

import tests.kit.handlers  # noqa: F401
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import Job, JobAttempt, Worker
from tests.kit.look import attempts, started, steps, wait_state
from tests.kit.processes import eventually

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("type_", ["probe.async", "probe.thread"])
def test_a_job_whose_worker_is_killed_runs_again_on_another(fleet, type_):
    workers = {w.pid: w for w in (fleet.start("a").wait_ready(), fleet.start("b").wait_ready())}
    id_ = enqueue(type_, {"key": "k", "hold": 3}).id
    owner = int(started(fleet, "k")[0][3])
    workers[owner].signal(signal.SIGKILL)
    done = wait_state(id_, "Succeeded", 40)
    first, second = fleet.starts("k")
    assert {int(first[3]), int(second[3])} == set(workers)
    assert attempts(id_) == [(1, "WorkerLost", True), (2, "Succeeded", True)]
    assert done.lost_count == 1
    assert ("Processing", "Enqueued", "worker_lost") in steps(id_)
    lost = JobAttempt.objects.get(job_id=id_, ordinal=1)
    assert lost.worker_name == workers[owner].name
    eventually(lambda: Worker.objects.get(name=workers[owner].name).state == "Offline", "the dead worker is Offline")


def test_a_job_comes_back_although_its_workers_row_is_gone(fleet):
    first = fleet.start("a").wait_ready()
    id_ = enqueue("probe.async", {"key": "k", "hold": 2}).id
    started(fleet, "k")
    first.signal(signal.SIGKILL)
    Worker.objects.all().delete()
    fleet.start("b").wait_ready()
    wait_state(id_, "Succeeded", 40)


def test_a_job_that_loses_its_worker_three_times_ends_failed(fleet):
    id_ = enqueue("probe.async", {"key": "poison", "hold": 60}).id
    for time in (1, 2, 3):
        worker = fleet.start(f"w{time}").wait_ready()
        started(fleet, "poison", times=time)
        worker.signal(signal.SIGKILL)
        worker.wait()
    fleet.start("last").wait_ready()
    dead = wait_state(id_, "Failed", 40)
    assert (dead.failure_kind, dead.lost_count) == ("worker_lost", 3)
    assert steps(id_)[-1][2] == "lost_too_often"


def test_a_job_that_may_run_at_most_once_is_not_rescued(fleet):
    worker = fleet.start("a").wait_ready()
    id_ = enqueue("probe.once", {"key": "once", "hold": 60}).id
    started(fleet, "once")
    worker.signal(signal.SIGKILL)
    fleet.start("b").wait_ready()
    dead = wait_state(id_, "Failed", 40)
    assert dead.failure_kind == "worker_lost"
    assert len(fleet.starts("once")) == 1


def test_a_worker_frozen_beyond_its_lease_writes_nothing_when_it_wakes(fleet):
    frozen = fleet.start("a").wait_ready()
    id_ = enqueue("probe.async", {"key": "k", "hold": 6}).id
    started(fleet, "k")
    frozen.signal(signal.SIGSTOP)
    fleet.start("b").wait_ready()
    started(fleet, "k", times=2)
    frozen.signal(signal.SIGCONT)
    wait_state(id_, "Succeeded", 40)
    assert attempts(id_) == [(1, "WorkerLost", True), (2, "Succeeded", True)]
    assert [to for _, to, _ in steps(id_)].count("Succeeded") == 1
    eventually(
        lambda: JobAttempt.objects.get(job_id=id_, ordinal=1).discarded_at, "the late owner's end is noted as discarded"
    )


def test_two_thousand_jobs_on_four_processes_are_each_started_exactly_once(fleet):
    workers = [fleet.start(f"w{n}", "default:8").wait_ready() for n in range(4)]
    types = ("probe.async", "probe.thread")
    for batch in range(4):
        enqueue_many([JobRequest(types[n % 2], {"key": f"{batch}-{n}"}) for n in range(500)])
    eventually(lambda: not Job.objects.exclude(state="Succeeded").exists(), "all have succeeded", 120)
    counts = Counter(parts[1] for parts in fleet.starts())
    assert len(counts) == 2000
    assert set(counts.values()) == {1}
    assert JobAttempt.objects.count() == 2000
    assert len({parts[3] for parts in fleet.starts()}) == len(workers)  # each took its share
