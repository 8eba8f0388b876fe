"""Rates under workers that are busy for as long as they like: whatever is woken, cancelled and claimed meanwhile, no
window has more starts than are allowed, and all that wait get their turn.

Time is a book's: what was spent was spent longer ago, a few fiftieths of the window at a time.
"""

from functools import partial
from random import Random

import pytest

from jobs import transitions
from jobs.ids import new_id
from jobs.ratelimit import PARTS, Limits, RateLimit
from jobs.transitions import Wanted
from tests.races.two import together
from tests.transitions import COMMITTED
from tests.transitions.ear import Ear
from tests.transitions.edges import claimant
from tests.transitions.flow import TYPE, end, enqueue, search
from tests.transitions.rows import execute, select

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
ENGINE = "engine"
WINDOW = 36_000.0  # seconds: none of the test's own seconds is a part of it
ALLOWED, JOBS = 3, 24
LATER = """
UPDATE turno.rates SET spent = (
    SELECT COALESCE(jsonb_agg(jsonb_build_array((s->>0)::bigint - %s, s->1)), '[]')
    FROM jsonb_array_elements(spent) AS s
)
"""
PARKED_TWICE = """
SELECT job_id FROM turno.job_state_changes WHERE reason = 'parked' GROUP BY job_id HAVING count(*) > 1
"""


def claims(slots, by_message):
    """What a worker with so many free slots starts; with none it is busy."""
    if not by_message:
        return [claim.id for claim in search(slots, using=ENGINE)]
    waiting = select("SELECT id, dispatch_id FROM turno.jobs WHERE state = 'Enqueued' ORDER BY id LIMIT %s", slots)
    wanted = [Wanted(row["id"], row["dispatch_id"], slot) for slot, row in enumerate(waiting, 1)]
    return [claim.id for claim in transitions.claim(wanted, **claimant(), using=ENGINE)]


def leads():
    transitions.open_rates(limit=100, using=ENGINE)
    return []


def cancels():
    """Whoever has waited longest of those that are woken."""
    found = select("SELECT id FROM turno.jobs WHERE state = 'Enqueued' ORDER BY id LIMIT 1")
    transitions.cancel([row["id"] for row in found], using=ENGINE)
    return []


@pytest.mark.parametrize("seed", range(2))
def test_no_window_has_more_starts_than_are_allowed_however_busy_the_workers_are(seed):
    rng = Random(seed)
    transitions.set_limits(TYPE, Limits(rate=RateLimit(ALLOWED, WINDOW)), actor="ana")
    enqueue(*(new_id() for _ in range(JOBS)))
    started = dict.fromkeys(claims(JOBS, by_message=False), 0)
    while claims(JOBS, by_message=False) or select("SELECT FROM turno.jobs WHERE state = 'Enqueued'"):
        pass  # all that wait are parked
    part = 0
    while select("SELECT FROM turno.jobs WHERE state IN ('Enqueued', 'Scheduled')"):
        part += (later := rng.choice([3, 11, 17, PARTS + 1]))
        assert part < 100 * PARTS, "they wait for a rate that has room"
        execute(LATER, later)
        busy = rng.random() < 0.6
        workers = [] if busy else [partial(claims, rng.randint(1, 4), rng.random() < 0.5) for _ in range(3)]
        people = [cancels] if rng.random() < 0.1 else []
        for found in together([leads, leads, *workers, *people]):
            started |= dict.fromkeys(found, part)
    starts = sorted(started.values())
    assert all(sum(first <= other < first + PARTS for other in starts) <= ALLOWED for first in starts)
    assert len(starts) + len(select("SELECT FROM turno.jobs WHERE state = 'Cancelled'")) == JOBS
    assert select(PARKED_TWICE) == []


def test_who_parks_a_woken_job_tells_of_its_rate():
    transitions.set_limits(TYPE, Limits(rate=RateLimit(1, WINDOW)), actor="ana")
    enqueue(new_id(), new_id(), tags=("import",))
    end(*search(1))
    assert search(1) == []
    execute(LATER, PARTS + 1)
    assert transitions.open_rates(limit=9)[0] == 1
    transitions.pause("tag", "import")
    woken = [(row["id"], row["dispatch_id"]) for row in select("SELECT * FROM turno.jobs WHERE state = 'Enqueued'")]
    with Ear() as ear:
        assert transitions.park_paused(woken) == {id_ for id_, _token in woken}
        assert f"type:{TYPE}" in [payload for channel, payload in ear.heard() if channel == transitions.GATES]
    transitions.resume("tag", "import")


def test_a_claim_that_parks_a_woken_job_tells_of_its_rate():
    transitions.set_limits(TYPE, Limits(rate=RateLimit(2, WINDOW)), actor="ana")
    enqueue(*(new_id() for _ in range(3)))
    end(*search(2))
    assert search(1) == []
    execute(LATER, PARTS + 1)
    assert transitions.open_rates(limit=9)[0] == 1
    enqueue(new_id(), new_id(), priority=1)
    end(*search(2))
    with Ear() as ear:
        assert search(1) == []
        assert f"type:{TYPE}" in [payload for channel, payload in ear.heard() if channel == transitions.GATES]
    assert transitions.open_rates(limit=9)[0] == 0
