"""The answer to a COMMIT is lost: the server did it, and the caller finds out instead of guessing or doing it twice."""

import pytest
from django.db import InterfaceError, OperationalError

from jobs import transitions
from jobs.ids import new_id
from jobs.outcomes import LogLine
from jobs.states import State
from jobs.transitions import Note, Settled
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import CALLER, Fence, child_lost, claimant, ending, lose, make, snooze, take_back

pytestmark = [COMMITTED]
ENGINE = "engine"
LOST = (OperationalError, InterfaceError)
BROKEN = {"result": "{nope"}
ENDS = {
    "a success": (State.SUCCEEDED, lambda case: ending(case, State.SUCCEEDED)),
    "a failure to be retried": (State.SCHEDULED, lambda case: ending(case, State.SCHEDULED)),
    "a failure for good": (State.FAILED, lambda case: ending(case, State.FAILED)),
    "a cancel": (State.CANCELLED, lambda case: ending(case, State.CANCELLED)),
    "a snooze": (State.SCHEDULED, snooze),
    "a return": (State.ENQUEUED, lambda case: ending(case, State.ENQUEUED)),
    "a lost child": (State.ENQUEUED, child_lost),
}


def settle(*ends):
    return transitions.settle(ends, worker_id=CALLER, using=ENGINE)


def losing(proxy, call, *, passes=0):
    """Make the call, which fails: the answer to a COMMIT of it is lost, after `passes` of them went through."""
    trap = proxy.swallow_commit("turno.jobs", passes=passes)
    with pytest.raises(LOST):
        call()
    trap.wait()


def assert_ended_once(case, state):
    """One end, by its own worker, and not one of those that came too late."""
    assert rows.state(case.made.id) == state
    assert len([step for step in rows.history(case.made.id) if step["from_state"] == "Processing"]) == 1
    [attempt] = rows.attempts(case.made.id)
    assert attempt["discarded_at"] is None
    assert len(rows.letters(case.made.id)) == (state is State.FAILED)


@pytest.mark.parametrize("end", ENDS)
def test_an_end_whose_answer_was_lost_is_known_as_the_callers_own(engine, end):
    state, of = ENDS[end]
    case = make("processing", Fence.RIGHT)
    losing(engine, lambda: settle(of(case)))
    assert settle(of(case)) == [Settled(case.token, state, again=True)]
    assert settle(of(case)) == [Settled(case.token, state, again=True)]
    assert_ended_once(case, state)


@pytest.mark.parametrize("end", ENDS)
def test_an_end_that_never_reached_the_server_is_written_by_the_next_call(engine, end):
    state, of = ENDS[end]
    case = make("processing", Fence.RIGHT)
    trap = engine.lose("COMMIT", after="turno.jobs", side="request")
    with pytest.raises(LOST):
        settle(of(case))
    trap.wait()
    assert settle(of(case)) == [Settled(case.token, state)]
    assert_ended_once(case, state)


def test_an_end_in_doubt_is_found_out_although_the_job_has_run_again_since(engine):
    case = make("processing", Fence.RIGHT, lost_count=0)
    losing(engine, lambda: settle(child_lost(case)))
    [claim] = transitions.claim_next(
        [(case.made.queue, 1)], types=["test.echo"], **claimant(), using="default"
    )  # the same worker
    assert settle(child_lost(case)) == [Settled(case.token, State.ENQUEUED, again=True)]
    row = rows.job(case.made.id)
    assert (row["state"], row["dispatch_id"], row["lost_count"]) == ("Processing", claim.dispatch_id, 1)
    assert [attempt["discarded_at"] for attempt in rows.attempts(case.made.id)] == [None]


def test_an_end_in_doubt_and_a_loss_that_recovery_wrote_are_told_apart(engine):
    mine, lost = make("expired", Fence.RIGHT), make("expired", Fence.RIGHT)
    losing(engine, lambda: settle(ending(mine, State.SUCCEEDED)))
    assert [done.id for done in lose("default")] == [lost.made.id]
    answer = settle(ending(mine, State.SUCCEEDED), ending(lost, State.SUCCEEDED))
    assert answer == [Settled(mine.token, State.SUCCEEDED, again=True), Settled(lost.token, None)]
    assert_ended_once(mine, State.SUCCEEDED)
    [attempt] = rows.attempts(lost.made.id)
    assert (attempt["outcome"], attempt["discarded_at"] is not None) == ("WorkerLost", True)


