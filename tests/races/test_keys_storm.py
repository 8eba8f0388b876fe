"""Keys and limits from many connections at once, by chance: never more than the limit, nobody is left waiting."""

import threading
from collections import Counter
from random import Random
from time import monotonic

import pytest

from jobs import transitions
from jobs.ids import new_id
from jobs.outcomes import Ending
from jobs.ratelimit import Limits
from jobs.retry import RetryPolicy
from jobs.states import Outcome, Reason, State, Waiting
from jobs.transitions import Wanted
from jobs.transitions.insert import insert
from tests.kit.gatecheck import wrong_slots
from tests.races.two import together
from tests.transitions import COMMITTED
from tests.transitions.ear import Ear
from tests.transitions.edges import CALLER, claimant
from tests.transitions.flow import new, room_and_waiting
from tests.transitions.rows import execute, make_worker, select

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
ENGINE = "engine"
TYPES = ["a.type", "limited", "other"]
KEYS = {"one": 1, "two": 2, "five": 5}
MOST = 3  # of the type "limited"
SECONDS = 4.0  # of storm
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
TOO_MANY = (
    "SELECT concurrency_key AS what, count(*) AS n FROM turno.jobs WHERE state = 'Processing' "
    "AND concurrency_key IS NOT NULL GROUP BY 1 UNION ALL "
    "SELECT 'type limited', count(*) FROM turno.jobs WHERE state = 'Processing' AND type = 'limited'"
)


@pytest.fixture(autouse=True)
def house(committed):
    make_worker(queues={"default": 9}, types=TYPES)
    transitions.set_limits("limited", Limits(max_running=MOST), actor="ana")
    yield
    execute("DELETE FROM turno.workers")


def enqueues(rng):
    """A few jobs, with a key or without, now or soon, alone or in a batch."""
    rows = []
    for id_ in sorted(new_id() for _ in range(rng.choice([1, 1, 2, 6]))):
        key = rng.choice([None, *KEYS])
        columns = {} if key is None else {"concurrency_key": key, "concurrency_limit": KEYS[key]}
        delay = {"delay": 0.05} if rng.random() < 0.2 else {}
        rows.append(
            new(id_, type=rng.choice(TYPES), priority=rng.randint(-2, 2), **columns, **delay)._replace(max_attempts=100)
        )
    insert(rows, using=ENGINE)
    threading.Event().wait(rng.random() / 15)


def housekeeping(rng):
    """What the leader does about instants and lost workers; two leaders may, after a change."""
    transitions.promote(limit=20, using=ENGINE)
    losses = {"policy_of": lambda _type: RetryPolicy(base=0.0), "lost_limit": 100, "rng": rng}
    transitions.expire(grace=0.0, limit=5, **losses, using=ENGINE)
    transitions.park_unserved(limit=5, unserved_for=0.0, silent_after=60.0, unwatched_after=60.0, using=ENGINE)


class Leader:
    """Opens the gates that it hears of; some it does not hear of in time."""

    def __init__(self):
        self.heard = []

    def __call__(self, rng):
        with Ear() as ear:
            while not self.over():
                threading.Event().wait(0.02)
                gates = {payload.partition(":")[::2] for channel, payload in ear.heard() if channel == "turno_gates"}
                named = sorted((kind, value) for kind, value in gates if kind in ("key", "type"))
                transitions.open_keys(named, limit=100, using=ENGINE)
                transitions.open_ids({int(value) for kind, value in gates if kind == "id"}, limit=100, using=ENGINE)

    over = staticmethod(lambda: True)


def people(rng):
    """Cancel, requeue, park by hand: whoever takes a job out of its queue."""
    found = [row["id"] for row in select("SELECT id FROM turno.jobs ORDER BY random() LIMIT 3")]
    if rng.random() < 0.3:
        transitions.cancel(found, using=ENGINE)
    transitions.requeue(found, using=ENGINE)
    transitions.run_now(found, using=ENGINE)
    rows = select("SELECT id, dispatch_id FROM turno.jobs WHERE state = 'Enqueued' ORDER BY random() LIMIT 2")
    if rng.random() < 0.3:
        transitions.defer([(row["id"], row["dispatch_id"]) for row in rows], using=ENGINE)


