"""Types that jobs wait for and nobody has, as people are told: since when, how many, when they end."""

import sys
from datetime import datetime

import pytest

from jobs.conf import overridden
from jobs.queries import Kind, attention, board, depths, detail, glance, hindrances, unserved
from tests.queries.house import pause, worker
from tests.transitions import rows
from tests.transitions.unserved import parked
from tests.transitions.unserved import unserved as watched

pytestmark = pytest.mark.django_db


def test_a_type_says_how_many_wait_since_when_and_when_the_first_of_them_ends():
    watched(since=600)
    parked(100)
    parked(400, priority=-10)
    parked(50, priority=10)
    parked(type="b.type", gate="b.type")
    parked(queue="other")
    [found] = unserved()
    assert (found.queue, found.type, found.jobs, found.at_least) == ("default", "a.type", 3, False)
    assert 600 <= found.since_for < 630
    assert isinstance(found.since, datetime)
    assert 3170 < found.fails_in <= 3200  # an hour after the oldest was enqueued: the type was gone before


def test_the_grace_counts_from_the_later_of_the_two_and_never_below_nothing():
    watched(since=100)
    watched(queue="late", since=9000)
    parked(8000)
    parked(8000, queue="late")
    late, young = unserved()
    assert (late.queue, late.fails_in) == ("late", 0)
    assert 3470 < young.fails_in <= 3500
    with overridden(resilience={"unknown_type_grace": 200.0}):
        assert 70 < unserved()[1].fails_in <= 100


def test_a_moments_absence_an_old_look_and_a_type_without_jobs_are_no_concern():
    watched(since=10)
    parked()
    watched(queue="old", seen=46)
    parked(queue="old")
    watched(queue="empty")
    rows.make_job(queue="empty", type="a.type")  # a worker may have it in its hands
    assert unserved() == []


def test_a_multitude_is_counted_up_to_a_bound(monkeypatch):
    monkeypatch.setattr(sys.modules["jobs.queries.unserved"], "COUNTED", 5)
    watched()
    for _ in range(6):
        parked()
    [found] = unserved()
    assert (found.jobs, found.at_least) == (5, True)


def test_the_twenty_that_miss_longest_are_told():
    for n in range(25):
        watched(type_=f"type.{n:02}", since=1000 + n)
        parked(type=f"type.{n:02}", gate=f"type.{n:02}")
    assert [found.type for found in unserved()] == [f"type.{n:02}" for n in range(24, 4, -1)]


def test_it_is_a_concern_after_the_queues_that_nobody_serves():
    worker("w", {"default": 2})
    rows.make_job(queue="lonely")
    watched(since=600)
    made = parked(600)
    seen = board({})
    lonely, unknown = attention(seen, depths(seen))
    assert (lonely.kind, unknown.kind) == (Kind.QUEUE_UNSERVED, Kind.TYPE_UNKNOWN)
    assert (unknown.subject, unknown.severity) == ("default:a.type", "failure")
    facts = unknown.facts
    assert (facts["type"], facts["queue"], facts["waiting"], facts["at_least"]) == ("a.type", "default", 1, False)
    assert facts["since_for"] >= 600
    assert 2970 < facts["fails_in"] <= 3000
    rows.execute("DELETE FROM turno.jobs WHERE id = %s", made.id)
    assert [concern.kind for concern in attention(seen, depths(seen))] == [Kind.QUEUE_UNSERVED]


def test_a_parked_job_says_when_it_ends_and_others_do_not():
    watched(since=60)
    made = parked(30)
    found = hindrances(glance(made.id).job)
    assert 60 <= found.grace.unserved_for < 90
    assert 3540 < found.grace.fails_in <= 3570
    assert 3540 < detail(made.id).fails_in <= 3570
    for other in (rows.make_job(type="a.type"), rows.make_job("Scheduled", type="a.type"),
                  parked(queue="unwatched"), rows.make_job("Failed", type="a.type"),
                  rows.make_job("Scheduled", type="a.type", waiting_for="circuit", gate="a.type")):  # fmt: skip
        assert detail(other.id).fails_in is None
        waits = hindrances(glance(other.id).job)
        assert waits is None or waits.grace is None


def test_whether_anybody_serves_it_goes_by_workers_with_slots():
    made = parked()
    pause("type", "x")
    worker("none", {"default": 0}, types=["a.type"])
    worker("odd", [], types=["a.type"])
    assert (detail(made.id).queue_served, detail(made.id).type_served) == (False, False)
    worker("w", {"default": 1}, types=["b"])
    assert (detail(made.id).queue_served, detail(made.id).type_served) == (True, False)
    worker("leaves", {"default": 1}, types=["a.type"], state="Draining")
    assert (detail(made.id).queue_served, detail(made.id).type_served) == (True, True)
