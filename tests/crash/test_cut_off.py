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


def cut_off(fleet, isolation, *, deaf, **env):
    """A worker loses its database while it runs a job, another one takes over, and the cable is mended."""
    type_ = f"beats.{isolation}"
    fleet.env |= QUICK
    with Proxy(database_url()) as proxy:
        fleet.start("a", "default:4,of-a:1", TURNO_DATABASE__URL=proxy.url, **env).wait_ready()
        id_ = begin(fleet, type_, deaf=deaf)
        proxy.blackhole()
        fleet.start("b").wait_ready()
        said = words(id_, 1)
        started(fleet, type_, times=2)
        eventually(lambda: words(id_, 2) > 5, "the successor goes on")
        assert_nothing_beside(fleet, type_)
        assert ("Processing", "Enqueued", "worker_lost") in steps(id_)
        proxy.open()
        proxy.cut()  # as a system does with a connection that was dead for long
        next_ = enqueue("probe.async", {"key": "next"}, queue="of-a").id
        wait_state(next_, "Succeeded", 40)
        assert_nothing_beside(fleet, type_)
        assert_wrote_nothing_late(id_, said)
        assert len(attempts(id_)) == 1


@pytest.mark.parametrize(("isolation", "deaf"), [("async", False), *((isolation, True) for isolation in ISOLATIONS)])
def test_a_worker_without_its_database_ends_its_handlers_at_the_deadline_and_works_again_later(fleet, isolation, deaf):
    cut_off(fleet, isolation, deaf=deaf)


def test_a_worker_that_is_told_to_stop_without_its_database_ends_and_its_jobs_run_elsewhere(fleet):
    fleet.env |= QUICK
    types = [f"beats.{isolation}" for isolation in ISOLATIONS]
    with Proxy(database_url()) as proxy:
        own = {"TURNO_DATABASE__URL": proxy.url}
        worker = fleet.start("a", "default:4", "--shutdown-timeout", "300ms", **own).wait_ready()
        ids = [begin(fleet, type_, deaf=True) for type_ in types]
        proxy.blackhole()
        worker.signal(signal.SIGTERM)
        fleet.start("b").wait_ready()
        for type_, id_ in zip(types, ids, strict=True):
            started(fleet, type_, times=2)
            assert_nothing_beside(fleet, type_)
            assert attempts(id_) == [(1, "WorkerLost", True)]
        assert worker.wait(60) != 0  # it could not give anything back
        assert fleet.living("a") == []
