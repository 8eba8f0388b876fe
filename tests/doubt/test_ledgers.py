"""The ledger threads of a worker when answers are lost: what they tell the worker is what the table says."""

import queue
from contextlib import contextmanager

import pytest

from jobs.outcomes import LogLine
from jobs.presence import Presence
from jobs.states import State
from jobs.transitions import Note, Settled
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import CALLER, Fence, child_lost, ending, make
from workers.clock import boottime
from workers.conclusion import released
from workers.connections import DATABASE_ERRORS
from workers.leases import LeaseBook
from workers.ledger import ClaimLedger, EndLedger

pytestmark = [COMMITTED]
PATIENCE = 20.0  # seconds until a test that hangs is told so


@contextmanager
def running(ledger):
    ledger.start()
    try:
        yield ledger
    finally:
        assert ledger.close(PATIENCE)


@pytest.fixture
def ends(engine):
    with running(EndLedger(CALLER, 100, 0.1)) as ledger:
        yield ledger


@pytest.fixture
def claims(engine):
    book = LeaseBook()
    who = Presence(CALLER, "w", "h", "b", "n", 7, "1", "0", {"default": 1}, ["test.echo"])
    with running(ClaimLedger(who, book, 60.0, 100, 0.1)) as ledger:
        yield ledger, book


def settled(ledger, *ends):
    """What the ledger says of these ends, in the order of their cases."""
    answers = queue.SimpleQueue()
    for end in ends:
        ledger.settle(end, answers.put)
    found = {answer.dispatch_id: answer for answer in (answers.get(timeout=PATIENCE) for _ in ends)}
    return [found[end.dispatch_id] for end in ends]


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("to", [State.SUCCEEDED, State.SCHEDULED, State.FAILED, State.ENQUEUED, "lost"])
def test_an_end_is_sent_until_its_answer_comes_and_is_written_once(engine, ends, to, times):
    case = make("processing", Fence.RIGHT)
    end = child_lost(case) if to == "lost" else ending(case, to)
    trap = engine.swallow_commit("turno.jobs", times=times)
    [answer] = settled(ends, end)
    assert answer == Settled(case.token, end.to, again=True)
    assert trap.caught == times
    [attempt] = rows.attempts(case.made.id)
    assert attempt["discarded_at"] is None


def test_a_return_at_shutdown_is_sent_until_its_answer_comes(engine, ends, claims):
    made = make("enqueued", Fence.RIGHT, queue="default").made
    ledger, _ = claims
    [held] = ledger.claim([("default", 1)]).result(PATIENCE)
    trap = engine.swallow_commit("turno.jobs", times=2)
    [answer] = settled(ends, released(held.claim))
    assert (answer.state, answer.again, trap.caught) == (State.ENQUEUED, True, 2)
    assert [(a["outcome"], a["counted"]) for a in rows.attempts(made.id)] == [("Interrupted", False)]


def test_lines_are_stored_once_although_the_answers_to_their_notes_were_lost(engine, ends):
    case = make("processing", Fence.RIGHT)
    trap = engine.swallow_commit("SET progress", times=2)
    for n in range(1, 4):
        ends.note(Note(case.made.id, case.token, n * 10, f"stage {n}", (LogLine(n, "info", f"line {n}"),)))
        if trap.left:
            trap.wait(n)
    [answer] = settled(ends, ending(case, State.SUCCEEDED, logs=(LogLine(4, "info", "line 4"),)))
    assert (answer.state, answer.again) == (State.SUCCEEDED, False)
    assert [line["message"] for line in rows.logs(case.made.id)] == [f"line {n}" for n in range(1, 5)]


def test_a_batch_of_ends_with_a_bad_row_and_lost_answers_ends_each_job_once(engine, ends):
    cases = [make("processing", Fence.RIGHT) for _ in range(9)]
    engine.swallow_commit("turno.jobs", times=2, passes=1)
    answers = settled(
        ends,
        *(ending(case, State.SUCCEEDED, **({"result": "{nope"} if n == 4 else {})) for n, case in enumerate(cases)),
    )
    assert [answer.state for answer in answers] == ["Succeeded"] * 4 + ["Failed"] + ["Succeeded"] * 4
    assert [len(rows.attempts(case.made.id)) for case in cases] == [1] * 9


def test_a_claim_whose_answer_was_lost_leaves_a_stray_that_is_in_flight_nowhere(engine, claims):
    made = make("enqueued", Fence.RIGHT, queue="default").made
    ledger, book = claims
    engine.swallow_commit("turno.jobs")
    with pytest.raises(DATABASE_ERRORS):
        ledger.claim([("default", 1)]).result(PATIENCE)
    row = rows.job(made.id)
    assert (row["state"], row["worker_id"]) == (State.PROCESSING, CALLER)
    assert book.is_stray(row["dispatch_id"], row["claim_id"])
    assert ledger.claim([("default", 1)]).result(PATIENCE) == []


def test_a_claim_is_no_stray_while_its_answer_is_on_its_way(engine, claims):
    made = make("enqueued", Fence.RIGHT, queue="default").made
    ledger, book = claims
    trap = engine.swallow_commit("turno.jobs", then="blackhole")
    asked = ledger.claim([("default", 1)])
    trap.wait()
    row = rows.job(made.id)
    assert not book.is_stray(row["dispatch_id"], row["claim_id"])
    engine.cut()
    with pytest.raises(DATABASE_ERRORS):
        asked.result(PATIENCE)
    assert book.is_stray(row["dispatch_id"], row["claim_id"])


def test_a_claim_whose_answer_comes_after_its_lease_starts_nothing_and_is_a_stray(engine, claims, monkeypatch):
    """Its job may be another worker's by now; where it is still ours, the next sign of life gives it back."""
    made = make("enqueued", Fence.RIGHT, queue="default").made
    ledger, book = claims
    trap = engine.hold_commit("turno.jobs")
    asked = ledger.claim([("default", 1)])
    trap.wait()
    assert book.nearest() is not None, "what may be ours already has a deadline, which the supervisor knows"
    later = boottime() + 61.0
    monkeypatch.setattr("workers.ledger.boottime", lambda: later)
    trap.let_go()
    assert asked.result(PATIENCE) == []
    assert len(book) == 0
    row = rows.job(made.id)
    assert book.is_stray(row["dispatch_id"], row["claim_id"])
