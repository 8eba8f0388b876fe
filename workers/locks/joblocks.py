"""The locks of jobs in Redis: taken before the claim, kept while the job runs, given back after (`locks.base`)."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from django.utils.translation import gettext as _

from workers.clock import boottime
from workers.locks.base import JobLocks, LocksAway, Taken
from workers.locks.redlock import Item, Redlock, Servers, Standing

log = logging.getLogger(__name__)
CLOSE = 1.0  # seconds for giving everything back at the end
BATCH = 500  # locks in one round trip
NEVER = float("-inf")


@dataclass(slots=True)
class _Lock:
    """A lock that this worker wants: `until` when it is surely its own; `lost`: another has it, it is tried no more;
    `claims`: how many of its own it serves, more than one when a message came twice; `asked`: whether a server may know
    it."""

    item: Item
    since: float
    until: float
    lost: bool = False
    claims: int = 1
    asked: bool = True


class RedisJobLocks(JobLocks):
    """Redlock on `nodes`, which begin and end with it.

    Without a quorum jobs go on unlocked and are locked when it is back (`on_failure` "fence"), or none is taken
    ("defer"). `running`: the tokens of what this worker runs; nothing else is kept for longer than a claim takes. For a
    message that came twice names a job that another worker may run under the very same token: then the lock is that
    one's to keep, and here it is not extended.
    """

    def __init__(
        self,
        nodes: Servers,
        redlock: Redlock,
        *,
        on_failure: Literal["fence", "defer"],
        running: Callable[[], Iterable[UUID]] | None = None,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self._nodes = nodes
        self._redlock = redlock
        self._defers = on_failure == "defer"
        self._running = running
        self._clock = clock
        self._book: dict[UUID, _Lock] = {}
        self._leaving: dict[Item, None] = {}
        self._due = asyncio.Event()
        self._away = False
        self._keeper: asyncio.Task[None] | None = None
        self._flushes: set[asyncio.Task[None]] = set()
        nodes.changed.append(self._due.set)

    def start(self) -> None:
        self._nodes.begin()
        self._keeper = asyncio.create_task(self._keep(), name="job locks")

    async def acquire(self, pairs: Sequence[tuple[UUID, UUID]]) -> Taken:
        items = {token: self._item(job, token) for job, token in pairs}
        if self._leaving:
            for item in items.values():
                self._leaving.pop(item, None)  # given back a moment ago, and wanted again
        await self._nodes.settled()
        try:
            found, until = await self._redlock.acquire(list(items.values()))
        except BaseException:
            self._leave(items.values())  # nobody is told of them
            raise
        self._say(self._redlock.away)
        undecided = {found[item] for item in items.values()} - {Standing.MINE, Standing.TAKEN}
        if self._defers and Standing.AWAY in undecided:
            self._leave(items.values())
            up, every = self._nodes.up, len(self._nodes)
            raise LocksAway(_("%(up)d of %(all)d servers answer") % {"up": up, "all": every})
        wanted = {Standing.MINE} if self._defers else {Standing.MINE, *undecided}
        held = [(token, item, mine) for token, item in items.items() if (mine := found[item]) in wanted]
        for token, item, mine in held:
            self._enter(token, item, until if mine is Standing.MINE else NEVER)
        tokens = frozenset(token for token, _item, _mine in held)
        return Taken(tokens, frozenset(items) - tokens)

    def _enter(self, token: UUID, item: Item, until: float) -> None:
        lock = self._book.get(token)
        if lock is None:
            self._book[token] = _Lock(item, self._clock(), until)
            return
        lock.claims += 1
        if until > lock.until:
            lock.until, lock.lost = until, False

    def release(self, pairs: Sequence[tuple[UUID, UUID]]) -> None:
        self._leave([item for job, token in pairs if (item := self._ended(job, token)) is not None])

    @property
    def adopts(self) -> bool:
        return not self._defers

    def adopt(self, pairs: Sequence[tuple[UUID, UUID]]) -> None:
        for job, token in pairs:
            self._book.setdefault(token, _Lock(self._item(job, token), self._clock(), NEVER, asked=False))

    def _ended(self, job: UUID, token: UUID) -> Item | None:
        """One claim is over: the lock, when that was the last one that it served."""
        lock = self._book.get(token)
        if lock is None:
            return self._item(job, token)
        lock.claims -= 1
        if lock.claims:
            return None
        del self._book[token]
        return lock.item if lock.asked else None

    def _item(self, job: UUID, token: UUID) -> Item:
        return job_item(self._nodes.prefix, job, token)

    def _leave(self, items: Iterable[Item]) -> None:
        """Give back at the loop's next turn, with whatever else is given back until then."""
        first = not self._leaving
        self._leaving.update(dict.fromkeys(items))
        if first and self._leaving:
            with suppress(RuntimeError):  # no loop any more: the TTL does it
                asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        task = asyncio.ensure_future(self._give_back())
        self._flushes.add(task)
        task.add_done_callback(self._flushes.discard)

    async def _give_back(self) -> None:
        leaving, self._leaving = list(self._leaving), {}
        try:
            for n in range(0, len(leaving), BATCH):
                await self._redlock.release(leaving[n : n + BATCH])
        except Exception:
            log.exception("locks.not_released")

    async def _keep(self) -> None:
        """Extend what is held at a third of the TTL, and whenever a server went or came."""
        await self._nodes.settled()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._redlock.ttl / 3 * random.uniform(0.8, 1)):  # noqa: S311  (spreads workers)
                    await self._due.wait()
            self._due.clear()
            try:
                self._say(self._redlock.away)
                locks = self._wanted()
                for n in range(0, len(locks), BATCH):
                    await self._extend(locks[n : n + BATCH])
            except Exception:
                log.exception("locks.not_extended")

    async def _extend(self, locks: Sequence[_Lock]) -> None:
        now = self._clock()
        mine, missing = [lock for lock in locks if lock.until > now], [lock for lock in locks if lock.until <= now]
        if mine:
            standings, until = await self._redlock.extend([lock.item for lock in mine])
            for lock, standing in zip(mine, standings, strict=True):
                if standing is Standing.MINE:
                    lock.until = until
                elif standing is Standing.NOBODYS:  # it passed, or the servers forgot it
                    missing.append(lock)
        if missing:
            for lock in missing:
                lock.asked = True
            found, until = await self._redlock.acquire([lock.item for lock in missing])
            for lock in missing:
                self._retaken(lock, found[lock.item], until)

    def _retaken(self, lock: _Lock, standing: Standing, until: float) -> None:
        token = UUID(lock.item[1])
        if token not in self._book:
            self._leave([lock.item])  # given back meanwhile
        elif standing is Standing.MINE:
            lock.until = until
        elif standing is Standing.TAKEN:
            lock.lost = True
            log.warning("lock.lost", extra={"lock": lock.item[0], "token": str(token)})

    def _wanted(self) -> list[_Lock]:
        """What is to be extended: what runs here, and what was taken so lately that its claim is under way."""
        found = {token: lock for token, lock in self._book.items() if not lock.lost}
        if self._running is None:
            return list(found.values())
        young, running = self._clock() - self._redlock.ttl / 4, set(self._running())
        return [lock for token, lock in found.items() if lock.since >= young or token in running]

    def _say(self, away: bool) -> None:
        if away != self._away:
            self._away = away
            if away:
                log.warning("locks.away", extra={"servers": self._nodes.faults(), "defers": self._defers})
            else:
                log.info("locks.back")

    def problems(self) -> list[dict[str, str]]:
        faults = self._nodes.faults()
        said = [
            _("The Redis server %(name)s does not answer: %(why)s") % {"name": name, "why": why}
            for name, why in faults.items()
        ]
        if self._redlock.away:
            what = (
                _("Too few Redis servers answer for locks: no work is taken until they do")
                if self._defers
                else _("Too few Redis servers answer for locks: jobs are guarded by the database alone")
            )
            said.insert(0, what)
        return [{"part": "redis", "error": error} for error in said]

    async def close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        self._leave(lock.item for lock in self._book.values())
        self._book.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE):
                await asyncio.gather(self._give_back(), *self._flushes, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE):
                await self._nodes.close()


def job_item(prefix: str, job: UUID, token: UUID) -> Item:
    """The key of a job's lock, and the value by which this entry of it is the holder."""
    return f"{prefix}job:{job}", str(token)
