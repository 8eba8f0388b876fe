"""A rate is paid where a job starts: what is woken and waits for a worker, is cancelled or put aside pays nothing."""

import pytest

from jobs import transitions
from jobs.ratelimit import RateLimit
from jobs.transitions import Wanted
from tests.kit.gatecheck import wrong_slots
from tests.transitions import rows
from tests.transitions.edges import claimant
from tests.transitions.flow import TYPE, end, held, search
from tests.transitions.rows import execute, make_worker, select
from tests.transitions.test_limits import a_while_ago, limit, many, parked

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_slot_astray():
    """After each test all slots belong to somebody."""
    yield
    assert wrong_slots() == []


def by_messages(slots):
    waiting = select("SELECT id, dispatch_id FROM turno.jobs WHERE state = 'Enqueued' ORDER BY id LIMIT %s", slots)
    wanted = [Wanted(row["id"], row["dispatch_id"], slot) for slot, row in enumerate(waiting, 1)]
    return transitions.claim(wanted, **claimant())


CLAIMS = pytest.mark.parametrize("claim", [search, by_messages])


def three_wait_for_their_hour(**columns):
    limit(rate=RateLimit(1, 3600.0))
    many(4, **columns)
    end(*search(1))
    assert search(9) == []
    a_while_ago(3700)


@CLAIMS
def test_what_is_woken_while_no_worker_is_free_starts_no_faster_than_the_rate(claim):
    three_wait_for_their_hour()
    assert [transitions.open_rates(limit=100)[0] for _hour in range(3) if a_while_ago(3700) is None] == [1, 0, 0]
    assert len(claim(9)) == 1
    assert (parked("rate"), claim(9)) == (2, [])


@CLAIMS
def test_of_those_that_are_woken_and_meet_the_rate_starts_as_many_as_may_and_parks_the_others(claim):
    three_wait_for_their_hour()
    limit(rate=RateLimit(3, 3600.0))
    assert transitions.open_rates(limit=100)[0] == 3
    limit(rate=RateLimit(1, 3600.0))
    assert len(claim(9)) == 1
    assert (parked("rate"), transitions.open_rates(limit=100)[0]) == (2, 0)
    a_while_ago(3700)
    assert transitions.open_rates(limit=100)[0] == 1
    assert len(claim(9)) == 1


def test_a_woken_job_that_is_cancelled_costs_nothing():
    three_wait_for_their_hour()
    assert transitions.open_rates(limit=100)[0] == 1
    transitions.cancel([row["id"] for row in select("SELECT id FROM turno.jobs WHERE state = 'Enqueued'")])
    assert transitions.open_rates(limit=100)[0] == 1
    assert len(search(9)) == 1


def test_a_woken_job_that_is_parked_for_a_pause_costs_nothing():
    three_wait_for_their_hour(tags=("import",))
    assert transitions.open_rates(limit=100)[0] == 1
    execute("UPDATE turno.jobs SET tags = '{}' WHERE waiting_for = 'rate'")
    transitions.pause("tag", "import")
    [woken] = select("SELECT id, dispatch_id FROM turno.jobs WHERE state = 'Enqueued'")
    assert transitions.park_paused([(woken["id"], woken["dispatch_id"])]) == {woken["id"]}
    assert transitions.open_rates(limit=100)[0] == 1
    assert len(search(9)) == 1


def test_what_a_woken_job_holds_of_a_key_goes_to_the_next_when_its_rate_is_spent():
    three_wait_for_their_hour()
    key = {"concurrency_key": "k", "concurrency_limit": 1}
    (rated,) = many(1, priority=1, **key)
    assert transitions.open_rates(limit=100)[0] == 1
    assert held("key", "k") == [rated]
    (other,) = many(1, type="other", **key)
    assert search(1, types=["other"]) == []
    limit(rate=RateLimit(2, 3600.0))
    execute("UPDATE turno.rates SET spent = jsonb_build_array(jsonb_build_array("
            "floor(extract(epoch FROM clock_timestamp()) / 72)::bigint, 2))")  # fmt: skip
    assert search(1) == []
    assert (rows.job(rated)["waiting_for"], held("key", "k")) == ("rate", [other])
    assert [claim.id for claim in search(1, types=["other"])] == [other]


def test_a_woken_job_whose_queue_nobody_serves_gives_its_start_back():
    three_wait_for_their_hour()
    execute("UPDATE turno.jobs SET queue = 'nobody', priority = 1 WHERE id = ("
            "SELECT id FROM turno.jobs WHERE waiting_for = 'rate' LIMIT 1)")  # fmt: skip
    make_worker(queues={"default": 4}, types=[TYPE])
    assert transitions.open_rates(limit=100)[0] == 1
    assert transitions.free_idle(limit=10, silent_after=60.0) == 0
    execute("UPDATE turno.job_state_changes SET at = at - interval '1 minute'")
    assert transitions.free_idle(limit=10, silent_after=60.0) == 1
    assert transitions.open_rates(limit=100)[0] == 1
    assert transitions.free_idle(limit=10, silent_after=60.0) == 0
    assert [claim.queue for claim in search(9)] == ["default"]
    assert search(9, queue="nobody") == []
