"""A worker behind a cut cable for longer than its lease and the grace: its jobs run elsewhere, and never beside it."""

import pytest

import tests.kit.beats
import tests.kit.handlers  # noqa: F401
from jobs.enqueue import enqueue
from tests.crash.beside import ISOLATIONS, QUICK, assert_nothing_beside, assert_wrote_nothing_late, begin, words
from tests.kit.look import attempts, started, steps, wait_state
from tests.kit.processes import database_url, eventually
from tests.kit.proxy import Proxy

pytestmark = pytest.mark.crash


@pytest.mark.parametrize(("isolation", "deaf"), [("async", False), *((isolation, True) for isolation in ISOLATIONS)])
def test_a_worker_without_its_database_ends_its_handlers_at_the_deadline_and_works_again_later(fleet, isolation, deaf):
    type_ = f"beats.{isolation}"
    fleet.env |= QUICK
    with Proxy(database_url()) as proxy:
        fleet.start("a", "default:4,of-a:1", TURNO_DATABASE__URL=proxy.url).wait_ready()
        id_ = begin(fleet, type_, deaf=deaf)
        proxy.blackhole()
        said = words(id_, 1)
        fleet.start("b").wait_ready()
        started(fleet, type_, times=2)
        assert ("Processing", "Enqueued", "worker_lost") in steps(id_)
        proxy.open()
        proxy.cut()  # as a system does with a connection that was dead for long
        next_ = enqueue("probe.async", {"key": "next"}, queue="of-a").id
        wait_state(next_, "Succeeded", 40)
        eventually(lambda: words(id_, 2) > 5, "the successor goes on")
        assert_nothing_beside(fleet, type_)
        assert_wrote_nothing_late(id_, said)
        assert len(attempts(id_)) == 1
