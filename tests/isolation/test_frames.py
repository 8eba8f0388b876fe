"""What comes from a child is read as from a stranger."""

import json
import time
from dataclasses import replace

import pytest

from jobs.conf import conf
from jobs.outcomes import Ending, ErrorInfo
from jobs.states import FailureKind, Outcome, Reason, State, Waiting
from tests.isolation.house import claim_of
from workers.context import WorkerContext
from workers.isolation import endings, frames
from workers.leases import Held

CLAIM = claim_of("iso.echo", {})
DONE = Ending(
    CLAIM.id, CLAIM.dispatch_id, State.SUCCEEDED, Outcome.SUCCEEDED, Reason.SUCCEEDED, result="{}", duration=1.5
)
FAILED = replace(
    DONE,
    to=State.FAILED,
    outcome=Outcome.FAILED,
    reason=Reason.PERMANENT,
    result=None,
    failure_kind=FailureKind.PERMANENT,
    error=ErrorInfo("KeyError", "é", "a stack", "f" * 32),
    peak_memory=2**40,
)
AGAIN = replace(
    FAILED, to=State.SCHEDULED, reason=Reason.RETRY, failure_kind=None, delay=2.5, waiting_for=Waiting.RETRY, tries=3
)


@pytest.mark.parametrize("ending", [DONE, FAILED, AGAIN])
def test_an_end_comes_through_as_it_was(ending):
    fields = json.loads(json.dumps(endings.to_fields(ending)))
    assert endings.from_fields(CLAIM, fields) == ending


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("to", "Processing"),
        ("to", "nowhere"),
        ("to", "Scheduled"),
        ("outcome", 1),
        ("reason", None),
        ("counted", "yes"),
        ("waiting_for", "pause"),
        ("result", {"a": 1}),
        ("error", ["only", "three", "texts"]),
        ("error", "KeyError"),
        ("duration", -1),
        ("duration", "1"),
        ("duration", float("nan")),
        ("duration", None),
        ("duration", 1e300),
        ("counted", False),
        ("outcome", "WorkerLost"),
        ("outcome", "Failed"),
        ("reason", "taken_back"),
        ("reason", "retry"),
        ("failure_kind", "worker_lost"),
        ("error", ["KeyError", "", "", ""]),
        ("tries", True),
        ("tries", 1.5),
        ("peak_memory", -5),
        ("peak_memory", 2**80),
    ],
)
def test_an_end_with_a_field_that_no_child_writes_is_refused(field, value):
    fields = endings.to_fields(DONE)
    with pytest.raises(frames.BrokenFrame):
        endings.from_fields(CLAIM, {**fields, field: value})
    with pytest.raises(frames.BrokenFrame):
        endings.from_fields(CLAIM, {k: v for k, v in fields.items() if k != field})
    with pytest.raises(frames.BrokenFrame):
        endings.from_fields(CLAIM, value)


@pytest.mark.parametrize(
    "changes",
    [
        {"delay": 1e300},
        {"delay": -1.0},
        {"waiting_for": "snooze"},
        {"error": None},
        {"result": "{}"},
        {"failure_kind": "error"},
        {"outcome": "Snoozed"},
    ],
)
def test_an_end_whose_fields_do_not_go_together_is_refused(changes):
    with pytest.raises(frames.BrokenFrame):
        endings.from_fields(CLAIM, endings.to_fields(AGAIN) | changes)


def test_what_comes_before_something_broken_counts():
    messages = frames.Decoder().feed(frames.pack("log", "info", "last words", 1.5) + b"\xff\xff\xff\xff")
    assert next(messages) == ["log", "info", "last words", 1.5]
    with pytest.raises(frames.BrokenFrame):
        next(messages)


@pytest.mark.parametrize("at", [-1e300, 0, float("-inf"), float("inf"), float("nan"), 1e300])
def test_a_line_is_written_within_its_execution_whatever_the_child_says(at):
    before = time.monotonic()
    ctx = WorkerContext(Held(CLAIM, 1e9), lambda ctx: None)
    ctx.relay_log("info", "a line", at)
    [line] = ctx.end()
    assert 0 <= line.age <= time.monotonic() - before


def test_messages_come_out_whole_however_the_bytes_are_cut():
    messages = [["log", "info", "é😀\u0000", 1.5], ["progress", 1, ""], ["log", "x" * 70_000]]
    stream = b"".join(frames.pack(*message) for message in messages)
    for step in (1, 3, 1000, len(stream)):
        decoder = frames.Decoder()
        found = [m for at in range(0, len(stream), step) for m in decoder.feed(stream[at : at + step])]
        assert found == messages


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        frames.HEADER.pack(2) + b"{}",
        frames.HEADER.pack(2) + b"[]",
        frames.HEADER.pack(3) + b"[\xff]",
        frames.HEADER.pack(0),
        frames.HEADER.pack(200_000) + b"[" * 200_000,
    ],
)
def test_bytes_that_are_no_message_are_refused(data):
    with pytest.raises(frames.BrokenFrame):
        list(frames.Decoder().feed(data))


def test_the_largest_result_and_log_fit_into_a_frame():
    limits = conf().limits
    text = "\x01" * limits.result
    assert len(frames.pack("end", {"result": text}, None)) < frames.longest()


def test_a_job_comes_through_with_its_claim():
    job = frames.Job(3, claim_of("iso.echo", {"é": [1, None]}, timeout=2.5), 12.5, "folder", last=True)
    frame = frames.pack_job(job)
    assert frames.unpack_job(frame) == job
    assert frames.size_and_number(frame[:50]) == (len(frame), 3)
