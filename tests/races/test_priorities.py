"""Within a queue strictly by priority, and of equal ones by the instant of enqueueing, whoever claims beside whom."""

from random import Random

import pytest

from jobs import transitions
from tests.races.two import together
from tests.transitions import COMMITTED
from tests.transitions.edges import claimant
from tests.transitions.rows import Sql, make_jobs, select

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
ENGINE = "engine"
# When each claim began, and when its rows were written, by the database's clock.
ORDER = """
SELECT id, priority, enqueued_at, claimed_at AS began, lease_expires_at - make_interval(secs => %s) AS written
FROM turno.jobs ORDER BY priority DESC, enqueued_at, id
"""
AGE = Sql("now() - (n * 7919 % 1000) * interval '1 second'")


def claims(seed=0, most=7):
    """Claims in turn a few at a time, until nothing is left."""
    rng = Random(seed)

    def run():
        while transitions.claim_next(
            [("default", n) for n in range(1, rng.randint(2, most))], types=["test.echo"], **claimant(), using=ENGINE
        ):
            pass

    return run


def test_nobody_takes_a_job_while_a_better_one_is_left():
    make_jobs(400, priority=Sql("n * 31 % 21 - 10"), enqueued_at=AGE)
    together([claims(seed) for seed in range(4)])
    found = select(ORDER, claimant()["lease"])
    assert len(found) == 400
    latest = found[0]["began"]
    for row in found:  # whoever took this one had begun after all of the better ones were being taken, or waited for
        assert latest <= row["written"]
        latest = max(latest, row["began"])


def test_a_priority_that_changes_while_others_claim_counts_from_then_on_and_nothing_runs_twice():
    make_jobs(300, priority=-5, enqueued_at=AGE)
    ids = [row["id"] for row in select("SELECT id FROM turno.jobs ORDER BY id")]

    def changes():
        for place in range(0, 300, 10):
            transitions.reprioritise(ids[place : place + 10], 5, using=ENGINE)

    together([changes, claims(1, most=4), claims(2, most=4)])
    assert select("SELECT DISTINCT state, executions FROM turno.jobs") == [{"state": "Processing", "executions": 1}]
    assert transitions.reprioritise(ids[:3], 1)[0].problem == "state"


def test_alone_the_order_is_exact():
    make_jobs(120, priority=Sql("n * 31 % 21 - 10"), enqueued_at=AGE)
    wanted = [row["id"] for row in select("SELECT id FROM turno.jobs ORDER BY priority DESC, enqueued_at, id")]
    taken = []
    while found := transitions.claim_next(
        [("default", n) for n in range(1, 8)], types=["test.echo"], **claimant(), using=ENGINE
    ):
        taken += [claim.id for claim in found]
    assert taken == wanted
