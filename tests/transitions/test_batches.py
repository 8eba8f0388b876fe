"""Batches in which something is wrong: the good rows land, the bad one ends Failed, the lost ones are left alone."""

import logging
from random import Random
from uuid import uuid4

import pytest
from django.utils.translation import gettext

from jobs import transitions
from jobs.outcomes import Ending, ErrorInfo, LogLine
from jobs.states import Outcome, Reason, State
from jobs.transitions import Note
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import CALLER, Fence, ending, lose, make
from tests.transitions.rows import ago, make_job

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
DEEP = 100_000  # brackets: more than the server's stack takes, which it calls an operational error

BAD = {
    "a result with an escaped NUL": (State.SUCCEEDED, {"result": '{"a": "\\u0000"}'}),
    "a result that is no JSON": (State.SUCCEEDED, {"result": "{nope"}),
    "a result that is nested too deeply": (State.SUCCEEDED, {"result": "[" * DEEP + "]" * DEEP}),
    "a result with a lone surrogate": (State.SUCCEEDED, {"result": '"\ud800"'}),
    "an error text with NUL": (State.FAILED, {"error": ErrorInfo("E", "a\x00b")}),
    "a stage with a lone surrogate": (State.FAILED, {"stage": "\ud800"}),
    "a fingerprint too long for its index": (
        State.FAILED,
        {"error": ErrorInfo("E", "m", "", Random(1).randbytes(9000).hex())},
    ),
    "progress 300": (State.FAILED, {"progress": 300}),
    "progress beyond every integer": (State.FAILED, {"progress": 10**12}),
    "a failure without its kind": (State.FAILED, {"failure_kind": None}),
    "a delay that is no number": (State.SCHEDULED, {"delay": float("nan")}),
    "an endless delay": (State.SCHEDULED, {"delay": float("inf")}),
    "tries beyond their column": (State.SUCCEEDED, {"tries": 10**6}),
    "a log line with NUL": (State.SUCCEEDED, {"logs": (LogLine(1, "info", "a\x00b"),)}),
    "a log line of no known level": (State.SUCCEEDED, {"logs": (LogLine(1, "shout", "a"),)}),
}


def assert_not_stored(case, settled):
    """The bad one ended Failed, once, with a text that says so."""
    id_ = case.made.id
    assert settled == transitions.Settled(case.token, State.FAILED)
    row = rows.job(id_)
    assert (row["state"], row["failure_kind"], row["result"]) == ("Failed", "permanent", None)
    assert row["error_message"].startswith(gettext("The result could not be stored: %(reason)s") % {"reason": ""})
    assert rows.edges(id_) == [("Processing", "Failed", "result_not_stored")]
    assert [attempt["outcome"] for attempt in rows.attempts(id_)] == ["Failed"]
    assert [letter["error_type"] for letter in rows.letters(id_)] == ["ResultError"]
    assert rows.logs(id_) == []


@pytest.mark.parametrize("wrong", BAD)
def test_in_a_mixed_batch_the_good_ends_land_and_the_bad_one_fails(wrong, using):
    to, fields = BAD[wrong]
    bad = make("processing", Fence.RIGHT)
    good = [make("processing", Fence.RIGHT) for _ in range(4)]
    targets = [State.SUCCEEDED, State.FAILED, State.SCHEDULED, State.ENQUEUED]
    strange = [make("processing", fence) for fence in (Fence.TOKEN, Fence.WORKER, Fence.BOTH)]
    missing = Ending(uuid4(), uuid4(), State.SUCCEEDED, Outcome.SUCCEEDED, Reason.SUCCEEDED)
    line = LogLine(1, "info", "said")
    batch = [ending(case, target, logs=(line,)) for case, target in zip(good, targets, strict=True)]
    batch += [ending(bad, to, **fields), missing, *(ending(case, State.SUCCEEDED) for case in strange)]
    Random(wrong).shuffle(batch)
    answer = transitions.settle(batch, worker_id=CALLER, using=using)
    assert [settled.dispatch_id for settled in answer] == [end.dispatch_id for end in batch]
    by_token = {settled.dispatch_id: settled for settled in answer}
    for case, target in zip(good, targets, strict=True):
        assert by_token[case.token] == transitions.Settled(case.token, target)
        assert rows.state(case.made.id) == target
        assert len(rows.history(case.made.id)) == len(rows.attempts(case.made.id)) == 1
        assert [log["message"] for log in rows.logs(case.made.id)] == ["said"]
    for case in strange:
        assert by_token[case.token].state is None
        assert (rows.state(case.made.id), rows.history(case.made.id)) == ("Processing", [])
    assert by_token[missing.dispatch_id].state is None
    assert_not_stored(bad, by_token[bad.token])


