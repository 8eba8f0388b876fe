"""Who parks for a breaker against who closes it, claims against both: nobody is left behind, one probe at a time."""

from random import Random

import pytest

from jobs import transitions
from jobs.outcomes import Ending
from jobs.retry import RetryPolicy
from jobs.states import Outcome, Reason, State
from jobs.transitions import Trip
from tests.races.two import Other, holding, is_free, rival, together
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import CALLER, claimant
from tests.transitions.rows import ago, execute, make_job, make_jobs, make_worker, select

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
ENGINE = "engine"
TYPE = "a.type"


@pytest.fixture(autouse=True)
def probed(committed):
    """A breaker whose probe runs: the claim of it."""
    make_worker(queues={"default": 9}, types=[TYPE])
    execute(
        f"INSERT INTO turno.circuits (type, state, opened_at, retry_at) VALUES ('{TYPE}', 'open', {ago(40)}, {ago(1)})"
    )
    make_job(State.SCHEDULED, waiting_for="circuit", gate=TYPE, type=TYPE)
    assert let_through() == 1
    [claim] = claimed()
    yield claim
    execute("DELETE FROM turno.workers")
    execute("DELETE FROM turno.circuits")


def let_through(using="default"):
    return transitions.probe({TYPE: 600.0}, patience=60.0, silent_after=60.0, using=using)[1]


def claimed(using="default"):
    offer = [("default", n) for n in range(1, 9)]
    return transitions.claim_next(offer, types=[TYPE], **claimant(), using=using)


def close(claim, using="default"):
    end = Ending(claim.id, claim.dispatch_id, State.SUCCEEDED, Outcome.SUCCEEDED, Reason.SUCCEEDED, duration=1.0)
    return transitions.settle([end], worker_id=CALLER, using=using)


def test_who_parks_while_the_breaker_is_closing_parks_nothing(probed):
    made = make_job(type=TYPE)
    with holding():
        close(probed)
        parker = Other(lambda: transitions.park_circuit([(made.id, made.token)], types={TYPE}, using=ENGINE))
        parker.is_waiting()
    assert parker.answer() == set()
    assert [claim.id for claim in claimed()] == [made.id]


def test_who_closes_while_somebody_parks_wakes_what_was_parked(probed):
    made = make_job(type=TYPE)
    with holding():
        assert transitions.park_circuit([(made.id, made.token)], types={TYPE}) == {made.id}
        closer = Other(lambda: close(probed, using=ENGINE))
        closer.is_waiting()
    closer.answer()
    assert rows.edges(made.id) == [("Enqueued", "Scheduled", "circuit_open"), ("Scheduled", "Enqueued", "gate_opened")]


def test_who_parks_what_waits_while_the_breaker_is_closing_parks_nothing(probed):
    make_jobs(5, type=TYPE)
    with holding():
        close(probed)
        parker = Other(lambda: transitions.park_waiting([TYPE], limit=9, silent_after=60.0, using=ENGINE))
        parker.is_waiting()
    assert parker.answer() == 0
    assert len(claimed()) == 5


LOSSES = {"policy_of": lambda _type: RetryPolicy(), "lost_limit": 3, "rng": Random(1), "limit": 9, "using": ENGINE}
ENDS = {
    "expire": lambda _claim: transitions.expire(grace=15.0, **LOSSES),
    "take_back": lambda _claim: transitions.take_back(CALLER, **LOSSES),
    "release": lambda claim: transitions.release([(claim.id, claim.dispatch_id)], worker_id=CALLER, using=ENGINE),
    "settle": lambda claim: close(claim, using=ENGINE),
}


@pytest.mark.parametrize("verb", ENDS)
def test_who_ends_the_probe_locks_the_breaker_first_and_then_the_job(verb, probed):
    """In another order two that end the same execution, its owner and recovery, would wait for each other."""
    execute(f"UPDATE turno.jobs SET lease_expires_at = {ago(60)} WHERE state = 'Processing'")
    with rival() as other:
        other.execute("SELECT FROM turno.circuits FOR NO KEY UPDATE")
        late = Other(lambda: ENDS[verb](probed))
        late.is_waiting()
        assert is_free(probed.id)
        other.commit()
    assert len(late.answer()) == 1


def test_of_many_leaders_one_lets_one_probe_through(probed):
    execute(
        f"UPDATE turno.circuits SET state = 'open', retry_at = {ago(1)}, probe_job_id = NULL, probe_deadline = NULL"
    )
    make_jobs(20, State.SCHEDULED, waiting_for="circuit", gate=TYPE, type=TYPE)
    assert sum(together([lambda: let_through(using=ENGINE)] * 4)) == 1
    assert select("SELECT count(*) AS n FROM turno.jobs WHERE state = 'Enqueued'") == [{"n": 1}]


def test_of_many_workers_one_opens_the_breaker(probed):
    close(probed)
    reason = Trip(TYPE, 10, 10, 30.0, 30.0, 0.0)
    found = together([lambda: transitions.trip([reason], using=ENGINE)] * 4)
    assert sum(len(one.opened) for one in found) == 1


def test_a_breaker_that_opens_and_closes_under_claims_and_parks_leaves_nobody_behind(probed):
    """What is parked behind a closed breaker when all have looked for the last time would wait for ever."""
    execute("UPDATE turno.circuits SET state = 'closed', probe_job_id = NULL, probe_deadline = NULL")
    made = [make_job(type=TYPE) for _ in range(40)]

    def opens():
        for _ in range(20):
            transitions.trip([Trip(TYPE, 10, 10, 30.0, 30.0, 0.0)], using=ENGINE)
            transitions.park_waiting([TYPE], limit=10, silent_after=60.0, using=ENGINE)

    def closes():
        for _ in range(20):
            execute("UPDATE turno.circuits SET state = 'closed', closed_at = NULL WHERE state = 'open'", using=ENGINE)
            while transitions.open_circuits(limit=10, using=ENGINE):
                pass

    def claims():
        return [claim.id for _ in range(40) for claim in claimed(using=ENGINE)]

    _, _, one, two = together([opens, closes, claims, claims])
    execute("UPDATE turno.circuits SET state = 'closed'")
    while transitions.open_circuits(limit=10, using=ENGINE):
        pass
    rest = []
    while found := claimed():
        rest += [claim.id for claim in found]
    assert sorted([*one, *two, *rest]) == sorted(job.id for job in made)
