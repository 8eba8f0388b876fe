"""Redlock: a lock is held by whom a majority of independent servers names, for less than its TTL.

The published algorithm: ask all servers at once; held with a quorum of them and while `ttl - elapsed - drift` is left,
counted from before the first was asked, on a clock that goes on while the machine sleeps; whoever fails takes back what
it got, everywhere, and tries again after a random pause. A server that was started again empty may let a second one in,
as may any clock: these locks save work and guard nothing (law 5).
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Protocol

from workers.clock import boottime

PATIENCE = 0.2  # seconds in which a lock that nobody got is tried again
PAUSES = (0.01, 0.05)  # seconds between two such tries
Item = tuple[str, str]  # a key and the value that its holder gives it


class Standing(Enum):
    """Whose a lock is."""

    MINE = auto()  # a quorum says so, and it is valid
    TAKEN = auto()  # a quorum says that one other has it
    NOBODYS = auto()  # a quorum answered, and did not agree
    AWAY = auto()  # less than a quorum answered


class Servers(Protocol):
    """The independent servers (`redis_nodes.Nodes` says what each does): an answer of each, None where there was none.

    The file that knows Redis is loaded by who wants locks only: it costs half a second and 25 MB.
    """

    @property
    def prefix(self) -> str: ...
    @property
    def changed(self) -> list[Callable[[], None]]: ...
    @property
    def up(self) -> int: ...
    def __len__(self) -> int: ...
    def begin(self) -> None: ...
    def faults(self) -> dict[str, str]: ...
    async def settled(self, seconds: float = ...) -> None: ...
    async def close(self) -> None: ...
    async def take(self, items: Sequence[Item], ttl: float) -> list[list[str | None] | None]: ...
    async def extend(self, items: Sequence[Item], ttl: float) -> list[list[bool] | None]: ...
    async def release(self, items: Sequence[Item]) -> list[list[bool] | None]: ...


def standing(values: Sequence[str | None], answered: int, mine: str, quorum: int) -> Standing:
    """Whose the lock is by the values that `answered` servers named (None: a server named nobody)."""
    if values.count(mine) >= quorum:
        return Standing.MINE
    votes = Counter(value for value in values if value is not None)
    if votes and max(votes.values()) >= quorum:
        return Standing.TAKEN
    return Standing.NOBODYS if answered >= quorum else Standing.AWAY


class Redlock:
    """Locks with one TTL (seconds). `drift`: how far clocks may differ within a second.

    Keys may be of any number and purpose; each call is one round trip to all servers, a failed try one more.
    """

    def __init__(self, servers: Servers, *, ttl: float, drift: float, clock: Callable[[], float] = boottime) -> None:
        self._servers = servers
        self.ttl = ttl
        self._drift = drift * ttl + 0.002  # the servers count in milliseconds
        self._clock = clock
        self.quorum = len(servers) // 2 + 1

    @property
    def away(self) -> bool:
        """Whether too few servers answer for anybody to hold a lock."""
        return self._servers.up < self.quorum

    async def acquire(self, items: Sequence[Item]) -> tuple[dict[Item, Standing], float]:
        """Take or keep these locks; and the instant (on the clock) until which those that are mine are so surely.

        What nobody got is tried again, for PATIENCE at most. What is not mine at last is given back everywhere. While
        too few servers answer, none is asked.
        """
        found = dict.fromkeys(items, Standing.AWAY)
        left, until, limit = list(found), float("inf"), self._clock() + PATIENCE
        if self.away:
            return found, until
        while True:
            if not self.away:  # a server that went just now may be back in a moment
                standings, valid = await self._try(left)
                found.update(zip(left, standings, strict=True))
                if Standing.MINE in standings:
                    until = min(until, valid)
                failed = [item for item in left if found[item] is not Standing.MINE]
                if failed:
                    await self.release(failed)
                left = [item for item in failed if found[item] is not Standing.TAKEN]
            if not left or self._clock() >= limit:
                return found, until
            await asyncio.sleep(random.uniform(*PAUSES))  # noqa: S311  (parts those who try at once)

    async def extend(self, items: Sequence[Item]) -> tuple[list[Standing], float]:
        """Another TTL for locks that are mine: which still are (NOBODYS: not mine any more), and until when surely."""
        begun = self._clock()
        answers = [answer for answer in await self._servers.extend(items, self.ttl) if answer is not None]
        until = self._valid(begun)
        lost = Standing.NOBODYS if len(answers) >= self.quorum else Standing.AWAY
        kept = [sum(answer[n] for answer in answers) >= self.quorum for n in range(len(items))]
        return [Standing.MINE if mine and self._clock() < until else lost for mine in kept], until

    async def release(self, items: Sequence[Item]) -> None:
        """Give back, on every server, what still has my value; those that are away are told when they are back."""
        await self._servers.release(items)

    async def _try(self, items: Sequence[Item]) -> tuple[list[Standing], float]:
        begun = self._clock()
        answers = [answer for answer in await self._servers.take(items, self.ttl) if answer is not None]
        until = self._valid(begun)
        named = zip(*answers, strict=True) if answers else [()] * len(items)
        found = [
            standing(values, len(answers), mine, self.quorum) for (_, mine), values in zip(items, named, strict=True)
        ]
        if self._clock() >= until:  # it took so long that nothing is sure any more
            found = [Standing.NOBODYS if mine is Standing.MINE else mine for mine in found]
        return found, until

    def _valid(self, begun: float) -> float:
        return begun + self.ttl - self._drift


class NamedLock:
    """One lock by its key, for whoever gives it a value: as leadership of a worker by its id."""

    def __init__(self, redlock: Redlock, key: str) -> None:
        self._redlock = redlock
        self._key = key
        self.until = float("-inf")  # until when it is surely mine, on the clock of `boottime`

    @property
    def away(self) -> bool:
        """Whether too few servers answer for anybody to hold it, as far as is known without asking."""
        return self._redlock.away

    async def take(self, value: str) -> Standing:
        """Take it, or keep it for another TTL."""
        found, until = await self._redlock.acquire([(self._key, value)])
        return self._settle(found[self._key, value], until)

    async def extend(self, value: str) -> Standing:
        """Keep it for another TTL, but only where it is mine; what has passed is not taken again."""
        [mine], until = await self._redlock.extend([(self._key, value)])
        return self._settle(mine, until)

    async def release(self, value: str) -> None:
        """Give it back, where it still has this value."""
        self.until = float("-inf")
        await self._redlock.release([(self._key, value)])

    def _settle(self, mine: Standing, until: float) -> Standing:
        self.until = until if mine is Standing.MINE else float("-inf")
        return mine
