"""A relay's rows: leased by one, the longest due first, deleted when confirmed, put off when refused, given back."""

from itertools import pairwise
from uuid import uuid4

import pytest

from jobs import transitions
from jobs.states import State
from tests.outbox.rows import all_due, lease, outbox, put, waiting
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import claimant
from tests.transitions.rows import ago, ahead, execute, make_job

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
BASE, CAP = 2.0, 300.0


def postpone(refused, lock_id, using="default", **curve):
    return transitions.postpone_outbox(refused, lock_id=lock_id, **({"base": BASE, "cap": CAP} | curve), using=using)


def test_a_leased_message_says_all_that_is_published_and_is_leased_by_nobody_else(using):
    made = make_job(queue="reports", priority=7)
    letter = make_job(State.FAILED)
    first = put(made, priority=7)
    second = put(letter, kind="dead_letter", dispatch_id=None, body={"letter": "x", "n": [1, "ã"]})
    _, found = lease(using=using)
    assert found == [
        transitions.OutboxRow(first, made.id, "dispatch", made.token, "reports", 7, {}),
        transitions.OutboxRow(second, letter.id, "dead_letter", None, "default", 0, {"letter": "x", "n": [1, "ã"]}),
    ]
    assert lease(using=using)[1] == []
    assert all(59 < row["due_in"] <= 60 for row in outbox())


def test_a_lease_takes_as_many_as_it_may_and_the_oldest_of_them(using):
    ids = [id_ for _, id_ in waiting(7)]
    taken = [[row.id for row in lease(3, using=using)[1]] for _ in range(4)]
    assert taken == [ids[:3], ids[3:6], ids[6:], []]


def test_what_has_been_due_the_longest_comes_first_whether_it_is_new_or_failed_or_was_left(using):
    new, failed, left, fresh = (put(make_job(), created_at=ago(age)) for age in (50, 900, 800, 5))
    execute(f"UPDATE turno.outbox_messages SET failures = 4, locked_until = {ago(20)} WHERE id = %s", failed)
    execute(f"UPDATE turno.outbox_messages SET lock_id = %s, locked_until = {ago(70)} WHERE id = %s", uuid4(), left)
    assert [row.id for row in lease(1, using=using)[1]] == [left]
    assert [row.id for row in lease(1, using=using)[1]] == [new]
    assert [row.id for row in lease(2, using=using)[1]] == [failed, fresh]


def test_a_message_in_back_off_is_in_nobodys_way(using):
    bad = [put(make_job(), created_at=ago(500), locked_until=ahead(60), failures=3) for _ in range(200)]
    good = [id_ for _, id_ in waiting(100)]
    assert [row.id for row in lease(100, using=using)[1]] == good
    assert len(bad) == len([row for row in outbox() if row["lock_id"] is None])


def test_a_lease_that_ended_is_anothers(using):
    waiting(1)
    _, [row] = lease(lasts=-1, using=using)
    second, [again] = lease(using=using)
    assert again == row
    assert outbox()[0]["lock_id"] == second


@pytest.mark.parametrize("what", ["claimed", "cancelled", "deferred", "requeued since", "succeeded"])
def test_a_message_that_names_its_job_no_more_is_dropped_and_what_counts_is_not(what, using):
    made, other = make_job(), make_job()
    put(made)
    kept = put(other)
    if what == "claimed":
        transitions.claim([(made.id, made.token, 1)], **claimant())
    elif what == "cancelled":
        transitions.cancel([made.id])
    elif what == "deferred":
        transitions.defer([(made.id, made.token)])
    elif what == "requeued since":
        transitions.cancel([made.id])
        transitions.requeue([made.id])
    else:
        execute(
            "UPDATE turno.jobs SET state = 'Succeeded', finished_at = now(), dispatch_id = NULL WHERE id = %s", made.id
        )
    found = transitions.lease_outbox(limit=9, lock_id=uuid4(), lease=60, using=using)
    assert ([row.id for row in found.messages], found.dropped) == ([kept], 1)
    assert [row["id"] for row in outbox()] == [kept]


def test_dropped_messages_count_so_that_the_caller_comes_again_at_once(using):
    for _ in range(3):
        put(make_job(State.CANCELLED))
    assert transitions.lease_outbox(limit=2, lock_id=uuid4(), lease=60, using=using) == ([], 2)
    assert transitions.lease_outbox(limit=2, lock_id=uuid4(), lease=60, using=using) == ([], 1)
    assert transitions.lease_outbox(limit=2, lock_id=uuid4(), lease=60, using=using) == ([], 0)


def test_a_letter_is_published_whatever_its_job_has_become(using):
    put(make_job(State.ENQUEUED), kind="dead_letter", dispatch_id=None)
    assert [row.kind for row in lease(using=using)[1]] == ["dead_letter"]


def test_what_is_confirmed_is_gone_and_its_job_says_when_it_was_announced(using):
    (made, first), (_, second) = waiting(2)
    lock_id, _ = lease(using=using)
    assert transitions.confirm_outbox([first], lock_id=lock_id, using=using) == 1
    assert [row["id"] for row in outbox()] == [second]
    [told] = rows.select("SELECT now() - announced_at < interval '5 s' AS now FROM turno.jobs WHERE id = %s", made.id)
    assert told["now"]
    assert rows.history(made.id) == []


