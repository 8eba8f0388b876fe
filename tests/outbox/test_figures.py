"""What people are told of the outbox: how much waits, since when, what fails and why."""

import pytest

from jobs import queries
from jobs.conf import overridden
from jobs.queries.outbox import Undelivered
from jobs.states import State
from tests.outbox.rows import put
from tests.transitions import rows
from tests.transitions.rows import ago, ahead, execute, make_job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("configured")]
NOTHING = queries.Outbox(0, False, None, 0, None, ())


def test_an_empty_outbox():
    assert queries.outbox() == NOTHING


def test_what_a_former_broker_left_waits_for_nobody():
    put(make_job(), created_at=ago(700), failures=2, last_error="x")
    assert queries.outbox().waiting == 1
    with overridden(messaging={"transport": "postgres"}):
        assert queries.outbox() == NOTHING


def test_what_waits_is_counted_with_the_age_of_the_oldest_and_by_queue():
    put(make_job(queue="b"), created_at=ago(40))
    put(make_job(queue="a"), created_at=ago(700), locked_until=ahead(20))
    put(make_job(queue="a"), created_at=ago(5))
    put(make_job(State.FAILED, queue="a"), kind="dead_letter", dispatch_id=None, created_at=ago(9))
    found = queries.outbox()
    assert (found.waiting, found.at_least, found.failing, found.last_error) == (4, False, 0, None)
    assert found.oldest_age == pytest.approx(700, abs=20)
    assert [(q.queue, q.waiting) for q in found.queues] == [("a", 2), ("b", 1), ("dead-letter", 1)]


def test_what_fails_says_why_in_the_words_of_the_newest():
    put(make_job(queue="a"), failures=9, last_error="an old one")
    put(make_job(queue="b"), failures=1, last_error="NO_ROUTE")
    put(make_job(queue="b"))
    found = queries.outbox()
    assert (found.failing, found.last_error) == (2, "NO_ROUTE")
    assert [(q.queue, q.waiting, q.failing) for q in found.queues] == [("a", 1, 1), ("b", 2, 1)]


def test_beyond_a_bound_it_says_so(monkeypatch):
    import sys

    monkeypatch.setattr(sys.modules["jobs.queries.outbox"], "COUNTED", 5)
    for _ in range(4):
        put(make_job(), created_at=ago(60))
    assert not queries.outbox().at_least
    rows.make_jobs(9)
    execute(
        "INSERT INTO turno.outbox_messages (job_id, dispatch_id, queue) SELECT id, dispatch_id, queue FROM turno.jobs"
    )
    found = queries.outbox()
    assert (found.waiting, found.at_least) == (5, True)
    assert found.oldest_age == pytest.approx(60, abs=20)


def test_a_clock_that_is_behind_makes_no_negative_age():
    put(make_job(), created_at=ahead(30))
    assert queries.outbox().queues == (Undelivered("default", 1, 0.0, 0),)