class Worker:
    """Claims by search or by message, and ends what it has in any way; `started` has each execution it was given."""

    def __init__(self):
        self.held, self.started = [], []

    def __call__(self, rng):
        owner = claimant() | {"lease": rng.choice([0.0, 60.0, 60.0]), "using": ENGINE}
        if rng.random() < 0.6:
            found = transitions.claim_next([("default", n) for n in range(1, 5)], types=TYPES, **owner)
        else:
            rows = select("SELECT id, dispatch_id FROM turno.jobs WHERE state = 'Enqueued' ORDER BY random() LIMIT 4")
            wanted = [Wanted(row["id"], row["dispatch_id"], n, "default") for n, row in enumerate(rows)]
            found = transitions.claim(wanted, types=TYPES, **owner)
            got = {claim.dispatch_id for claim in found}
            transitions.left([one for one in wanted if one.token not in got], types=TYPES, using=ENGINE)
        self.started += [(claim.id, claim.dispatch_id) for claim in found]
        self.held += found
        rng.shuffle(self.held)
        ends, self.held = self.held[:3], self.held[3:]
        if rng.random() < 0.2:
            transitions.release([(claim.id, claim.dispatch_id) for claim in ends], worker_id=CALLER, using=ENGINE)
        else:
            self.end(ends, rng)

    def end(self, ends, rng):
        transitions.settle([self.ending(claim, rng) for claim in ends], worker_id=CALLER, using=ENGINE)

    def ending(self, claim, rng):
        if rng.random() < 0.7:
            return Ending(claim.id, claim.dispatch_id, State.SUCCEEDED, Outcome.SUCCEEDED, Reason.SUCCEEDED)
        retry = {"delay": 0.0, "waiting_for": Waiting.RETRY, "counted": False}
        return Ending(claim.id, claim.dispatch_id, State.SCHEDULED, Outcome.FAILED, Reason.RETRY, **retry)


class Watcher:
    """Looks all the time whether more run than may, and whether slots and executions agree; each look is a snapshot."""

    def __init__(self):
        self.seen = Counter()

    def __call__(self, rng):
        for row in select(TOO_MANY):
            self.seen[row["what"]] = max(self.seen[row["what"]], row["n"])
        assert wrong_slots() == []


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.longo)])
def test_at_no_moment_more_run_than_may_and_nobody_is_left_behind(seed):
    [before] = select(DEADLOCKS)
    until = monotonic() + SECONDS
    workers, watcher, leader = [Worker(), Worker(), Worker()], Watcher(), Leader()
    leader.over = lambda: monotonic() >= until

    def storm(act, number):
        def run():
            rng = Random(seed * 100 + number)
            while monotonic() < until:
                act(rng)

        return run

    acts = [housekeeping, housekeeping, people, enqueues, enqueues, leader, watcher, *workers]
    together([storm(act, number) for number, act in enumerate(acts)])
    started = Counter(one for worker in workers for one in worker.started)
    assert started.most_common(1)[0][1] == 1
    limits = KEYS | {"type limited": MOST}
    assert all(1 <= watcher.seen[what] <= most for what, most in limits.items()), watcher.seen

    calm(workers)
    [after] = select(DEADLOCKS)
    assert after == before
    left = select(
        "SELECT id, state, waiting_for, gate FROM turno.jobs WHERE state IN ('Scheduled', 'Enqueued', 'Processing')"
    )
    assert left == []
    assert select("SELECT * FROM turno.concurrency_slots") == []


def calm(workers):
    """All that is left is run to its end, without a sweep: whoever waits is woken by whoever ends."""
    rng = Random(0)
    losses = {"policy_of": lambda _type: RetryPolicy(base=0.0), "lost_limit": 100, "rng": rng}
    for _round in range(500):
        for worker in workers:
            worker.end(worker.held, Random(1))
            worker.held = []
        while transitions.promote(limit=100, using=ENGINE) or transitions.expire(
            grace=0.0, limit=50, **losses, using=ENGINE
        ):
            pass
        transitions.open_unknown(limit=100, silent_after=600.0, using=ENGINE)
        workers[0].held = transitions.claim_next(
            [("default", n) for n in range(1, 61)], types=TYPES, **claimant(), using=ENGINE
        )
        if not workers[0].held and not select(
            "SELECT id FROM turno.jobs WHERE run_at IS NOT NULL OR state = 'Processing'"
        ):
            break
    if room_and_waiting():
        raise AssertionError(f"nobody wakes who waits at {room_and_waiting()}")
