"""A worker behind cut cables, to PostgreSQL, to the broker, to Redis, each alone and all together, for longer than its
lease and the grace: what it ran runs elsewhere and never beside it, and it works again when they are mended."""

from contextlib import ExitStack

import pytest

import tests.kit.beats
import tests.kit.handlers  # noqa: F401
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import Job
from tests.crash.beside import QUICK, assert_nothing_beside, begin, lines
from tests.kit.look import attempts, started, wait_state
from tests.kit.processes import database_url, eventually
from tests.kit.proxy import Proxy

pytestmark = pytest.mark.crash
TYPES = ("beats.async", "beats.thread", "beats.process")
WAITING = 20  # jobs that wait while the cables are cut


class Cables:
    """The worker's cables, by what they lead to."""

    def __init__(self, cluster, stack: ExitStack) -> None:
        self.postgres = stack.enter_context(Proxy(database_url()))
        self.broker = stack.enter_context(Proxy(cluster.node.url))
        self.redis = stack.enter_context(Proxy(cluster.redis[0].url))

    @property
    def env(self) -> dict[str, str]:
        return {
            "TURNO_DATABASE__URL": self.postgres.url,
            "TURNO_MESSAGING__URLS": self.broker.url,
            "TURNO_REDIS__URLS": self.redis.url,
        }

    def of(self, names: str) -> list[Proxy]:
        return [getattr(self, name) for name in names.split()]


@pytest.mark.parametrize(
    "cut",
    [
        "postgres broker redis",
        "broker",
        pytest.param("postgres", marks=pytest.mark.longo),
        pytest.param("redis", marks=pytest.mark.longo),
        pytest.param("broker redis", marks=pytest.mark.longo),
        pytest.param("postgres broker", marks=pytest.mark.longo),
    ],
)
def test_nothing_is_lost_and_nothing_runs_beside_its_successor(fleet, cluster, cut):
    if "postgres" in cut:  # only there a lease has to end
        fleet.env |= QUICK
    with ExitStack() as stack:
        cables = Cables(cluster, stack)
        fleet.start("a", "default:6,of-a:1", **cables.env).wait_ready()
        jobs = {type_: begin(fleet, type_) for type_ in TYPES}
        for cable in cables.of(cut):
            cable.blackhole()
        fleet.start("b", "default:6").wait_ready()
        made = enqueue_many([JobRequest("probe.async", {"key": str(n), "hold": 0.05}) for n in range(WAITING)])

        eventually(lambda: not Job.objects.filter(pk__in=[m.id for m in made]).exclude(state="Succeeded").exists(),
                   "what waits runs on the other worker", 60)  # fmt: skip
        if "postgres" in cut:
            for type_ in TYPES:
                started(fleet, type_, times=2)
                assert_nothing_beside(fleet, type_)
        else:  # who owns them is told by the database alone: they run on
            for type_ in TYPES:
                before = len(lines(fleet, type_))
                eventually(lambda t=type_, n=before: len(lines(fleet, t)) > n + 50, "it goes on beating")
                assert len(fleet.starts(type_)) == 1

        for cable in cables.of(cut):
            cable.open()
            cable.cut()  # as a system does with a connection that was dead for long
        next_ = enqueue("probe.async", {"key": "next"}, queue="of-a").id
        wait_state(next_, "Succeeded", 60)
        for n in range(WAITING):
            assert len(fleet.starts(str(n))) == 1
        for type_, id_ in jobs.items():
            assert len(attempts(id_)) == (1 if "postgres" in cut else 0)
            if "postgres" in cut:
                assert_nothing_beside(fleet, type_)