def test_in_a_batch_of_a_hundred_only_the_bad_ones_fail(using):
    cases = [make("processing", Fence.RIGHT) for _ in range(100)]
    bad = {3, 4, 50, 98, 99}
    kinds = [BAD["a result that is no JSON"][1], BAD["a result with an escaped NUL"][1]]
    batch = [ending(case, State.SUCCEEDED, **(kinds[n % 2] if n in bad else {})) for n, case in enumerate(cases)]
    answer = transitions.settle(batch, worker_id=CALLER, using=using)
    assert [settled.state == State.FAILED for settled in answer] == [n in bad for n in range(100)]
    assert (rows.total("succeeded"), rows.total("failed")) == (95, 5)
    for n in bad:
        assert_not_stored(cases[n], answer[n])


def test_results_that_could_not_be_stored_are_one_cause_a_type(using):
    """And not one for all types, under which somebody would requeue what failed for other reasons."""
    cases = [make("processing", Fence.RIGHT, type=name) for name in ("a.one", "a.one", "an.other")]
    fields = BAD["a result that is no JSON"][1]
    transitions.settle([ending(case, State.SUCCEEDED, **fields) for case in cases], worker_id=CALLER, using=using)
    first, second, other = [rows.letters(case.made.id)[0]["fingerprint"] for case in cases]
    assert len(first) == len(other) == 32
    assert first == second != other


def test_an_end_that_stands_twice_in_a_batch_is_written_once(using):
    case = make("processing", Fence.RIGHT)
    end = ending(case, State.SUCCEEDED)
    answer = transitions.settle([end, end], worker_id=CALLER, using=using)
    assert [settled.state for settled in answer] == [State.SUCCEEDED] * 2
    assert len(rows.history(case.made.id)) == len(rows.attempts(case.made.id)) == rows.total("succeeded") == 1


@pytest.mark.parametrize("duration", [float("nan"), float("inf"), -1.0])
def test_a_broken_measurement_of_time_costs_no_job_its_end_and_no_sum_its_value(duration, using):
    case, other = make("processing", Fence.RIGHT, queue="q"), make("processing", Fence.RIGHT, queue="q")
    ends = [ending(case, State.SUCCEEDED, duration=duration), ending(other, State.SUCCEEDED, duration=1.5)]
    answer = transitions.settle(ends, worker_id=CALLER, using=using)
    assert [settled.state for settled in answer] == [State.SUCCEEDED] * 2
    assert rows.attempts(case.made.id)[0]["duration"] is None
    [minute] = rows.metrics()
    assert (minute["succeeded"], minute["duration_sum"], sum(minute["durations"])) == (2, 1.5, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"progress": 300},
        {"progress": -(10**12)},
        {"stage": "a\x00b"},
        {"stage": "\ud800"},
        {"logs": (LogLine(1, "info", "a\x00b"),)},
        {"logs": (LogLine(1, "info", "a", float("nan")),)},
        {"logs": (LogLine(0, "info", "a"),)},
    ],
    ids=str,
)
def test_a_note_that_is_refused_is_dropped_and_nobody_loses_a_fence_by_it(wrong, using, caplog):
    good = [make("processing", Fence.RIGHT) for _ in range(3)]
    bad = make("processing", Fence.RIGHT)
    strange = [make("processing", fence) for fence in (Fence.TOKEN, Fence.WORKER, Fence.BOTH)]
    line = LogLine(1, "info", "said")
    notes = [Note(case.made.id, case.token, 30, "a third", (line,)) for case in good + strange]
    notes += [Note(bad.made.id, bad.token, **wrong), Note(uuid4(), uuid4(), 30)]
    Random(str(wrong)).shuffle(notes)
    with caplog.at_level(logging.ERROR):
        held = transitions.note(notes, worker_id=CALLER, using=using)
    assert held == {case.token for case in [*good, bad]}
    assert [record.message for record in caplog.records] == ["note_not_stored"]
    for case in good:
        row = rows.job(case.made.id)
        assert (row["progress"], row["stage"], len(rows.logs(case.made.id))) == (30, "a third", 1)
    for case in [bad, *strange]:
        row = rows.job(case.made.id)
        assert (row["progress"], row["stage"], rows.logs(case.made.id)) == (0, "", [])


def test_a_lost_job_that_can_not_be_written_hides_no_other_from_recovery(using, caplog):
    label = {"name": "w", "pid": "not a number"}
    poison = make_job(State.PROCESSING, lease_expires_at=ago(500), worker_label=label)
    others = [make_job(State.PROCESSING, lease_expires_at=ago(100 - n)) for n in range(5)]
    with caplog.at_level(logging.ERROR):
        done = lose(using, limit=6)
    assert {finished.id for finished in done} == {made.id for made in others}
    assert [record.message for record in caplog.records] == ["loss_not_stored"]
    assert (rows.state(poison.id), rows.history(poison.id)) == ("Processing", [])
    assert rows.total("lost") == 5
