"""turno.testing: recurring jobs fire at their instants while a drain moves the clock."""

from datetime import UTC, datetime, timedelta

import pytest

from jobs.schedules import Wanted, create, disable
from tests.handlers_api.drained import declare
from tests.transitions.recurring import recurring
from turno.testing import drain, frozen_time

pytestmark = pytest.mark.django_db
NOON = "2026-03-02T12:00:00Z"


@pytest.fixture
def hourly():
    """A recurring job of each hour, made at noon: its id, and the clock."""
    declare("drain.hourly", lambda ctx: None)
    with frozen_time(NOON) as clock:
        yield create(Wanted("hourly", "drain.hourly", "0 * * * *"), actor="ana"), clock


def test_it_runs_at_each_of_its_instants_up_to_the_end_that_was_given(hourly):
    drained = drain(with_scheduled=timedelta(hours=3, minutes=30))
    start = datetime(2026, 3, 2, 13, tzinfo=UTC)
    assert [run.at for run in drained.succeeded] == [start + timedelta(hours=n) for n in range(3)]
    id_, clock = hourly
    assert clock.now == start + timedelta(hours=2, minutes=30)
    assert recurring(id_)["next_run_at"] == start + timedelta(hours=3)


def test_what_is_due_fires_in_any_drain(hourly):
    assert not drain()
    hourly[1].advance(hours=1)
    assert len(drain()) == 1
    assert not drain()


def test_a_drain_without_an_end_does_not_run_for_ever(hourly):
    hourly[1].advance(hours=1)
    assert len(drain(with_scheduled=True)) == 1


def test_one_that_is_disabled_does_not_hold_the_clock(hourly):
    disable(hourly[0], actor="ana")
    assert not drain(with_scheduled="2026-03-03T12:00:00Z")
    assert hourly[1].now == datetime(2026, 3, 3, 12, tzinfo=UTC)


def test_what_was_missed_while_the_clock_jumped_is_as_its_policy_says(hourly):
    hourly[1].advance(hours=5)
    assert len(drain()) == 1
    assert recurring(hourly[0])["skipped"] == 4
