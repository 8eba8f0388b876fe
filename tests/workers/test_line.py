"""The worker's side of the line to its supervisor, and the handlers that are shown as stuck."""

import os
import threading
from contextlib import suppress
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from jobs.outcomes import Claim
from workers import leases, protocol
from workers.clock import boottime
from workers.leases import Interrupt, LeaseBook
from workers.line import SupervisorLine
from workers.stuck import StuckHandlers


def claim(type_="t.t"):
    now = datetime.now(UTC)
    return Claim(uuid4(), uuid4(), type_, "default", {}, 1, 1, 0, 5, 0, None, False, now)


class Pipe:
    """A line with its other end in the test's hand."""

    def __init__(self, slack=2.0):
        self.end, fd = os.pipe()
        os.set_blocking(self.end, False)
        os.set_blocking(fd, False)
        self.fd = fd
        self.line = SupervisorLine(fd, slack)

    def read(self):
        try:
            return os.read(self.end, 1 << 20).decode().splitlines()
        except BlockingIOError:
            return []

    def close(self):
        for fd in (self.end, self.fd):
            with suppress(OSError):
                os.close(fd)


@pytest.fixture
def pipe():
    pipe = Pipe()
    yield pipe
    pipe.close()


def test_the_line_comes_from_the_environment_once_and_is_inherited_by_nothing(monkeypatch):
    _, fd = os.pipe()
    os.set_inheritable(fd, True)
    monkeypatch.setenv(protocol.FD_VARIABLE, str(fd))
    line = SupervisorLine.of_environment(1.0)
    assert line.supervised
    assert not os.get_inheritable(fd)
    assert not os.get_blocking(fd)
    assert not SupervisorLine.of_environment(1.0).supervised
    line.forget()
    line.forget()
    assert not line.supervised


def test_without_a_supervisor_nothing_is_said_and_nothing_is_broken():
    line = SupervisorLine(None, 1.0)
    line.introduce(uuid4(), 1.0, 1.0)
    line.entered(1.0)
    line.refresh(lambda: None)
    assert not line.broken()


def test_the_worker_says_who_it_is_and_that_it_is_ready(pipe):
    id_ = uuid4()
    pipe.line.introduce(id_, 30.0, 1.0)
    pipe.line.ready()
    assert pipe.read() == [f"worker {id_}", "grace 30.000 1.000", "ready"]


def test_a_nearer_deadline_is_told_at_once_a_later_one_with_the_next_look(pipe):
    pipe.line.entered(100.0)
    assert pipe.read() == ["kill-at 102.000"]
    pipe.line.entered(110.0)
    assert pipe.read() == []
    pipe.line.entered(90.0)
    assert pipe.read() == ["kill-at 92.000"]
    pipe.line.refresh(lambda: 110.0)
    pipe.line.refresh(lambda: 110.0)
    assert pipe.read() == ["kill-at 112.000"]
    pipe.line.refresh(lambda: None)
    assert pipe.read() == ["kill-at never"]


def test_a_look_that_began_before_a_claim_never_takes_the_claims_deadline_back(pipe):
    book = LeaseBook(pipe.line.entered)
    asked, entered = threading.Event(), threading.Event()

    def slow_look():
        answer = book.nearest()
        asked.set()
        entered.wait(0.2)  # the claim comes in the middle: it must wait for this look's end
        return answer

    looking = threading.Thread(target=lambda: pipe.line.refresh(slow_look))
    looking.start()
    asked.wait(60)
    book.begin(uuid4(), 500.0)
    entered.set()
    looking.join(60)
    assert pipe.read()[-1] == "kill-at 502.000"


def test_what_a_full_pipe_did_not_take_is_told_when_there_is_room(pipe):
    while True:
        try:
            os.write(pipe.fd, b"x" * 4096)
        except BlockingIOError:
            break
    pipe.line.entered(100.0)
    pipe.read()
    pipe.line.refresh(lambda: 100.0)
    assert pipe.read() == ["kill-at 102.000"]
    pipe.line.refresh(lambda: 100.0)
    assert pipe.read() == []


