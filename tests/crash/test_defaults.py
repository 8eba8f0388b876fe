"""The shipped intervals, at their full length: nothing here is scaled down."""

import signal

import pytest

import tests.kit.handlers  # noqa: F401
from jobs.enqueue import enqueue
from tests.kit.look import attempts, started, wait_state
from tests.kit.processes import SHORT

pytestmark = [pytest.mark.crash, pytest.mark.longo]


@pytest.fixture
def shipped(fleet):
    """Workers with the defaults of the product."""
    for name in SHORT:
        fleet.env.pop(name)
    return fleet


def test_a_killed_workers_job_is_back_after_the_lease_and_its_grace(shipped):
    first = shipped.start("a").wait_ready()
    id_ = enqueue("probe.async", {"key": "k", "hold": 5}).id
    started(shipped, "k")
    first.signal(signal.SIGKILL)
    shipped.start("b").wait_ready()
    wait_state(id_, "Succeeded", 60 + 15 + 10 + 30)  # lease, grace, recovery's interval, and room to run
    assert attempts(id_) == [(1, "WorkerLost", True), (2, "Succeeded", True)]


def test_a_job_that_runs_longer_than_its_lease_keeps_it_and_starts_once(shipped):
    shipped.start("a").wait_ready()
    shipped.start("b").wait_ready()
    id_ = enqueue("probe.async", {"key": "long", "spin": 100}).id
    wait_state(id_, "Succeeded", 150)
    assert len(shipped.starts("long")) == 1
    assert attempts(id_) == [(1, "Succeeded", True)]
