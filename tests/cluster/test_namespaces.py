"""A worker on a host of its own, whose network cable is pulled for longer than its lease and the grace, and put in
again: no connection is reset and nobody is told, packets just vanish, from PostgreSQL, broker and Redis at once."""

from contextlib import ExitStack

import pytest

import tests.kit.beats
import tests.kit.handlers  # noqa: F401
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import Job
from tests.crash.beside import QUICK, assert_nothing_beside, begin, lines
from tests.kit.island import Island, island
from tests.kit.look import attempts, started, wait_state
from tests.kit.processes import database_url, eventually
from tests.kit.proxy import Proxy

pytestmark = pytest.mark.crash
WAITING = 20  # jobs that wait while the cable is out
PATIENCE = 90.0  # seconds


def servers(cluster, host: Island, stack: ExitStack) -> dict[str, str]:
    """What the worker has in its environment: the servers, as they are reached from its host."""
    urls = {
        "TURNO_DATABASE__URL": database_url(),
        "TURNO_MESSAGING__URLS": cluster.node.url,
        "TURNO_REDIS__URLS": cluster.redis[0].url,
    }
    return {name: stack.enter_context(Proxy(url, host.listener())).url for name, url in urls.items()}


@pytest.mark.parametrize(
    "types",
    [
        pytest.param(["beats.async", "beats.process"], id="handlers that can be stopped"),
        pytest.param(["beats.async", "beats.thread", "beats.process"], id="all", marks=pytest.mark.longo),
    ],
)
def test_a_pulled_cable_loses_nothing_and_lets_nothing_run_beside_its_successor(fleet, cluster, types):
    fleet.env |= QUICK
    with island() as host, ExitStack() as stack:
        env = servers(cluster, host, stack)
        cut = host.run(lambda: fleet.start("a", "default:6,of-a:1", **env)).wait_ready()
        jobs = {type_: begin(fleet, type_, hold=600.0) for type_ in types}
        fleet.start("b", "default:6").wait_ready()

        host.unplug()
        made = enqueue_many([JobRequest("probe.async", {"key": str(n), "hold": 0.05}) for n in range(WAITING)])
        for type_ in types:
            started(fleet, type_, times=2)
            assert_nothing_beside(fleet, type_)
        waiting = Job.objects.filter(pk__in=[m.id for m in made])
        eventually(lambda: not waiting.exclude(state="Succeeded").exists(), "what waits runs elsewhere", PATIENCE)
        next_ = enqueue("probe.async", {"key": "next"}, queue="of-a").id
        assert fleet.starts("next") == []

        host.plug()
        wait_state(next_, "Succeeded", PATIENCE)
        if "beats.thread" not in types:  # nothing had to be killed: it has come back by itself
            assert len(cut.events("worker.ready")) == 1
        for key in [*map(str, range(WAITING)), "next"]:
            assert len(fleet.starts(key)) == 1
        for type_, id_ in jobs.items():
            assert attempts(id_) == [(1, "WorkerLost", True)]
            assert_nothing_beside(fleet, type_)
            assert {execution for execution, _at in lines(fleet, type_)} == {1, 2}
