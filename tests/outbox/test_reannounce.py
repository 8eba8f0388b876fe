"""Which jobs count as announced, which are announced again, and how seldom."""

from uuid import uuid4

import pytest

from jobs import transitions
from jobs.states import State
from jobs.transitions import OUTBOX
from tests.outbox.rows import outbox, put
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import ago, execute, make_job

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
SETTLED = 10.0


def count(queue="default", most=1000, age=SETTLED, using="default"):
    return transitions.announced(queue, age=age, most=most, using=using)


def again(queue="default", limit=100, age=SETTLED, using="default"):
    return transitions.reannounce_oldest(queue, age=age, limit=limit, using=using)


def old(**columns):
    """A job whose message was confirmed a minute ago."""
    return make_job(**{"enqueued_at": ago(70), "announced_at": ago(60)} | columns)


def test_the_queues_that_have_waiting_jobs_are_those_by_name(using):
    assert transitions.waiting_queues(using=using) == []
    for queue in ("b", "a", "b"):
        make_job(queue=queue)
    make_job(State.SCHEDULED, queue="c")
    make_job(State.PROCESSING, queue="d")
    assert transitions.waiting_queues(using=using) == ["a", "b"]


def test_a_job_counts_as_announced_some_time_after_its_message_left_the_outbox(using):
    old()
    old(announced_at=ago(5))
    old(announced_at=None)  # enqueued long ago, and no message was ever written
    make_job(announced_at=None, enqueued_at=ago(5))
    put(old())
    put(old(), dispatch_id=uuid4())  # the message of an earlier entry
    old(queue="other")
    make_job(State.SCHEDULED)
    make_job(State.PROCESSING)
    assert count(using=using) == 3
    assert count(using=using, most=2) == 2
    assert count("nobody's", using=using) == 0


def test_the_oldest_are_announced_again_with_the_token_that_they_have(using, ear):
    oldest, urgent, young = (old(priority=p, enqueued_at=ago(age)) for p, age in ((-3, 900), (9, 300), (0, 80)))
    assert again(limit=2, using=using) == 2
    assert [(m["job_id"], m["dispatch_id"], m["priority"], m["kind"]) for m in outbox()] == [
        (made.id, made.token, priority, "dispatch")
        for made, priority in sorted([(oldest, -3), (urgent, 9)], key=lambda pair: pair[0].id)
    ]
    assert ear.heard() == [(OUTBOX, "")]
    for made in (oldest, urgent, young):
        row = rows.job(made.id)
        assert (row["state"], row["dispatch_id"], rows.history(made.id)) == ("Enqueued", made.token, [])
        assert (row["reannounced_at"] is None) is (made is young)
    assert count(using=using) == 1


def test_one_entry_is_announced_again_once_in_ten_minutes_at_most(using, ear):
    made = old()
    assert again(using=using) == 1
    execute("DELETE FROM turno.outbox_messages")
    execute(f"UPDATE turno.jobs SET announced_at = {ago(30)}")
    ear.heard()
    assert again(using=using) == 0
    assert ear.heard() == []
    execute(f"UPDATE turno.jobs SET enqueued_at = {ago(5000)}, reannounced_at = {ago(590)}")
    assert again(using=using) == 0
    execute(f"UPDATE turno.jobs SET reannounced_at = {ago(610)}")
    assert again(using=using) == 1
    assert [message["dispatch_id"] for message in outbox()] == [made.token]


def test_another_entry_of_the_same_job_is_announced_again_without_that_wait(using):
    made = old(enqueued_at=ago(50), announced_at=ago(40), reannounced_at=ago(60))
    assert again(using=using) == 1
    assert [message["dispatch_id"] for message in outbox()] == [made.token]


def test_those_of_the_last_ten_minutes_keep_no_other_back(using):
    for _ in range(5):
        old(enqueued_at=ago(500), reannounced_at=ago(20))
    made = old()
    assert again(limit=2, using=using) == 1
    assert [message["job_id"] for message in outbox()] == [made.id]


def test_what_the_broker_gave_up_is_announced_again_where_it_still_counts(using, ear):
    made, lately, claimed, later = old(), old(reannounced_at=ago(5)), make_job(State.PROCESSING), make_job()
    pairs = [(m.id, m.token) for m in (made, lately, claimed)] + [(later.id, uuid4()), (uuid4(), uuid4())]
    assert transitions.reannounce(pairs, using=using) == 2
    assert {message["dispatch_id"] for message in outbox()} == {made.token, lately.token}
    assert ear.heard() == [(OUTBOX, "")]
    assert transitions.reannounce([], using=using) == 0
