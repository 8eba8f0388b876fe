"""A handler's destructors and signal handlers run in the middle of our own code, in any thread: it never waits for
itself, and no sentence is cut in two."""

import gc
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

import tests.isolation.handlers  # noqa: F401
from jobs import cancellation
from jobs.cancellation import CancelFlag
from jobs.conf import conf
from jobs.outcomes import LogLine
from jobs.states import State
from tests.isolation.house import claim_of
from workers import context, notes
from workers.clock import boottime
from workers.context import WorkerContext
from workers.execution import prepare
from workers.isolation import HandlerLoop, frames, wire
from workers.isolation.gate import Gate
from workers.leases import Held
from workers.notes import Notes

LINES = 1000


class Interrupted:
    """Runs something, and between its instructions in some modules `intruder`, as the collector and signals may.

    In a thread that is given up after a while: what waits for itself waits for ever.
    """

    def __init__(self, modules: list[Any], intruder: Callable[[], object]) -> None:
        self._files = {module.__file__ for module in modules}
        self._intruder = intruder
        self._inside = False
        self._only: int | None = None
        self.steps = 0

    def run[T](self, work: Callable[[], T]) -> T:
        """Interrupt at every instruction."""
        found: list[T] = []
        thread = threading.Thread(target=self._traced, args=(lambda: found.append(work()),), daemon=True)
        thread.start()
        thread.join(60)
        assert found, "it waits for itself"
        return found[0]

    def each(self, work: Callable[[int], object], after: Callable[[int], object]) -> int:
        """Interrupt `work` at its first instruction, the next time at its second, and so on to its last; then `after`,
        uninterrupted. How often."""

        def all_() -> int:
            for number in range(10_000):
                self.steps, self._only = 0, number
                sys.settrace(self._trace)  # (an intruder that raises ends it)
                with suppress(TimeoutError):
                    work(number)
                done, self._only = self.steps <= number, -1
                after(number)
                if done:
                    return number + 1
            raise AssertionError("it has no end")

        return self.run(all_)

    def _traced(self, work: Callable[[], object]) -> None:
        sys.settrace(self._trace)
        try:
            work()
        finally:
            sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename not in self._files:
            return None
        frame.f_trace_opcodes = True
        self.steps += event == "opcode"
        if event == "opcode" and not self._inside and self._only in (None, self.steps - 1):
            self._inside = True
            try:
                self._intruder()
            finally:
                self._inside = False
        return self._trace


def ctx_of(dirty: Callable[[WorkerContext], None] = lambda ctx: None) -> WorkerContext:
    return WorkerContext(Held(claim_of("iso.echo", {}), boottime() + 60), dirty)


class Ledger:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []

    def note(self, note: Any) -> None:
        self.lines += note.logs


def test_a_line_in_the_middle_of_any_step_of_the_engine_neither_stops_it_nor_is_lost():
    ledger, lines = Ledger(), []
    said = Notes(ledger)  # type: ignore[arg-type]
    ctx = ctx_of(said.dirty)

    def intrude() -> None:
        lines.append(f"line {len(lines)}")
        ctx.log(lines[-1])
        ctx.report_progress(len(lines) % 100, lines[-1])
        if len(lines) < 200:
            ctx_of(said.dirty).log("another's")

    def flush_and_end() -> tuple[LogLine, ...]:
        for _ in range(5):
            ctx.log("from the handler")
            said.flush()
        return ctx.end()

    interrupted = Interrupted([context, notes], intrude)
    ledger.lines += interrupted.run(flush_and_end)
    assert interrupted.steps > 200
    ledger.lines += ctx._take_lines()  # what was said after the end
    own = [line for line in ledger.lines if line.message != "another's"]
    assert len(own) < len(ledger.lines)
    assert [line.number for line in own] == list(range(1, len(own) + 1))
    assert len(own) == min(len(lines) + 5, conf().limits.log_lines + 1)


def test_the_engine_does_not_wait_for_the_end_of_an_execution():
    ctx = ctx_of()
    ctx.log("a line")
    with ctx._taking:
        Interrupted([], lambda: None).run(lambda: ctx.hand_over(lambda note: pytest.fail("it was taken twice")))
    assert [line.message for line in ctx.end()] == ["a line"]


def test_a_flag_may_be_asked_and_waited_for_in_the_middle_of_being_set():
    calls: list[int] = []
    flags: list[CancelFlag] = []

    def intrude() -> None:
        if flags and len(calls) < 5000:
            flags[-1].when_set(lambda: calls.append(1))
            flags[-1].wait(0)
            calls.append(0)

    def use() -> bool:
        for _ in range(5):
            flags.append(CancelFlag())
            flags[-1].wait(0.001)
            assert flags[-1].set()
            assert not flags[-1].set()
        return True

    interrupted = Interrupted([cancellation], intrude)
    assert interrupted.run(use)
    assert calls.count(1) == calls.count(0) > 100  # each callback once


