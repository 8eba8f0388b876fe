"""The loop of async handlers: a thread of its own, so that a handler that blocks it starves no engine."""

import asyncio
import logging
import os
import selectors
import threading
from collections.abc import Callable, Sequence

from jobs.outcomes import Ending
from workers import copies
from workers.execution import Execution
from workers.leases import CANCEL_GRACE, Interrupt

log = logging.getLogger(__name__)
Done = Callable[[Execution, Ending], None]


class HandlerLoop(threading.Thread):
    """Runs executions as tasks; `done` is called in this thread with each end."""

    def __init__(self, done: Done) -> None:
        super().__init__(name="turno-handlers", daemon=True)
        self._done = done
        self._loop: asyncio.AbstractEventLoop = asyncio.SelectorEventLoop(_Selector())
        self._closing = False

    def run(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._closing:
            try:
                self._loop.run_forever()
            except BaseException:  # (SystemExit of a task that a handler started and left alone)
                log.exception("handlers.loop_interrupted")

    def start_all(self, executions: Sequence[Execution]) -> None:
        """Start executions; called from the engine."""
        self._loop.call_soon_threadsafe(self._start_all, executions)

    def _start_all(self, executions: Sequence[Execution]) -> None:
        for execution in executions:
            LoopRun(execution, self._loop, self._done)

    def close(self, timeout: float = 1.0) -> None:
        """Stop the loop; what still runs in it is abandoned."""
        self._closing = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.join(timeout)


class _Selector(selectors.DefaultSelector):
    """Waits for what the loop waits for, but never in a copy of this process: that would run everybody's handlers."""

    def __init__(self) -> None:
        super().__init__()
        self._pid = os.getpid()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if os.getpid() != self._pid:
            copies.leave_loop()
        return super().select(timeout)


class LoopRun:
    """One execution on the loop: its task, its time limit, and how it is asked to stop."""

    def __init__(self, execution: Execution, loop: asyncio.AbstractEventLoop, done: Done) -> None:
        self._execution = execution
        self._loop = loop
        self._done = done
        self._told = False
        self._task = loop.create_task(self._line())
        self._task.add_done_callback(self._ended)
        self._timer = loop.call_later(execution.limit, execution.time_out)
        held = execution.held
        held.thread = threading.get_ident()
        held.stop = self._stop
        if held.interrupt is not None:  # it was asked to stop before it started
            self._stop(held.interrupt)

    async def _line(self) -> None:
        self._tell(await self._execution.arun())

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """Of a task that another handler cancelled before it began, nobody has told the end."""
        if not self._told and task.cancelled():
            self._tell(self._execution.not_started())

    def _tell(self, ending: Ending) -> None:
        self._told = True
        self._timer.cancel()
        self._done(self._execution, ending)

    def _stop(self, why: Interrupt) -> None:
        """From any thread: cancel the task, after a moment in which the handler may stop by itself."""
        grace = CANCEL_GRACE if why is Interrupt.CANCELLED else 0.0
        self._loop.call_soon_threadsafe(self._loop.call_later, grace, self._cancel)

    def _cancel(self) -> None:
        if not self._execution.over:
            self._task.cancel()
