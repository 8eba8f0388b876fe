"""A handler module without handlers: imported by a worker, it takes away the guard that MUTANT names, in that process.

Whatever the worker forks afterwards lacks it as well; the supervisor, which imports no handlers, has all of its own.
"""

import os
from contextlib import contextmanager
from typing import Any

NEVER = 1e12  # an instant beyond everything


def everybody_leads() -> None:
    """The lease row is not asked: each worker does all the housekeeping, all the time."""
    from jobs import leadership

    leadership.lead = lambda *_arguments, **_options: True


def release_first() -> None:
    """At its end a worker gives its jobs back, and ends their handlers afterwards."""
    from jobs import transitions
    from workers.connections import ENGINE
    from workers.consumer import Consumer

    finish = Consumer.finish

    async def released(self: Consumer, *arguments: Any) -> bool:
        import asyncio

        held = [(h.claim.id, h.claim.dispatch_id) for h in self._book.everything()]
        owner = self._ends._worker_id
        await asyncio.to_thread(lambda: transitions.release(held, worker_id=owner, using=ENGINE))
        return await finish(self, *arguments)

    Consumer.finish = released  # type: ignore[method-assign]


def take_back_first() -> None:
    """A neighbour's word that it is dead is enough: what it left running is neither looked for nor killed."""
    from workers import orphans, runfiles

    @contextmanager
    def believed(*_arguments: Any) -> Any:
        yield True

    orphans.kill_orphans = lambda *_arguments, **_options: True
    runfiles.is_free = believed


def no_deadline() -> None:
    """Nobody counts: neither the worker, nor what it tells its supervisor, nor the watchdog of a child."""
    from workers.isolation.watchdog import Watchdog
    from workers.leases import LeaseBook

    _told_never(Watchdog)
    enter = LeaseBook.__init__
    LeaseBook.__init__ = lambda self, *_told: enter(self)  # type: ignore[method-assign]
    LeaseBook.nearest = lambda self: None  # type: ignore[method-assign]
    LeaseBook.overdue = lambda self, now: []  # type: ignore[method-assign]


def _told_never(watchdog: Any) -> None:
    begin, hear = watchdog.begin, watchdog._hear

    def begins(self: Any, number: int, held: Any, ctx: Any) -> None:
        held.deadline = NEVER
        begin(self, number, held, ctx)

    def hears(self: Any, words: list[str]) -> None:
        hear(self, words if words[0] == "ask" else [*words[:2], str(NEVER)])

    watchdog.begin, watchdog._hear = begins, hears


MUTANTS = {mutant.__name__: mutant for mutant in (everybody_leads, release_first, take_back_first, no_deadline)}
if os.environ.get("MUTANT"):
    MUTANTS[os.environ["MUTANT"]]()
