"""Keys and limits in a house of real workers: never more at once than may, no slot idle, whatever dies."""

import signal
from collections import defaultdict
from itertools import pairwise

import pytest

import tests.kit.handlers  # noqa: F401  (declares the types)
from jobs import transitions
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import ConcurrencySlot, Counter, Job, JobAttempt, JobStateChange
from jobs.operations import cancel
from jobs.ratelimit import Limits, RateLimit
from jobs.transitions.opening import SWEPT
from tests.kit.gatecheck import wrong_slots
from tests.kit.look import started, wait_state
from tests.kit.processes import eventually

pytestmark = pytest.mark.crash
TYPE = "probe.async"


@pytest.fixture
def workers(fleet):
    return [fleet.start(name, "default:8").wait_ready() for name in "ab"]


def most_at_once(fleet):
    """By key (the part of the payload's before the colon), how many handlers were at it at once."""
    steps = [
        (float(at), -1 if word == "end" else 1, key)
        for word in ("start", "end")
        for _, key, _, _, at in fleet.lines(word)
    ]
    now, most = defaultdict(int), defaultdict(int)
    for _, step, key in sorted(steps):
        family = key.partition(":")[0]
        now[family] += step
        most[family] = max(most[family], now[family])
    return dict(most)


def all_done(count, seconds=120.0):
    done = Job.objects.filter(state="Succeeded")
    eventually(lambda: done.count() == count, f"{count} jobs have run", seconds)


def assert_healthy():
    """Nobody holds a slot, and the sweep has found nothing."""
    assert not ConcurrencySlot.objects.exists()
    assert not Counter.objects.filter(name=SWEPT).exists()
    assert wrong_slots() == []


@pytest.mark.both
def test_many_jobs_on_a_few_keys_run_as_many_at_once_as_may(fleet, workers):
    for key, limit in (("one", 1), ("three", 3), ("ten", 10)):
        enqueue_many([
            JobRequest(TYPE, {"key": f"{key}:{n}", "hold": 0.02}, concurrency_key=key, concurrency_limit=limit)
            for n in range(60)
        ])  # fmt: skip
    enqueue_many([JobRequest(TYPE, {"key": f"free:{n}"}) for n in range(60)])
    all_done(240)
    most = most_at_once(fleet)
    assert (most["one"], most["three"] <= 3, most["ten"] <= 10) == (1, True, True)
    assert most["three"] > 1
    assert len(fleet.starts()) == 240
    moves = JobStateChange.objects.filter(reason__in=["parked", "gate_opened"])
    assert moves.count() <= 2 * 180  # nobody is parked twice
    assert_healthy()


def test_the_slot_of_a_killed_worker_goes_to_the_next(fleet, workers):
    first = enqueue("probe.process", {"key": "first", "hold": 600.0}, concurrency_key="k", max_attempts=1).id
    started(fleet, "first")
    second = enqueue(TYPE, {"key": "second"}, concurrency_key="k").id
    eventually(lambda: Job.objects.get(pk=second).waiting_for == "concurrency_key", "it waits")
    [owner] = [worker for worker in workers if worker.pid == Job.objects.get(pk=first).worker_label["pid"]]
    owner.kill_worker()
    wait_state(first, "Failed")
    wait_state(second, "Succeeded")
    assert_healthy()


def test_after_a_stop_that_had_to_kill_its_handler_no_two_of_a_key_run(fleet):
    worker = fleet.start("a", "default:4", "--shutdown-timeout", "100ms").wait_ready()
    enqueue_many([JobRequest("probe.thread", {"key": f"k:{n}", "hold": 0.7}, concurrency_key="k") for n in range(3)])
    eventually(fleet.starts, "the first one runs")
    worker.signal(signal.SIGTERM)
    worker.wait()
    fleet.start("b", "default:4").wait_ready()
    all_done(3)
    spans = list(JobAttempt.objects.order_by("started_at").values_list("started_at", "ended_at"))
    assert all(ended <= started for (_, ended), (started, _) in pairwise(spans))
    assert_healthy()


def test_a_cancel_hands_the_slot_over_whether_its_job_runs_or_waits(fleet, workers):
    running = enqueue(TYPE, {"key": "running", "hold": 600.0}, concurrency_key="k").id
    started(fleet, "running")
    waiting, last = (enqueue(TYPE, {"key": key}, concurrency_key="k").id for key in ("waiting", "last"))
    eventually(lambda: Job.objects.filter(waiting_for="concurrency_key").count() == 2, "both wait")
    cancel(waiting)
    cancel(running)
    wait_state(running, "Cancelled")
    wait_state(last, "Succeeded")
    assert not fleet.starts("waiting")
    assert_healthy()


def test_no_more_of_a_type_run_in_all_workers_than_its_limit_which_may_change(fleet, workers):
    transitions.set_limits(TYPE, Limits(max_running=2), actor="ana")
    enqueue_many([JobRequest(TYPE, {"key": f"slow:{n}", "hold": 0.05}) for n in range(30)])
    enqueue_many([JobRequest("probe.thread", {"key": f"free:{n}"}) for n in range(10)])
    all_done(40)
    assert most_at_once(fleet)["slow"] == 2
    assert_healthy()
    transitions.set_limits(TYPE, Limits(max_running=1), actor="ana")
    enqueue_many([JobRequest(TYPE, {"key": f"later:{n}", "hold": 0.02}) for n in range(10)])
    eventually(lambda: Job.objects.filter(waiting_for="type_limit").exists(), "some wait")
    transitions.set_limits(TYPE, Limits(), actor="ana")
    all_done(50)


def test_a_type_starts_no_faster_than_its_rate(fleet, workers):
    transitions.set_limits(TYPE, Limits(rate=RateLimit(10, 1.0)), actor="ana")
    enqueue_many([JobRequest(TYPE, {"key": f"rated:{n}"}) for n in range(35)])
    all_done(35)
    starts = sorted(float(at) for _, _, _, _, at in fleet.starts())
    assert starts[-1] - starts[0] > 2.0  # three windows had to pass, or nearly
    assert_healthy()


def test_limits_that_handlers_and_configuration_declare_hold_from_the_start(fleet):
    types = f'{{"{TYPE}": {{"max_running": 1, "rate_limit": "1000/s"}}}}'
    for name in "ab":
        fleet.start(name, "default:8", TURNO_RESILIENCE__TYPES=types).wait_ready()
    enqueue_many([JobRequest(TYPE, {"key": f"slow:{n}", "hold": 0.02}) for n in range(20)])
    all_done(20)
    assert most_at_once(fleet) == {"slow": 1}
    assert_healthy()
