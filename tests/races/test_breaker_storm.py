"""Trips, parks, probes, ends, cancels and recovery of one type from many connections at once, by chance."""

from collections import Counter
from random import Random
from time import monotonic

import pytest

from jobs import transitions
from jobs.outcomes import Ending
from jobs.retry import RetryPolicy
from jobs.states import Outcome, Reason, State, Waiting
from jobs.transitions import Trip, Wanted
from tests.races.two import together
from tests.transitions import COMMITTED
from tests.transitions.edges import CALLER, claimant
from tests.transitions.rows import execute, make_jobs, make_worker, select

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
ENGINE = "engine"
TYPE = "a.type"
SECONDS = 4.0  # of storm
JOBS = 300
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


@pytest.fixture(autouse=True)
def house(committed):
    make_worker(queues={"default": 9}, types=[TYPE, "other"])
    make_jobs(JOBS, type=TYPE, max_attempts=100)
    make_jobs(JOBS, type="other", max_attempts=100)
    yield
    execute("DELETE FROM turno.workers")
    execute("DELETE FROM turno.circuits")


def housekeeping(rng):
    """What the leader does about breakers and recovery; two leaders may, after a change."""
    transitions.promote(limit=50, using=ENGINE)
    transitions.open_circuits(limit=20, using=ENGINE)
    transitions.park_waiting([TYPE], limit=rng.randint(1, 30), silent_after=600.0, using=ENGINE)
    transitions.probe({TYPE: 600.0}, patience=60.0, silent_after=600.0, using=ENGINE)
    losses = {"policy_of": lambda _type: RetryPolicy(base=0.0), "lost_limit": 100, "rng": rng}
    transitions.expire(grace=0.0, limit=5, **losses, using=ENGINE)


def trips(rng):
    transitions.trip([Trip(TYPE, 10, 10, 30.0, rng.choice([0.1, 0.2]), 0.0)], using=ENGINE)


def cancels(rng):
    found = select("SELECT id FROM turno.jobs WHERE state <> 'Cancelled' ORDER BY random() LIMIT 2")
    if rng.random() < 0.1:
        transitions.cancel([row["id"] for row in found], using=ENGINE)


class Worker:
    """Claims by search or by message, and ends what it has in any way; `started` has each execution it was given."""

    def __init__(self):
        self.held, self.started = [], []

    def __call__(self, rng):
        lease = rng.choice([0.0, 60.0])  # the first is lost at once: its owner and recovery both end it
        owner = claimant() | {"lease": lease, "using": ENGINE}
        if rng.random() < 0.5:
            found = transitions.claim_next([("default", n) for n in range(1, 5)], types=[TYPE, "other"], **owner)
        else:
            rows = select("SELECT id, dispatch_id FROM turno.jobs WHERE state = 'Enqueued' ORDER BY random() LIMIT 4")
            wanted = [Wanted(row["id"], row["dispatch_id"], n, "default") for n, row in enumerate(rows)]
            found = transitions.claim(wanted, types=[TYPE, "other"], **owner)
            got = {claim.dispatch_id for claim in found}
            transitions.left([one for one in wanted if one.token not in got], types=[TYPE, "other"], using=ENGINE)
        self.started += [(claim.id, claim.dispatch_id) for claim in found]
        self.held += found
        rng.shuffle(self.held)
        ends, self.held = self.held[:3], self.held[3:]
        if rng.random() < 0.2:
            transitions.release([(claim.id, claim.dispatch_id) for claim in ends], worker_id=CALLER, using=ENGINE)
        else:
            transitions.settle([self.ending(claim, rng) for claim in ends], worker_id=CALLER, using=ENGINE)

    def ending(self, claim, rng):
        if rng.random() < 0.1:
            return Ending(claim.id, claim.dispatch_id, State.SUCCEEDED, Outcome.SUCCEEDED, Reason.SUCCEEDED)
        retry = {"delay": 0.0, "waiting_for": Waiting.RETRY, "counted": False}
        return Ending(claim.id, claim.dispatch_id, State.SCHEDULED, Outcome.FAILED, Reason.RETRY, **retry)


def test_after_a_storm_nobody_is_left_behind_and_nothing_was_started_twice():
    [before] = select(DEADLOCKS)
    until = monotonic() + SECONDS
    workers = [Worker(), Worker(), Worker()]

    def storm(act, seed):
        def run():
            rng = Random(seed)
            while monotonic() < until:
                act(rng)

        return run

    together([storm(act, n) for n, act in enumerate([housekeeping, housekeeping, trips, cancels, *workers])])
    started = Counter(one for worker in workers for one in worker.started)
    assert started.most_common(1)[0][1] == 1
    changes = Counter(row["reason"] for row in select("SELECT reason FROM turno.job_state_changes"))
    assert min(changes["circuit_open"], changes["gate_opened"], changes["worker_lost"], changes["cancelled"]) > 0
    half = select("SELECT probe_job_id FROM turno.circuits WHERE state = 'half_open'")
    assert len(half) <= 1

    execute("UPDATE turno.circuits SET state = 'closed', retry_at = NULL, probe_job_id = NULL, probe_deadline = NULL")
    while transitions.open_circuits(limit=50, using=ENGINE):
        pass
    assert select("SELECT id FROM turno.jobs WHERE waiting_for = 'circuit'") == []
    [after] = select(DEADLOCKS)
    assert after == before
