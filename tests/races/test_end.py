"""Ends against cancels, recovery and renewals: one of them writes, the other sees what was written."""

import pytest

from jobs import transitions
from jobs.states import State
from jobs.transitions import Note, Settled
from tests.races.two import Other, holding, lock, rival
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import CALLER, Fence, ending, lose, make
from tests.transitions.rows import execute

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]

# Two transactions must begin in one minute of the database's clock.
NOT_AT_THE_END_OF_A_MINUTE = (
    "SELECT pg_sleep(60.1 - extract(second FROM clock_timestamp())) WHERE extract(second FROM clock_timestamp()) > 58"
)


def settle(case, to, using="default"):
    return transitions.settle([ending(case, to)], worker_id=CALLER, using=using)


@pytest.mark.parametrize("to", [State.SUCCEEDED, State.FAILED, State.SCHEDULED, State.ENQUEUED, State.CANCELLED])
def test_a_cancel_that_commits_while_the_end_waits_turns_all_but_success_into_cancelled(to):
    case = make("processing", Fence.RIGHT)
    with holding():
        transitions.cancel([case.made.id], actor="ana", reason="enough")
        end = Other(lambda: settle(case, to, "engine"))
        end.is_waiting()
    expected = State.SUCCEEDED if to is State.SUCCEEDED else State.CANCELLED
    assert end.answer() == [Settled(case.token, expected)]
    assert rows.state(case.made.id) == expected
    [step] = rows.history(case.made.id)
    assert step["actor"] == (None if to is State.SUCCEEDED else "ana")
    assert rows.letters(case.made.id) == []


@pytest.mark.parametrize(
    ("to", "then"),
    [
        (State.SUCCEEDED, State.SUCCEEDED),
        (State.FAILED, State.FAILED),
        (State.SCHEDULED, State.CANCELLED),
        (State.ENQUEUED, State.CANCELLED),
    ],
)
def test_a_cancel_that_waited_for_an_end_acts_on_what_the_job_has_become(to, then):
    case = make("processing", Fence.RIGHT)
    with holding():
        settle(case, to)
        cancel = Other(lambda: transitions.cancel([case.made.id], using="engine"))
        cancel.is_waiting()
    [verdict] = cancel.answer()
    assert (verdict.applied, verdict.state, verdict.requested) == (then is State.CANCELLED, then, False)
    steps = [step[:2] for step in rows.edges(case.made.id)]
    assert steps == [("Processing", to)] + [(to, then)] * (then is State.CANCELLED)


def test_an_owner_that_waited_for_recovery_writes_nothing_and_marks_its_attempt():
    case = make("expired", Fence.RIGHT)
    with holding():
        lose("default")
        late = Other(lambda: settle(case, State.SUCCEEDED, "engine"))
        late.is_waiting()
    assert late.answer() == [Settled(case.token, None)]
    assert rows.edges(case.made.id) == [("Processing", "Enqueued", "worker_lost")]
    [attempt] = rows.attempts(case.made.id)
    assert (attempt["outcome"], attempt["discarded_at"] is not None) == ("WorkerLost", True)
    assert rows.job(case.made.id)["result"] is None


@pytest.mark.parametrize("verb", ["note", "release"])
def test_an_owner_that_waited_for_recovery_neither_notes_nor_releases(verb):
    case = make("expired", Fence.RIGHT)
    calls = {
        "note": lambda: transitions.note(
            [Note(case.made.id, case.token, progress=50)], worker_id=CALLER, using="engine"
        ),
        "release": lambda: transitions.release([(case.made.id, case.token)], worker_id=CALLER, using="engine"),
    }
    with holding():
        lose("default")
        late = Other(calls[verb])
        late.is_waiting()
    assert not late.answer()
    assert (rows.job(case.made.id)["progress"], len(rows.history(case.made.id))) == (0, 1)


