"""Real workers and a real broker: what was lost is found, what a relay left is taken on."""

import threading
from contextlib import suppress

import pytest

import tests.kit.handlers  # noqa: F401
from jobs.enqueue import JobRequest, enqueue_many
from jobs.models import Job, OutboxMessage
from tests.kit.processes import eventually
from tests.kit.rabbitmq_server import raw

pytestmark = pytest.mark.crash
COUNT = 300


@pytest.fixture
def profile():
    return "cluster"


def ended() -> bool:
    return not Job.objects.exclude(state="Succeeded").exists()


def assert_each_started_once(fleet, keys):
    assert sorted(parts[1] for parts in fleet.starts()) == sorted(keys)


@pytest.mark.longo
def test_jobs_whose_messages_the_broker_lost_are_found_and_run_once(fleet, cluster):
    """Two looks ten seconds apart, at messages that were there ten seconds before."""
    fleet.start("relay", "other:1").wait_ready()
    enqueue_many([JobRequest("probe.async", {"key": str(n)}) for n in range(COUNT)])
    eventually(lambda: not OutboxMessage.objects.exists(), "all were announced")
    eventually(lambda: cluster.depth() == COUNT, "all messages wait")
    with raw(cluster.node.url) as channel:
        channel.queue_delete(cluster.queue())
    fleet.start("late", "default:8").wait_ready()
    eventually(ended, "all have run")
    assert_each_started_once(fleet, [str(n) for n in range(COUNT)])


def test_relays_that_are_killed_again_and_again_lose_nothing_and_start_nothing_twice(fleet, cluster):
    """They serve another queue, so that no execution dies with them; what they leased comes back in four seconds."""
    fleet.start("works", "default:8").wait_ready()
    relays = [fleet.start(f"relay-{n}", "other:1") for n in range(2)]
    for relay in relays:
        relay.wait_ready()
    over = threading.Event()

    def kills() -> None:
        turn = 0
        while not over.wait(0.4):
            with suppress(ProcessLookupError):  # it has not come back yet
                relays[turn % 2].kill_worker()
            turn += 1
            over.wait(1.2)

    killer = threading.Thread(target=kills, daemon=True)
    killer.start()
    try:
        for batch in range(20):
            enqueue_many([JobRequest("probe.async", {"key": f"{batch}-{n}"}) for n in range(20)])
            over.wait(0.2)
    finally:
        over.set()
        killer.join(60)
    eventually(ended, "all have run")
    assert_each_started_once(fleet, [f"{batch}-{n}" for batch in range(20) for n in range(20)])
    eventually(lambda: not OutboxMessage.objects.exists(), "what they had leased is published again")