def test_a_batch_in_doubt_is_known_end_by_end(engine):
    cases = [make("processing", Fence.RIGHT) for _ in ENDS]
    ends = [of(case) for case, (_, of) in zip(cases, ENDS.values(), strict=True)]
    losing(engine, lambda: settle(*ends))
    later = make("processing", Fence.RIGHT)
    answer = settle(*ends, ending(later, State.SUCCEEDED))
    assert [(settled.state, settled.again) for settled in answer] == [
        *((state, True) for state, _ in ENDS.values()),
        (State.SUCCEEDED, False),
    ]
    for case, (state, _) in zip(cases, ENDS.values(), strict=True):
        assert_ended_once(case, state)


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_batch_with_a_bad_row_is_found_out_whichever_of_its_commits_was_lost(engine, lost):
    """It is halved: its three transactions are the good one, the bad one as Failed, and the second half."""
    first, bad, third, fourth = (make("processing", Fence.RIGHT) for _ in range(4))
    ends = [
        ending(first, State.SUCCEEDED),
        ending(bad, State.SUCCEEDED, **BROKEN),
        ending(third, State.SCHEDULED),
        ending(fourth, State.FAILED),
    ]
    states = [State.SUCCEEDED, State.FAILED, State.SCHEDULED, State.FAILED]
    losing(engine, lambda: settle(*ends), passes=lost - 1)
    answer = settle(*ends)
    assert [settled.state for settled in answer] == states
    assert [settled.again for settled in answer] == [True, lost > 1, lost > 2, lost > 2]
    for case, state in zip((first, bad, third, fourth), states, strict=True):
        assert_ended_once(case, state)
    assert [step[2] for step in rows.edges(bad.made.id)] == ["result_not_stored"]


def test_notes_whose_answer_was_lost_are_stored_once_when_they_are_sent_again(engine):
    case = make("processing", Fence.RIGHT)
    notes = [Note(case.made.id, case.token, 40, "half", tuple(LogLine(n, "info", f"line {n}") for n in (1, 2)))]
    losing(engine, lambda: transitions.note(notes, worker_id=CALLER, using=ENGINE))
    later = notes[0].followed_by(Note(case.made.id, case.token, 60, None, (LogLine(3, "info", "line 3"),)))
    assert transitions.note([later], worker_id=CALLER, using=ENGINE) == {case.token}
    assert [(line["number"], line["message"]) for line in rows.logs(case.made.id)] == [
        (n, f"line {n}") for n in (1, 2, 3)
    ]
    row = rows.job(case.made.id)
    assert (row["progress"], row["stage"]) == (60, "half")


def test_lines_whose_answer_was_lost_go_once_with_the_end_of_their_job(engine):
    case = make("processing", Fence.RIGHT)
    line = LogLine(1, "info", "said")
    said = [Note(case.made.id, case.token, logs=(line,))]
    losing(engine, lambda: transitions.note(said, worker_id=CALLER, using=ENGINE))
    [settled] = settle(ending(case, State.SUCCEEDED, logs=(line, LogLine(2, "info", "last"))))
    assert (settled.state, [log["message"] for log in rows.logs(case.made.id)]) == ("Succeeded", ["said", "last"])


def test_a_release_whose_answer_was_lost_is_not_done_twice(engine):
    case = make("processing", Fence.RIGHT)

    def release():
        return transitions.release([(case.made.id, case.token)], worker_id=CALLER, using=ENGINE)

    losing(engine, release)
    [claim] = transitions.claim_next([(case.made.queue, 1)], types=["test.echo"], **claimant())  # the same worker
    assert release() == []
    row = rows.job(case.made.id)
    assert (row["state"], row["dispatch_id"], row["attempts_used"]) == ("Processing", claim.dispatch_id, 0)
    assert [(a["outcome"], a["counted"]) for a in rows.attempts(case.made.id)] == [("Interrupted", False)]


@pytest.mark.parametrize("by_id", [False, True])
def test_a_claim_whose_answer_was_lost_is_a_stray_and_returns_uncharged(engine, by_id):
    case = make("enqueued", Fence.RIGHT)
    me = claimant()

    def claim():
        if by_id:
            return transitions.claim([(case.made.id, case.token, 1)], **me, using=ENGINE)
        return transitions.claim_next([(case.made.queue, 1)], types=["test.echo"], **me, using=ENGINE)

    losing(engine, claim)
    assert claim() == []  # nobody takes it twice, its own claimant neither
    strays = transitions.strays(worker_id=CALLER, known=[new_id()], using=ENGINE)
    assert strays == [(case.made.id, case.token, me["claim_id"])]
    [back] = transitions.release([(case.made.id, case.token)], worker_id=CALLER, started=False, using=ENGINE)
    assert back.state is State.ENQUEUED
    row = rows.job(case.made.id)
    assert (row["attempts_used"], row["lost_count"], row["dispatch_id"] == case.token) == (0, 0, False)


@pytest.mark.parametrize("verb", [lose, take_back])
def test_a_recovery_whose_answer_was_lost_charges_nobody_twice(engine, verb):
    case = make("expired", Fence.RIGHT)
    losing(engine, lambda: verb(ENGINE))
    assert verb(ENGINE) == []
    row = rows.job(case.made.id)
    assert (row["state"], row["attempts_used"], row["lost_count"]) == ("Enqueued", 1, 1)
    assert len(rows.attempts(case.made.id)) == rows.total("lost") == 1
