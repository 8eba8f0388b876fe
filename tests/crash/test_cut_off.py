"""A worker behind a cut cable for longer than its lease and the grace: its jobs run elsewhere, and never beside it."""

import signal

import pytest

import tests.kit.beats
import tests.kit.handlers  # noqa: F401
from jobs.enqueue import enqueue
from tests.crash.beside import ISOLATIONS, QUICK, assert_nothing_beside, assert_wrote_nothing_late, begin, words
from tests.kit.look import attempts, started, steps, wait_state
from tests.kit.processes import database_url, eventually
from tests.kit.proxy import Proxy

pytestmark = pytest.mark.crash
TYPES = [f"beats.{isolation}" for isolation in ISOLATIONS]


def cut_off(fleet, types, *, deaf, **env):
    """A worker loses its database while it runs jobs, another one takes over, and the cable is mended."""
    fleet.env |= QUICK
    # With deaf handlers the worker ends itself: its neighbour may see that before the lease and the grace are over.
    reasons = ("worker_lost", "taken_back") if deaf else ("worker_lost",)
    with Proxy(database_url()) as proxy:
        fleet.start("a", "default:4,of-a:1", TURNO_DATABASE__URL=proxy.url, **env).wait_ready()
        jobs = {type_: begin(fleet, type_, deaf=deaf) for type_ in types}
        proxy.blackhole()
        fleet.start("b").wait_ready()
        said = {type_: words(id_, 1) for type_, id_ in jobs.items()}
        for type_, id_ in jobs.items():
            started(fleet, type_, times=2)
            eventually(lambda id_=id_: words(id_, 2) > 5, "the successor goes on")
            assert_nothing_beside(fleet, type_)
            assert any(("Processing", "Enqueued", reason) in steps(id_) for reason in reasons)
        proxy.open()
        proxy.cut()  # as a system does with a connection that was dead for long
        next_ = enqueue("probe.async", {"key": "next"}, queue="of-a").id
        wait_state(next_, "Succeeded", 40)
        for type_, id_ in jobs.items():
            assert_nothing_beside(fleet, type_)
            assert_wrote_nothing_late(id_, said[type_])
            assert len(attempts(id_)) == 1


@pytest.mark.parametrize(
    ("types", "deaf"),
    [(TYPES, False), (TYPES[:2], True), (TYPES[2:], True)],
    ids=["handlers that heed", "deaf async and thread", "deaf process"],
)
def test_a_worker_without_its_database_ends_its_handlers_at_the_deadline_and_works_again_later(fleet, types, deaf):
    cut_off(fleet, types, deaf=deaf)


@pytest.mark.longo  # what gives the jobs back looks for the database for its full time
def test_a_worker_that_is_told_to_stop_without_its_database_ends_and_its_jobs_run_elsewhere(fleet):
    fleet.env |= QUICK
    with Proxy(database_url()) as proxy:
        own = {"TURNO_DATABASE__URL": proxy.url}
        worker = fleet.start("a", "default:4", "--shutdown-timeout", "300ms", **own).wait_ready()
        jobs = {type_: begin(fleet, type_, deaf=True) for type_ in TYPES}
        proxy.blackhole()
        worker.signal(signal.SIGTERM)
        fleet.start("b").wait_ready()
        for type_, id_ in jobs.items():
            started(fleet, type_, times=2)
            assert_nothing_beside(fleet, type_)
            assert attempts(id_) == [(1, "WorkerLost", True)]
        assert worker.wait(60) != 0  # it could not give anything back
        assert fleet.living("a") == []