class Line:
    """A wire and what arrives at its other end."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.wire = wire.Wire(ours, Gate())
        self._decoder, self.messages = frames.Decoder(), []
        self._ends = ours, theirs
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while data := self._ends[1].recv(65536):
            self.messages += self._decoder.feed(data)

    def close(self) -> list[list[Any]]:
        self.wire.finish()
        self._ends[0].shutdown(socket.SHUT_WR)
        self._reader.join(60)
        for end in self._ends:
            end.close()
        return self.messages


LONG = "x" * 300_000  # more than the connection holds at once


def test_what_is_said_in_the_middle_of_a_sentence_comes_whole_and_beside_it():
    line, said = Line(), []

    def intrude() -> None:
        said.append(len(said))
        line.wire.send("intruder", said[-1])

    interrupted = Interrupted([wire], intrude)
    runs = interrupted.each(lambda n: line.wire.send("own", n, LONG), lambda n: line.wire.send("after", n))
    messages = line.close()
    assert runs > 100
    assert [message for message in messages if message[0] == "own"] == [["own", n, LONG] for n in range(runs)]
    assert [message[1] for message in messages if message[0] == "intruder"] == said
    assert len(said) == runs - 1
    assert [message[0] for message in messages].index("after") == 2  # nothing waits for the next sentence


def test_an_exception_in_the_middle_of_a_sentence_leaves_no_half_of_it_and_says_it_once():
    """A handler's timer raises, at each instruction once: the lines before and after it come whole."""
    line = Line()

    def intrude() -> None:
        raise TimeoutError

    def go_on(number: int) -> None:
        line.wire.finish()
        line.wire.send("after", number)

    runs = Interrupted([wire], intrude).each(lambda n: line.wire.send("own", n, LONG), go_on)
    messages = line.close()
    own = [message for message in messages if message[0] == "own"]
    assert runs > 100
    assert [message[1] for message in messages if message[0] == "after"] == list(range(runs))
    assert own == [["own", n, LONG] for n in sorted({message[1] for message in own})]


@pytest.mark.crash
@pytest.mark.parametrize("type_", ["iso.destructors", "iso.ticks"])
def test_a_handler_in_a_child_that_speaks_in_the_middle_of_its_own_words_ends_with_all_of_them(house, type_):
    ending = house.run(type_, {"lines": LINES}, max_attempts=1)
    assert ending.to == State.SUCCEEDED, ending.error
    own = [line.message for line in ending.logs if line.message.startswith("line ")]
    assert own == [f"line {n}" for n in range(len(own))]
    kept = conf().limits.log_lines
    assert len(own) == LINES or len(ending.logs) == kept + 1
    assert len(own) < len(ending.logs)
    assert house.result("iso.echo")


@pytest.mark.crash
def test_a_handler_in_a_child_that_breaks_off_its_own_words_ends_well(house):
    """Its signal handler raises in the middle of lines that the connection does not hold at once."""
    held = [house.start("iso.breaks", {"rounds": 60}, max_attempts=1) for _ in range(3)]
    for one in held:
        ending = house.end(one)
        assert (ending.to, ending.result) == (State.SUCCEEDED, '{"broken":60}'), ending.error
        assert {line.message for line in ending.logs[:-1]} == {"x" * 8000}
    assert house.result("iso.echo")


@pytest.mark.crash
def test_a_timer_that_goes_on_after_its_handler_has_returned_spoils_neither_its_job_nor_the_next(house):
    ends = [house.run("iso.breaks", {"after": 0.0001 + n * 0.00005}, max_attempts=1) for n in range(30)]
    later = [end for end in ends if end.error is None or ", in breaks\n" not in end.error.stack]  # else before it
    assert later
    assert {(end.to, end.result) for end in later} == {(State.SUCCEEDED, '{"broken":0}')}, later
    assert house.result("iso.echo")


@pytest.mark.crash
def test_what_a_signal_handler_raises_after_its_handler_has_returned_takes_nothing_from_its_job(house):
    pids = {house.result("iso.echo")["pid"]}
    for at in range(60):
        ending = house.run("iso.raises_after", {"at": at}, max_attempts=1)
        assert (ending.to, ending.result) == (State.SUCCEEDED, "{}"), (at, ending.error)
    assert pids == {house.result("iso.echo")["pid"]}


def test_async_handlers_that_leave_garbage_which_speaks_do_not_stop_the_engine():
    ledger, ended = Ledger(), threading.Semaphore(0)
    said = Notes(ledger)  # type: ignore[arg-type]
    loop = HandlerLoop(lambda execution, ending: ended.release())
    loop.start()
    thresholds = gc.get_threshold()
    try:
        held = [Held(claim_of("iso.async_destructors", {"lines": 300}), boottime() + 60) for _ in range(10)]
        done = threading.Event()
        engine = threading.Thread(target=_flush, args=(said, done), daemon=True)
        gc.set_threshold(1)
        engine.start()
        loop.start_all([prepare(one, said.dirty) for one in held])
        for _ in held:
            assert ended.acquire(timeout=60), "it hangs"
        done.set()
        engine.join(60)
        assert not engine.is_alive()
    finally:
        gc.set_threshold(*thresholds)
        loop.close()
        loop._loop.close()
    gc.collect()


def _flush(said: Notes, done: threading.Event) -> None:
    while not done.wait(0.001):
        said.flush()
