"""The shipped intervals, at their full length: nothing here is scaled down."""

import signal

import pytest

import tests.kit.handlers  # noqa: F401
from jobs.enqueue import enqueue
from tests.crash.test_busy import TYPES
from tests.kit.look import attempts, started, steps, wait_state
from tests.kit.processes import SHORT

pytestmark = [pytest.mark.crash, pytest.mark.longo]


@pytest.fixture
def shipped(fleet):
    """Workers with the defaults of the product."""
    for name in SHORT:
        fleet.env.pop(name)
    return fleet


def test_a_lost_workers_job_is_back_after_the_lease_and_its_grace(shipped):
    first = shipped.start("a").wait_ready()
    id_ = enqueue("probe.async", {"key": "k", "hold": 5}).id
    started(shipped, "k")
    first.signal(signal.SIGKILL)
    # As one of another machine: it can't see that the first is dead.
    shipped.start("b", TURNO_WORKER__RUN_DIR=str(shipped.folder / "elsewhere")).wait_ready()
    wait_state(id_, "Succeeded", 60 + 15 + 10 + 30)  # lease, grace, recovery's interval, and room to run
    assert attempts(id_) == [(1, "WorkerLost", True), (2, "Succeeded", True)]
    assert ("Processing", "Enqueued", "worker_lost") in steps(id_)


def test_jobs_that_run_longer_than_their_lease_keep_it_and_start_once(shipped):
    shipped.start("a").wait_ready()
    shipped.start("b").wait_ready()
    ids = [enqueue(type_, {"key": type_, "spin": 100}).id for type_ in TYPES]
    for id_ in ids:
        wait_state(id_, "Succeeded", 400)
        assert attempts(id_) == [(1, "Succeeded", True)]
    assert len(shipped.starts()) == len(TYPES)