@pytest.mark.parametrize("what", ["claimed", "cancelled", "requeued since"])
def test_a_job_that_waits_under_that_token_no_more_was_not_announced(what, using):
    [(made, id_)] = waiting(1)
    lock_id, _ = lease(using=using)
    if what == "claimed":
        transitions.claim([(made.id, made.token, 1)], **claimant())
    else:
        transitions.cancel([made.id])
        if what == "requeued since":
            transitions.requeue([made.id])
    assert transitions.confirm_outbox([id_], lock_id=lock_id, using=using) == 1
    assert outbox() == []
    assert rows.job(made.id)["announced_at"] is None


@pytest.mark.parametrize("act", ["confirm", "postpone", "return"])
def test_whoever_comes_after_its_lease_touches_nothing(act, using):
    [(made, id_)] = waiting(1)
    late, _ = lease(lasts=-1)
    owner, _ = lease()
    before = outbox()
    calls = {
        "confirm": lambda: transitions.confirm_outbox([id_], lock_id=late, using=using),
        "postpone": lambda: postpone([(id_, "no")], late, using),
        "return": lambda: transitions.return_outbox([id_], lock_id=late, using=using),
    }
    assert calls[act]() == 0
    assert [row | {"due_in": 0} for row in outbox()] == [row | {"due_in": 0} for row in before]
    assert outbox()[0]["lock_id"] == owner
    assert rows.job(made.id)["announced_at"] is None


def test_the_time_of_a_refused_message_doubles_up_to_its_limit(using):
    [(_, id_)] = waiting(1)
    waits = []
    for _ in range(12):
        lock_id, [_row] = lease(using=using)
        assert postpone([(id_, "NO_ROUTE")], lock_id, using) == 1
        [row] = outbox()
        waits.append(row["due_in"])
        all_due()
    assert (row["failures"], row["lock_id"], row["last_error"]) == (12, None, "NO_ROUTE")
    assert BASE * 0.75 < waits[0] <= BASE
    for before, after in pairwise(waits[:7]):
        assert after == pytest.approx(2 * before, rel=0.05)
    assert max(waits) <= CAP
    assert waits[-1] > CAP * 0.75


def test_a_message_that_failed_more_often_than_a_power_can_hold_still_waits_its_limit():
    [(_, id_)] = waiting(1)
    execute("UPDATE turno.outbox_messages SET failures = 2000000000")
    lock_id, _ = lease()
    postpone([(id_, "no")], lock_id)
    assert CAP * 0.75 < outbox()[0]["due_in"] <= CAP


def test_a_limit_below_the_base_is_the_limit():
    [(_, id_)] = waiting(1)
    lock_id, _ = lease()
    postpone([(id_, "no")], lock_id, base=50.0, cap=10.0)
    assert 7 < outbox()[0]["due_in"] <= 10


def test_messages_that_were_refused_together_come_back_apart():
    made = waiting(64)
    lock_id, _ = lease()
    postpone([(id_, "no") for _, id_ in made], lock_id, base=100.0)
    due = [row["due_in"] for row in outbox()]
    assert max(due) - min(due) > 15


def test_what_the_broker_said_is_kept_as_text_that_can_be(using):
    first, second = (id_ for _, id_ in waiting(2))
    lock_id, _ = lease(using=using)
    postpone([(first, "no\x00 route\n  at \ud800 all"), (second, "x" * 9000)], lock_id, using)
    said = [row["last_error"] for row in outbox()]
    assert said[0] == "no route at ? all"
    assert len(said[1]) == 500


def test_a_lease_that_is_given_back_counts_no_failure_and_is_taken_at_once(using):
    made = waiting(2)
    lock_id, taken = lease(using=using)
    assert transitions.return_outbox([id_ for _, id_ in made], lock_id=lock_id, using=using) == 2
    assert [(row["lock_id"], row["failures"], row["last_error"]) for row in outbox()] == [(None, 0, None)] * 2
    assert lease(using=using)[1] == taken


@pytest.mark.parametrize("act", ["confirm", "postpone", "return"])
def test_nothing_is_no_statement(act, django_assert_num_queries):
    calls = {
        "confirm": lambda: transitions.confirm_outbox([], lock_id=uuid4()),
        "postpone": lambda: postpone([], uuid4()),
        "return": lambda: transitions.return_outbox([], lock_id=uuid4()),
    }
    with django_assert_num_queries(0):
        assert calls[act]() == 0


def test_an_endless_number_of_messages_of_dead_jobs_is_gone_through_in_batches():
    rows.make_jobs(500, State.CANCELLED)
    execute(
        "INSERT INTO turno.outbox_messages (job_id, dispatch_id, queue) "
        "SELECT id, gen_random_uuid(), queue FROM turno.jobs"
    )
    kept = put(make_job())
    dropped = 0
    while True:
        found = transitions.lease_outbox(limit=200, lock_id=uuid4(), lease=60)
        dropped += found.dropped
        if len(found.messages) + found.dropped < 200:
            break
    assert dropped == 500
    assert [row["id"] for row in outbox()] == [kept]
