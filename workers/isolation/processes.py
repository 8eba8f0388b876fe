"""The pool of child processes: which execution runs in which child, and how children come and go.

A child that is free waits for the next job, the one that was used last first; who is busy with short jobs gets more
ahead (`rota`). A job of a type that is `fresh`, or that was lost before, gets a child of its own. An execution that
no child has begun waits here, or is taken back, and can be cancelled.
"""

import asyncio
import logging
import math
import threading
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
from workers.isolation.nap import new_loop
from workers.isolation.rota import Rota
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
        self._loop = new_loop(lambda: self._rota.works_ahead)
        known = (t.name for t in catalogue.types() if t.isolation == "process")
        self._supply = Supply(server, frozenset(known if types is None else types), self, self._loop)
        self._children: dict[int, Child] = {}  # by the forkserver's numbers
        self._rota = Rota(self._children, self._supply.ask, self._loop)
        self._abandoned: set[Child] = set()
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
            self._rota.add(execution, now)
            if self._closing:
                held.ask(Interrupt.SHUTDOWN)
            if held.interrupt is not None:  # it was asked to stop before it came here
                self._ask(execution, held.interrupt)
        if self._rota.idle:
            self._rota.pace.came(now)
        self._rota.pump()
        self._give_back()

    def _drain(self) -> None:
        self._draining = True
        self._give_back()

    def _give_back(self) -> None:
        if self._draining and not self._supply.ready:
            for execution in self._rota:
                execution.held.ask(Interrupt.SHUTDOWN)

    def _stop_of(self, execution: Execution) -> Callable[[Interrupt], None]:
        def stop(why: Interrupt) -> None:
            with suppress(RuntimeError):  # the loop has ended, and all children with it
                self._loop.call_soon_threadsafe(self._ask, execution, why)

        return stop

    def _ask(self, execution: Execution, why: Interrupt) -> None:
        if (child := self._child_of(execution)) is not None:
            child.hear()  # it may have ended this, and have begun with what stood behind it
            child = self._child_of(execution)
        if child is None:
            if self._rota.drop(execution):
                self.ended(execution, execution.not_started())
            return
        # What had all its time and is not begun stays: its child begins with it now, or dies.
        self._put_back(child, but_first=why is Interrupt.TIMEOUT)
        child.docket.ask(execution, why)
        self._rota.pump()

    def _child_of(self, execution: Execution) -> Child | None:
        children = self._children.values()
        return next((c for c in children if any(given.execution is execution for given in c.docket.jobs)), None)

    def _put_back(self, child: Child, *, but_first: bool = False) -> None:
        """Let what a child has not begun wait again, but for what was asked to stop meanwhile: that has ended."""
        for execution in self._rota.put_back(child, but_first=but_first):
            if execution.held.interrupt is not None and self._rota.drop(execution):
                self.ended(execution, execution.not_started())

    # What children say (`handle.Owner`).

    def freed(self, child: Child) -> None:
        """It has ended a job, and may be given another."""
        self._rota.freed(child)

    def leaves(self, child: Child) -> None:
        """It will begin with nothing more: what it has not begun goes to others. (Where it has never begun anything,
        `not_begun` tells of that.)"""
        self._rota.forget(child)
        if child.begun:
            self._put_back(child)
            self._rota.pump()

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
        self._rota.add_first(execution, -math.inf)  # it has waited
        if execution.held.interrupt is not None:
            self._ask(execution, execution.held.interrupt)

    def unheard(self, child: Child) -> None:
        """It has been dead for a while, and the forkserver does not say so."""
        if child.dead_since is not None and self._supply.hangs(child.dead_since):
            self._supply.lose(f"it does not tell that {child.pid} is dead")

    # What the forkserver says (`supply.Customer`).

    def supplied(self) -> None:
        """A child may be asked for again."""
        self._rota.pump()

    def spawned(self, number: int, pid: int, descriptors: list[int]) -> None:
        """The child that was asked for."""
        child = self._children[number] = Child(number, pid, descriptors, self, self._loop)
        if self._closing:
            child.retire()
        elif self._rota.own:
            execution, _ = self._rota.own.popitem(last=False)
            child.docket.give(execution, last=True)
        else:
            self._rota.idle.append(child)
        self._rota.pump()

    def reaped(self, message: dict[str, Any]) -> None:
        """A child is dead, and nothing of it lives."""
        child = self._children.pop(message["ended"], None)
        if child is None:
            return
        self._rota.forget(child)
        child.died(Death(message["exit"], message["signal"], message["peak"]))
        self._rota.pump()
        self._end_when_empty()

    def abandoned(self, server: ForkServer) -> None:
        """The forkserver is of no use any more: it, and every child that it made, is killed now."""
        children = list(self._children.values())
        self._children.clear()
        self._rota.idle.clear()
        self._abandoned.update(children)
        killed = [tree.kill_tree(child.pid) for child in children if child.alive]
        if not server.kill() or not all(killed):
            log.critical("forkserver.not_clean", extra={"pid": server.pid})
        for child in children:
            child.leaving = True
            self._put_back(child)
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
        self._rota.pump()  # a job that it had not begun waits again
        self._give_back()
        self._end_when_empty()

    # Children that have nothing to do, and the end.

    def _trim(self) -> None:
        idle = conf().worker.child_idle
        limit = self._loop.time() - idle
        for child in [child for child in self._rota.idle if child.idle_since < limit]:
            self._rota.forget(child)
            child.retire()
        self._loop.call_later(max(0.05, idle * TRIM), self._trim)

    def _close(self) -> None:
        self._closing = True
        self._supply.stop()
        for child in self._children.values():
            self._put_back(child)
        running = [given.execution for child in self._children.values() for given in child.docket.jobs]
        for execution in [*self._rota, *running]:
            execution.held.ask(Interrupt.SHUTDOWN)
        for execution in self._rota:
            self._ask(execution, Interrupt.SHUTDOWN)
        for child in self._children.values():
            child.kill() if child.docket.jobs else child.retire()
        self._rota.idle.clear()
        self._end_when_empty()

    def _end_when_empty(self) -> None:
        if self._closing and not self._children and not self._abandoned:
            self._loop.stop()
