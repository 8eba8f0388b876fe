"""SIGKILL, and many jobs on many processes: what is lost comes back, what ran once does not run again."""

import signal
from collections import Counter

import pytest

import tests.kit.handlers  # noqa: F401
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import Job, JobAttempt, Worker
from tests.kit.look import attempts, started, steps, wait_state
from tests.kit.processes import LAPSING, eventually

pytestmark = pytest.mark.crash


@pytest.fixture
def strangers(fleet):
    """Starts workers that can't prove each other's death, as those of two machines can't: only leases count."""

    def start(name):
        return fleet.start(name, **LAPSING, TURNO_WORKER__RUN_DIR=str(fleet.folder / name))

    return start


@pytest.mark.both
def test_a_job_whose_worker_is_killed_runs_again_on_another(fleet, strangers):
    lost = strangers("a").wait_ready()
    id_ = enqueue("probe.async", {"key": "k", "hold": 3}).id
    started(fleet, "k")
    lost.signal(signal.SIGKILL)  # the supervisor, and its worker with it
    strangers("b").wait_ready()
    done = wait_state(id_, "Succeeded", 40)
    assert attempts(id_) == [(1, "WorkerLost", True), (2, "Succeeded", True)]
    assert done.lost_count == 1
    assert ("Processing", "Enqueued", "worker_lost") in steps(id_)
    assert list(JobAttempt.objects.order_by("ordinal").values_list("worker_name", flat=True)) == ["a", "b"]
    eventually(lambda: Worker.objects.get(name="a").state == "Offline", "the dead worker is Offline")


def test_a_job_comes_back_although_its_workers_row_is_gone(fleet):
    first = fleet.start("a", **LAPSING).wait_ready()
    id_ = enqueue("probe.async", {"key": "k", "hold": 2}).id
    started(fleet, "k")
    first.signal(signal.SIGKILL)
    eventually(lambda: not fleet.living("a"), "it is gone")
    Worker.objects.all().delete()
    fleet.start("b").wait_ready()
    wait_state(id_, "Succeeded", 40)
    assert ("Processing", "Enqueued", "worker_lost") in steps(id_)


def test_two_thousand_jobs_on_four_processes_are_each_started_exactly_once(fleet):
    workers = [fleet.start(f"w{n}", "default:8").wait_ready() for n in range(4)]
    types = ("probe.async", "probe.thread", "probe.process")
    for batch in range(4):
        enqueue_many([JobRequest(types[n % 3], {"key": f"{batch}-{n}"}) for n in range(500)])
    eventually(lambda: not Job.objects.exclude(state="Succeeded").exists(), "all have succeeded", 120)
    counts = Counter(parts[1] for parts in fleet.starts())
    assert len(counts) == 2000
    assert set(counts.values()) == {1}
    assert JobAttempt.objects.count() == 2000
    assert len({parts[3] for parts in fleet.starts()} & {str(w.pid) for w in workers}) == 4  # each took its share
