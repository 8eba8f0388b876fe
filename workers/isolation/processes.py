"""The pool of child processes: which execution runs in which child, and how children come and go.

A child that is free waits for the next job, the one that was used last first. A job of a type that is `fresh`, or that
was lost before, gets a child of its own. An execution that no child has begun waits here, and can be cancelled.
"""

import asyncio
import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from jobs.conf import conf
from jobs.outcomes import Ending
from jobs.registry import catalogue
from workers import tree
from workers.conclusion import Death, Fault
from workers.execution import Execution
from workers.isolation.forkserver import ForkServer
from workers.isolation.handle import Child
from workers.isolation.pace import Pace
from workers.isolation.supply import Supply
from workers.leases import Interrupt

log = logging.getLogger(__name__)
Done = Callable[[Execution, Ending], None]
TRIM = 0.25  # of `child_idle`: how often idle children are looked at
ORPHANS = 4.0  # seconds in which the supervisor finds what a child had left whose forkserver died with it (by `marks`)
STILLBORN = 8  # children that may end before they begin with a job: then that ends as lost
LOOK = 0.5  # seconds between two looks at a child that can't be killed
ENDING = 3.0  # seconds for the forkserver to end by itself


class ProcessPool(threading.Thread):
    """Runs executions in child processes; `done` is called in this thread with each end, when nothing of it runs.

    `types`: those that every forkserver has to know, by default all that run in processes.
    """

    def __init__(self, server: ForkServer, done: Done, types: Iterable[str] | None = None) -> None:
        super().__init__(name="turno-processes", daemon=True)
        self._done = done
        self._loop = asyncio.new_event_loop()
        known = (t.name for t in catalogue.types() if t.isolation == "process")
        self._supply = Supply(server, frozenset(known if types is None else types), self, self._loop)
        # Each with the time at which it has waited too long, on the monotonic clock, which is the loop's.
        self._waiting: OrderedDict[Execution, float] = OrderedDict()
        self._own: OrderedDict[Execution, float] = OrderedDict()
        self._children: dict[int, Child] = {}  # by the forkserver's numbers
        self._idle: list[Child] = []
        self._abandoned: set[Child] = set()
        self._pace = Pace()
        self._look_again: asyncio.TimerHandle | None = None
        self._draining = False
        self._closing = False
        self.clean = True  # after close(): whether everything has ended

    # From other threads.

    def start_all(self, executions: Sequence[Execution]) -> None:
        """Start executions; called from the engine."""
        self._loop.call_soon_threadsafe(self._start_all, executions)

    def close(self, timeout: float = 10.0) -> bool:
        """End everything: what runs is killed, and ends as a shutdown ends it. Whether nothing was left alive."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._close)
        self.join(timeout)
        return self.clean and not self.is_alive()

    def drain(self) -> None:
        """The worker is about to end: without a forkserver, what no child has begun is given back at once."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._drain)

    @property
    def trouble(self) -> str | None:
        """Why no child can be had at the moment; None: as far as is known one can."""
        return self._supply.trouble

    @property
    def broken(self) -> str | None:
        """Why no child will be had here any more, after many tries; None: one may."""
        return self._supply.broken

    @property
    def children(self) -> list[int]:
        """The pids of all children, for tests and figures."""
        return [child.pid for child in list(self._children.values())]

    def run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._supply.begin()
        self._trim()
        self._loop.run_forever()
        self.clean = self._supply.end(ENDING)
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    # Executions.

    def _start_all(self, executions: Sequence[Execution]) -> None:
        now = self._loop.time()
        for execution in executions:
            held = execution.held
            held.stop = self._stop_of(execution)
            queue = self._queue_of(execution)
            queue[execution] = self._pace.due(now, len(queue) - len(self._idle))
            if self._closing:
                held.ask(Interrupt.SHUTDOWN)
            if held.interrupt is not None:  # it was asked to stop before it came here
                self._ask(execution, held.interrupt)
        if self._idle:
            self._pace.came(now)
        self._pump()
        self._give_back()

    def _drain(self) -> None:
        self._draining = True
        self._give_back()

    def _give_back(self) -> None:
        if self._draining and not self._supply.ready:
            for execution in [*self._waiting, *self._own]:
                execution.held.ask(Interrupt.SHUTDOWN)

    def _stop_of(self, execution: Execution) -> Callable[[Interrupt], None]:
        def stop(why: Interrupt) -> None:
            with suppress(RuntimeError):  # the loop has ended, and all children with it
                self._loop.call_soon_threadsafe(self._ask, execution, why)

        return stop

    def _queue_of(self, execution: Execution) -> OrderedDict[Execution, float]:
        fresh = execution.job_type is not None and execution.job_type.fresh
        return self._own if fresh or execution.held.claim.lost_count else self._waiting

    def _ask(self, execution: Execution, why: Interrupt) -> None:
        for queue in (self._waiting, self._own):
            if execution in queue:
                del queue[execution]
                self.ended(execution, execution.not_started())
                return
        for child in self._children.values():
            if child.execution is execution:
                child.ask(why)
                return

    def _pump(self) -> None:
        """Give work to who is free; ask for one more child where that is not enough, and none will be free at once."""
        while self._idle and self._waiting:
            execution, _ = self._waiting.popitem(last=False)
            self._idle.pop().give(execution, last=False)
        if self._own or (self._waiting and not self._flows()):
            self._supply.ask()

    def _flows(self) -> bool:
        """Whether one more child would only wait like the present ones; looked at again when that may be over, and
        after `pace.FLOW` at the latest."""
        until = min(self._pace.flows_until, next(iter(self._waiting.values())))
        if until <= self._loop.time():
            return False
        if self._look_again is None:
            self._look_again = self._loop.call_at(until, self._pump_again)
        return True

    def _pump_again(self) -> None:
        self._look_again = None
        self._pump()

    # What children say (`handle.Owner`).

    def freed(self, child: Child) -> None:
        """It has nothing to do."""
        self._pace.freed(child, self._children.values(), len(self._children))
        self._idle.append(child)
        self._pump()

    def begun(self) -> None:
        """A child has begun with a job, or ended one: children live."""
        self._supply.satisfy()

    def ended(self, execution: Execution, ending: Ending) -> None:
        """An execution is over, and nothing of it runs."""
        execution.held.extended = None
        self._done(execution, ending)

    def not_begun(self, execution: Execution, *, stillborn: bool) -> None:
        """The child died before it had begun with what it was given: another one gets it, but not without end."""
        if stillborn:
            execution.stillborn += 1
            self._supply.disappoint("a child ended before it had begun")
        if execution.stillborn >= STILLBORN and execution.held.interrupt is None:
            log.error("child.stillborn", extra={"job": str(execution.held.claim.id), "times": execution.stillborn})
            self.ended(execution, execution.died(Death(fault=Fault.STILLBORN), 0.0))
            return
        queue = self._queue_of(execution)
        queue[execution] = -math.inf  # it has waited
        queue.move_to_end(execution, last=False)
        if execution.held.interrupt is not None:
            self._ask(execution, execution.held.interrupt)

    def unheard(self, child: Child) -> None:
        """It has been dead for a while, and the forkserver does not say so."""
        if child.dead_since is not None and self._supply.hangs(child.dead_since):
            self._supply.lose(f"it does not tell that {child.pid} is dead")

    # What the forkserver says (`supply.Customer`).

    def supplied(self) -> None:
        """A child may be asked for again."""
        self._pump()

    def spawned(self, number: int, pid: int, descriptors: list[int]) -> None:
        """The child that was asked for."""
        child = self._children[number] = Child(number, pid, descriptors, self, self._loop)
        if self._closing:
            child.retire()
        elif self._own:
            execution, _ = self._own.popitem(last=False)
            child.give(execution, last=True)
        else:
            self._idle.append(child)
        self._pump()

    def reaped(self, message: dict[str, Any]) -> None:
        """A child is dead, and nothing of it lives."""
        child = self._children.pop(message["ended"], None)
        if child is None:
            return
        if child in self._idle:
            self._idle.remove(child)
        child.died(Death(message["exit"], message["signal"], message["peak"]))
        self._pump()
        self._end_when_empty()

    def abandoned(self, server: ForkServer) -> None:
        """The forkserver is of no use any more: it, and every child that it made, is killed now."""
        children, self._children, self._idle = list(self._children.values()), {}, []
        self._abandoned.update(children)
        killed = [tree.kill_tree(child.pid) for child in children if child.alive]
        if not server.kill() or not all(killed):
            log.critical("forkserver.not_clean", extra={"pid": server.pid})
        # What one that died at that moment had left may not be below anybody that we know: our supervisor finds that.
        for child in children:
            self._loop.call_later(ORPHANS, self._bury, child)
        self._give_back()

    def _bury(self, child: Child) -> None:
        if child.alive:  # it can't be killed just now (a system call that does not return): its job waits for that
            self._loop.call_later(LOOK, self._bury, child)
            return
        self._abandoned.discard(child)
        child.died(Death(fault=Fault.ABANDONED))
        self._pump()  # a job that it had not begun waits again
        self._give_back()
        self._end_when_empty()

    # Children that have nothing to do, and the end.

    def _trim(self) -> None:
        idle = conf().worker.child_idle
        limit = self._loop.time() - idle
        for child in [child for child in self._idle if child.idle_since < limit]:
            self._idle.remove(child)
            child.retire()
        self._loop.call_later(max(0.05, idle * TRIM), self._trim)

    def _close(self) -> None:
        self._closing = True
        self._supply.stop()
        for execution in [*self._waiting, *self._own, *(c.execution for c in self._children.values() if c.execution)]:
            execution.held.ask(Interrupt.SHUTDOWN)
        for execution in [*self._waiting, *self._own]:
            self._ask(execution, Interrupt.SHUTDOWN)
        for child in self._children.values():
            child.kill() if child.execution is not None else child.retire()
        self._idle.clear()
        self._end_when_empty()

    def _end_when_empty(self) -> None:
        if self._closing and not self._children and not self._abandoned:
            self._loop.stop()
