"""Suspects: jobs that were lost twice, or that the next loss would condemn. Each runs alone on its worker, so that this
loss is its own doing.

One that is claimed waits here, and nothing more is claimed, until what runs has ended; then it runs, and still nothing
is claimed until it has ended. While it waits it stands in the table as not begun: whoever takes this worker down then
costs it nothing. Those that were claimed together run one after the other. One that runs on long past its time limit
keeps its slot, but no longer the whole worker.

It does not wait for ever, or one long handler would keep a worker from all other work: it is put off, uncharged, and
comes again in a while, here or elsewhere. Each time it waits twice as long, so that it gets its turn at last, however
long the other handlers are.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from uuid import UUID

from jobs.conf import conf
from jobs.outcomes import Claim, Ending
from workers import conclusion
from workers.connections import DATABASE_ERRORS
from workers.execution import Execution
from workers.leases import Held, Interrupt

log = logging.getLogger(__name__)
SUSPECT = 2  # losses
PATIENCE = 60.0  # seconds that a suspect waits the first time
DOUBLINGS = 6  # the longest wait is then about an hour
AGAIN = 0.5  # seconds after which the database is asked again
OVERRUN = 30.0  # seconds past its time limit for which a suspect that will not end is still left alone
Begin = Callable[[Sequence[Held], bool], "Future[frozenset[UUID]]"]


def is_suspect(held: Held) -> bool:
    """Whether the job must run alone."""
    return held.claim.lost_count >= max(1, min(SUSPECT, conf().resilience.lost_limit - 1))


def patience(claim: Claim) -> float:
    """Seconds that a suspect waits for its turn: doubled with each execution that came to nothing before."""
    wasted = max(0, claim.execution - 1 - claim.attempts_used)
    return PATIENCE * 2.0 ** min(wasted, DOUBLINGS)


class Quarantine:
    """Lives on the engine's loop. `others`: how many executions run here besides; `start` runs one; `end` ends one that
    was not begun; `begin` tells the database that handlers have (True) or have not begun, and is answered the tokens
    of those that are still ours; `let_go` hears of one that runs on and counts among the others from now on.
    `broken`: why no suspect can be run here any more; None: they can."""

    def __init__(
        self,
        *,
        others: Callable[[], int],
        begin: Begin,
        start: Callable[[Execution], None],
        end: Callable[[Held, Ending], None],
        let_go: Callable[[Held], None],
    ) -> None:
        self._others = others
        self._begin = begin
        self._start = start
        self._end = end
        self._let_go = let_go
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Execution] = deque()  # the one that runs included: it is the first
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        self.broken: str | None = None

    def __len__(self) -> int:
        """How many suspects wait or run: while there is one, nothing more may be claimed."""
        return len(self._queue)

    async def add(self, executions: Sequence[Execution]) -> None:
        """These were claimed; each runs when it is alone. Nothing that was claimed with them may start before this has
        returned: by then the database knows of those that wait, unless all of them were asked to stop. When it raises,
        or is cancelled, they are looked after all the same."""
        for execution in executions:
            self._queue.append(execution)
            execution.held.stop = self._on_stop
        waiting = [one for one in executions if not self._is_its_turn(one)]
        if self._closing:
            self.close()
        told = False
        try:
            told = await self._say_of(waiting)
        finally:
            for execution in executions:
                begun = execution not in waiting  # as its claim has it
                task = self._loop.create_task(self._line(execution, None if not (told or begun) else begun))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def freed(self, held: Held) -> None:
        """An execution has ended, and that is written."""
        for execution in self._queue:
            if execution.held is held:
                self._queue.remove(execution)
                break
        self._tell()

    def close(self) -> None:
        """The worker is about to stop: what waits is given back, what runs has its grace like the others."""
        self._closing = True
        for execution in self._queue:
            if execution.held.stop == self._on_stop:
                execution.held.ask(Interrupt.SHUTDOWN)

    def _on_stop(self, why: Interrupt) -> None:
        """One that waits is asked to stop; in any thread."""
        self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _is_its_turn(self, execution: Execution) -> bool:
        return self._queue[0] is execution and not self._others()

    async def _say_of(self, waiting: Sequence[Execution]) -> bool:
        """Say of several that they have not begun, until the database has it; False when all of them are to stop."""
        while any(one.held.interrupt is None for one in waiting):
            try:
                await asyncio.wrap_future(self._begin([one.held for one in waiting], False))
            except DATABASE_ERRORS:
                await asyncio.sleep(AGAIN)
            else:
                return True
        return not waiting

    async def _line(self, execution: Execution, begun: bool | None) -> None:
        try:
            await self._wait(execution, begun)
        except Exception as error:
            log.exception("suspect.failed", extra={"job": str(execution.held.claim.id)})
            self.broken = str(error) or type(error).__name__
            self._end(execution.held, execution.not_started())

    async def _wait(self, execution: Execution, begun: bool | None) -> None:
        """From its claim to its start. `begun`: what the database has of it; None: it may not have heard it."""
        held, about = execution.held, {"job": str(execution.held.claim.id), "type": execution.held.claim.type}
        limit = self._loop.time() + patience(held.claim)
        if begun is None:
            begun = not await self._say(execution, begun=False)
        if not begun:
            log.info("suspect.waits", extra=about | {"others": self._others(), "suspects": len(self._queue)})
        while held.interrupt is None and not (begun and self._is_its_turn(execution)):
            changed = self._changed
            if self._is_its_turn(execution):
                begun = await self._say(execution, begun=True)
            elif self._loop.time() >= limit:
                log.warning("suspect.put_off", extra=about | {"others": self._others()})
                delay = patience(held.claim) * random.uniform(0.8, 1.2)  # noqa: S311  (jitter)
                self._end(held, conclusion.not_alone(held.claim, delay))
                return
            else:
                try:
                    async with asyncio.timeout_at(limit):
                        await changed.wait()
                except TimeoutError:
                    pass
        if held.interrupt is not None:
            self._end(held, execution.not_started())
            return
        log.info("suspect.alone", extra=about)
        held.stop = None
        self._loop.call_later(execution.limit + OVERRUN, self._overrun, execution)
        self._start(execution)

    def _overrun(self, execution: Execution) -> None:
        """It has run for longer than it may: who does not hear the word "stop" (a thread) must not block all others."""
        held = execution.held
        if execution in self._queue and not held.ended:
            log.warning("suspect.let_go", extra={"job": str(held.claim.id), "type": held.claim.type})
            self._queue.remove(execution)
            self._let_go(held)
            self._tell()

    async def _say(self, execution: Execution, *, begun: bool) -> bool:
        """Whether the database has it, which is asked until it answers; False when the job is to stop."""
        held = execution.held
        while held.interrupt is None:
            try:
                mine = await asyncio.wrap_future(self._begin([held], begun))
            except DATABASE_ERRORS:
                await asyncio.sleep(AGAIN)
            else:
                if held.claim.dispatch_id in mine:
                    return True
                held.ask(Interrupt.LOST)
        return False
