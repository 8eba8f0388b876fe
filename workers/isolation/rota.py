"""What waits for a child, and which child gets it.

Who is busy with short jobs is given more before anybody is woken; then whoever is idle, the one that was used last
first. Only where that is not enough, and none will be free at once, one more child is asked for.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping

from workers.execution import Execution
from workers.isolation.handle import Child
from workers.isolation.pace import LONG, Pace


class Rota:
    """Executions that no child has begun, and the `idle` ones of the `children`; `ask` asks for one more child.

    `waiting` and `own` have for each execution the time at which it has waited too long, on the monotonic clock, which
    is the loop's; `own` are those that get a child of their own. Belongs to the pool's loop.
    """

    def __init__(self, children: Mapping[int, Child], ask: Callable[[], None], loop: asyncio.AbstractEventLoop) -> None:
        self.waiting: OrderedDict[Execution, float] = OrderedDict()
        self.own: OrderedDict[Execution, float] = OrderedDict()
        self.idle: list[Child] = []
        self.pace = Pace()
        self._children = children
        self._ask = ask
        self._loop = loop
        self._look_again: asyncio.TimerHandle | None = None
        self._look_behind: asyncio.TimerHandle | None = None
        self._large: Execution | None = None  # what was found to be too large to be given ahead

    def __iter__(self) -> Iterator[Execution]:
        """What waits; it may change meanwhile."""
        return iter([*self.waiting, *self.own])

    def add(self, execution: Execution, now: float) -> None:
        """This has come: it waits behind the others."""
        queue = self._queue_of(execution)
        queue[execution] = self.pace.due(now, len(queue) - len(self.idle))

    def add_first(self, execution: Execution, due: float) -> None:
        """This has waited before: it waits before the others."""
        queue = self._queue_of(execution)
        queue[execution] = due
        queue.move_to_end(execution, last=False)

    def drop(self, execution: Execution) -> bool:
        """This waits no more; whether it did."""
        for queue in (self.waiting, self.own):
            if execution in queue:
                del queue[execution]
                return True
        return False

    def put_back(self, child: Child, *, but_first: bool = False) -> list[Execution]:
        """Let what a child has not begun wait again, and say what that is; `but_first`: but what it will begin with."""
        back = child.docket.take_back(but_first=but_first)
        for given in reversed(back):
            self.add_first(given.execution, given.due)
        if not child.docket.jobs and not child.leaving and child not in self.idle:
            self.idle.append(child)
        return [given.execution for given in back]

    def forget(self, child: Child) -> None:
        """It is given nothing more."""
        if child in self.idle:
            self.idle.remove(child)

    @property
    def works_ahead(self) -> bool:
        """Whether a child has more to do than it is at."""
        if self._look_behind is None:
            return False
        return any(len(child.docket.jobs) > 1 for child in self._children.values())

    def freed(self, child: Child) -> None:
        """It has ended a job, and may be given another."""
        self.pace.freed(child, self._children.values(), len(self._children))
        if not child.docket.jobs:
            self.idle.append(child)
        self.pump(child)

    def pump(self, freed: Child | None = None) -> None:
        """Give work to who takes it; `freed`: since the last time only this one of the busy has more room."""
        if self.waiting:
            self._hand_out(freed)
        if self.own or (self.waiting and not self._flows()):
            self._ask()

    def _hand_out(self, freed: Child | None) -> None:
        now, count = self._loop.time(), len(self._children)
        for child in self._takers(freed):
            while self.pace.takes(child, count, now):
                execution, due = next(iter(self.waiting.items()))
                busy = bool(child.docket.jobs)
                if busy and execution is self._large:
                    break
                length = self.pace.length(execution.held.claim.type)
                if not child.docket.give(execution, due=due, length=length):
                    self._large = execution
                    break
                if execution is self._large:
                    self._large = None
                del self.waiting[execution]
                if busy and self._look_behind is None:
                    self._look_behind = self._loop.call_later(LONG, self._free_those_behind)
                if not self.waiting:
                    return

    def _takers(self, freed: Child | None) -> Iterator[Child]:
        if freed is None:
            yield from [child for child in self._children.values() if child.docket.jobs]
        elif freed.docket.jobs:
            yield freed
        while self.idle:
            yield self.idle.pop()

    def _free_those_behind(self) -> None:
        """What stands behind a job that has turned out to be long waits here again."""
        self._look_behind = None
        long = self._loop.time() - LONG
        ahead = [child for child in self._children.values() if len(child.docket.jobs) > 1]
        for child in ahead:
            if child.docket.since <= long or child.docket.jobs[1].at <= long - LONG:
                self.put_back(child, but_first=True)
        if ahead:
            self._look_behind = self._loop.call_later(LONG, self._free_those_behind)
        self.pump()

    def _flows(self) -> bool:
        """Whether one more child would only wait like the present ones; looked at again when that may be over, and
        after `pace.FLOW` at the latest."""
        until = min(self.pace.flows_until, next(iter(self.waiting.values())))
        if until <= self._loop.time():
            return False
        if self._look_again is None:
            self._look_again = self._loop.call_at(until, self._pump_again)
        return True

    def _pump_again(self) -> None:
        self._look_again = None
        self.pump()

    def _queue_of(self, execution: Execution) -> OrderedDict[Execution, float]:
        fresh = execution.job_type is not None and execution.job_type.fresh
        return self.own if fresh or execution.held.claim.lost_count else self.waiting
