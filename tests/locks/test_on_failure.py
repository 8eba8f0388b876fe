"""All Redis servers freeze under a whole worker: what runs goes on; new work goes on too and it is said, or waits."""

import pytest

import tests.kit.handlers  # noqa: F401
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import Job, Worker
from tests.kit.look import attempts, started, wait_state
from tests.kit.processes import eventually

pytestmark = pytest.mark.crash
ENOUGH = 60.0  # seconds
COUNT = 5


@pytest.fixture
def profile():
    """Here a broker carries the work."""
    return "cluster"


@pytest.fixture
def worker(fleet, three):
    """Starts a worker over the three servers."""
    fleet.env |= {
        "TURNO_REDIS__URLS": ",".join(server.url for server in three),
        "TURNO_REDIS__NODE_TIMEOUT": "500ms",  # so that they are away when the test says so
        "TURNO_WORKER__LOCK_EXPIRY": "3s",
        "TURNO_WORKER__LEADERSHIP_LEASE": "3s",
    }

    def start(on_failure):
        return fleet.start("a", "default:8", TURNO_REDIS__ON_FAILURE=on_failure).wait_ready()

    return start


def freeze(fleet, three):
    """With a job that runs, locked, meanwhile; its id."""
    running = enqueue("probe.async", {"key": "running", "hold": 600.0}).id
    started(fleet, "running")
    eventually(lambda: all(str(running) in "".join(server.ttls()) for server in three), "it is locked everywhere")
    for server in three:
        server.freeze()
    return running


def thaw(three):
    for server in three:
        server.thaw()


def come():
    """Work for now and, by way of whoever leads, for a moment later."""
    now = enqueue_many([JobRequest("probe.async", {"key": str(n)}) for n in range(COUNT)])
    later = enqueue("probe.async", {"key": "later"}, delay=0.3).id
    return [*(made.id for made in now), later]


def told():
    return [problem["part"] for problem in Worker.objects.get().problems]


def all_ended(ids):
    return not Job.objects.filter(pk__in=ids).exclude(state="Succeeded").exists()


def assert_once(fleet, running):
    for key in [*map(str, range(COUNT)), "later", "running"]:
        assert len(fleet.starts(key)) == 1
    assert Job.objects.get(pk=running).state == "Processing"
    assert attempts(running) == []


def test_fence_goes_on_with_a_warning_and_locks_again_when_they_are_back(fleet, three, worker):
    a = worker("fence")
    running = freeze(fleet, three)
    ids = come()
    eventually(lambda: all_ended(ids), "all run, guarded by the database", ENOUGH)
    eventually(lambda: told().count("redis") == 1 + len(three), "people are told", ENOUGH)
    eventually(lambda: a.events("locks.away"), "it says locks.away")

    thaw(three)
    eventually(lambda: told() == [], "all is well", ENOUGH)
    eventually(lambda: all(str(running) in "".join(server.ttls()) for server in three), "it is locked again", ENOUGH)
    wait_state(enqueue("probe.async", {"key": "after"}).id, "Succeeded", ENOUGH)
    assert_once(fleet, running)
    assert len(a.events("worker.ready")) == 1


def test_defer_lets_work_wait_and_nobody_lead_and_what_runs_goes_on(fleet, three, worker):
    a = worker("defer")
    eventually(lambda: a.events("leader.elected"), "it leads", ENOUGH)
    running = freeze(fleet, three)
    eventually(lambda: a.events("leader.stepped_down"), "nobody leads", ENOUGH)
    ids = come()
    eventually(lambda: len(a.events("claims.resting")) >= 2, "it has tried, and again", ENOUGH)
    eventually(lambda: {"redis", "claims"} <= set(told()), "people are told", ENOUGH)
    assert len(fleet.starts()) == 1
    assert set(Job.objects.filter(pk__in=ids).values_list("state", flat=True)) == {"Enqueued", "Scheduled"}

    thaw(three)
    eventually(lambda: all_ended(ids), "all run", ENOUGH)
    eventually(lambda: told() == [], "all is well", ENOUGH)
    assert_once(fleet, running)
    assert len(a.events("worker.ready")) == 1