def test_recovery_steps_over_a_job_that_its_owner_is_ending():
    case = make("expired", Fence.RIGHT)
    with holding():
        settle(case, State.SUCCEEDED)
        assert Other(lambda: lose("engine")).answer() == []
    assert lose("default") == []
    assert rows.state(case.made.id) == State.SUCCEEDED


def test_a_renewal_that_recovery_keeps_waiting_is_told_to_try_again_and_then_that_it_lost():
    case = make("expired", Fence.RIGHT)
    held = [(case.made.id, case.token)]
    with holding():
        lose("default")
        answer = Other(lambda: transitions.renew(held, worker_id=CALLER, lease=60, using="engine")).answer()
        assert (answer.skipped, answer.lost) == ({case.token}, set())
    answer = transitions.renew(held, worker_id=CALLER, lease=60)
    assert (answer.renewed, answer.lost) == (set(), {case.token})


def test_a_renewal_in_progress_is_stepped_over_by_recovery_and_then_no_longer_expired():
    case = make("expired", Fence.RIGHT)
    with holding():
        transitions.renew([(case.made.id, case.token)], worker_id=CALLER, lease=60)
        assert Other(lambda: lose("engine")).answer() == []
    assert lose("default") == []


def test_a_renewal_does_not_wait_for_a_cancel_and_sees_it_the_next_time():
    case, other = make("processing", Fence.RIGHT), make("processing", Fence.RIGHT)
    held = [(c.made.id, c.token) for c in (case, other)]
    with holding():
        transitions.cancel([case.made.id])
        answer = Other(lambda: transitions.renew(held, worker_id=CALLER, lease=60, using="engine")).answer()
        assert (answer.renewed, answer.skipped, answer.lost) == ({other.token}, {case.token}, set())
    assert transitions.renew(held, worker_id=CALLER, lease=60).cancelled == {case.token}


def test_the_foreign_key_lock_of_a_child_row_hides_no_job_from_its_renewal_or_its_end():
    case = make("processing", Fence.RIGHT)
    held = [(case.made.id, case.token)]
    with rival() as child:
        lock(child, case.made.id, "FOR KEY SHARE")
        assert transitions.renew(held, worker_id=CALLER, lease=60).renewed == {case.token}
        assert Other(lambda: settle(case, State.SUCCEEDED, "engine")).answer()[0].state is State.SUCCEEDED


def test_recovery_is_not_starved_by_rows_that_somebody_keeps_locked():
    stuck = [make("expired", Fence.RIGHT, lease_expires_at=rows.ago(900 + n)) for n in range(3)]
    others = [make("expired", Fence.RIGHT) for _ in range(3)]
    with rival() as slow:
        for case in stuck:
            lock(slow, case.made.id)
        found = Other(lambda: lose("engine", limit=3)).answer()
        assert {done.id for done in found} == {case.made.id for case in others}
    assert {done.id for done in lose("default", limit=3)} == {case.made.id for case in stuck}


def test_two_ends_that_meet_in_one_minute_s_row_are_both_counted():
    execute(NOT_AT_THE_END_OF_A_MINUTE)
    first, second = (make("processing", Fence.RIGHT, queue="q") for _ in range(2))
    with holding():
        settle(first, State.SUCCEEDED)
        late = Other(lambda: settle(second, State.SUCCEEDED, "engine"))
        late.is_waiting()
    assert late.answer()[0].state is State.SUCCEEDED
    assert (rows.total("succeeded"), rows.total("duration_sum"), sum(rows.metrics()[0]["durations"])) == (2, 0.6, 2)


def test_the_same_end_sent_twice_at_once_is_written_once_and_recognized():
    case = make("processing", Fence.RIGHT)
    with holding():
        settle(case, State.SCHEDULED)
        again = Other(lambda: settle(case, State.SCHEDULED, "engine"))
        again.is_waiting()
    assert again.answer() == [Settled(case.token, State.SCHEDULED, again=True)]
    assert len(rows.attempts(case.made.id)) == 1
