"""A worker that is stopped between its claim and the claim's answer: what it took runs nowhere beside its successor."""

import pytest

import tests.kit.beats
import tests.kit.handlers  # noqa: F401
from jobs.enqueue import enqueue
from jobs.models import Job
from tests.crash.beside import ISOLATIONS, QUICK
from tests.kit.look import attempts, started
from tests.kit.processes import database_url, eventually, thaw
from tests.kit.proxy import Proxy

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_worker_stopped_with_a_claim_in_flight_is_dead_before_its_successor_starts(fleet, isolation):
    type_ = f"beats.{isolation}"
    fleet.env |= QUICK
    with Proxy(database_url()) as proxy:
        first = fleet.start("a", TURNO_DATABASE__URL=proxy.url).wait_ready()
        trap = proxy.hold_commit("claimed_at = now()")
        id_ = enqueue(type_, {"key": type_, "deaf": True}).id
        trap.wait()  # the job is the worker's, who does not know it yet
        assert Job.objects.get(pk=id_).state == "Processing"
        pid = first.freeze_worker()
        eventually(lambda: first.events("supervisor.deadline_passed"), "the supervisor ended the stopped worker")
        trap.let_go()
        thaw(pid)
        fleet.start("b").wait_ready()
        started(fleet, type_)
        assert [outcome for _, outcome, _ in attempts(id_)] == ["WorkerLost"]
        assert {line[2] for line in fleet.starts(type_)} == {"2"}, "the first execution never began"