def test_a_supervisor_that_is_gone_is_noticed(pipe):
    assert not pipe.line.broken()
    os.close(pipe.end)
    assert pipe.line.broken()
    pipe.line.refresh(lambda: 1.0)  # and saying something then harms nobody


def test_a_line_that_was_closed_here_is_noticed_also_when_something_else_has_its_number(pipe):
    os.close(pipe.fd)
    assert pipe.line.broken()
    others = os.pipe()  # one of them may have got the number already
    if pipe.fd not in others:
        os.dup2(others[0], pipe.fd)
    assert pipe.line.broken()
    for fd in {*others} - {pipe.fd}:
        os.close(fd)


def held_in(book, deadline=1e12):
    claim_id = uuid4()
    book.begin(claim_id, deadline)
    [held] = book.enter(claim_id, [claim()], deadline)
    return held


def test_the_nearest_deadline_is_that_of_a_handler_that_runs_even_one_past_it():
    book = LeaseBook()
    assert book.nearest() is None
    late, ended, later = held_in(book, 10.0), held_in(book, 5.0), held_in(book, 20.0)
    ended.ended = True
    assert book.nearest() == 10.0
    assert book.overdue(15.0) == [late, ended]
    assert book.nearest() == 10.0
    late.ended = True
    assert book.nearest() == 20.0
    later.ended = True
    assert book.nearest() is None


def test_a_claim_in_flight_counts_from_before_it_is_sent_until_it_is_seen_to_be_late(pipe):
    book = LeaseBook(pipe.line.entered)
    claim_id = uuid4()
    book.begin(claim_id, 100.0)
    assert pipe.read() == ["kill-at 102.000"]
    assert book.nearest() == 100.0
    book.overdue(99.0)
    assert book.nearest() == 100.0
    book.overdue(100.0)  # this process lives, and starts nothing of it
    assert book.nearest() is None
    assert not book.is_stray(uuid4(), claim_id)
    book.abandon(claim_id)
    assert book.is_stray(uuid4(), claim_id)


def test_a_renewed_lease_is_told_to_whoever_keeps_the_deadline_too():
    book = LeaseBook()
    held = held_in(book, 10.0)
    told = []
    held.extended = told.append
    book.extend([held.claim.dispatch_id, uuid4()], 30.0)
    assert told == [30.0]
    assert held.deadline == 30.0


def test_a_handler_that_was_asked_to_stop_and_runs_on_is_shown_with_its_place(monkeypatch, caplog):
    book = LeaseBook()
    stuck = StuckHandlers(book)
    go_on, there = threading.Event(), threading.Event()

    def endless_handler():
        there.set()
        go_on.wait(60)

    thread = threading.Thread(target=endless_handler)
    thread.start()
    there.wait(60)
    held = held_in(book)
    held.thread = thread.ident
    try:
        held.ask(Interrupt.TIMEOUT, 1.0)
        assert stuck.problems() == []
        monkeypatch.setattr(leases, "STUCK", -1.0)
        [problem] = stuck.problems()
        assert problem["handler"] == "t.t"
        assert problem["job"] == str(held.claim.id)
        assert "endless_handler" in problem["at"]
        assert problem["error"]
        stuck.problems()
        assert [r.message for r in caplog.records].count("handler.stuck") == 1, "the log says it once"
        held.ended = True
        assert stuck.problems() == []
    finally:
        go_on.set()
        thread.join(60)


def test_the_instant_of_asking_is_that_of_the_first_word():
    book = LeaseBook()
    held = held_in(book)
    before = boottime()
    held.ask(Interrupt.CANCELLED)
    first = held.asked_at
    held.ask(Interrupt.LOST)
    assert held.asked_at == first >= before
