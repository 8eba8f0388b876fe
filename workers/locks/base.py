"""Locks on jobs, which save work and guard nothing (law 5): what decides is the claim in the database.

Used on the engine's loop only.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID


class LocksAway(Exception):
    """There is no quorum, and the configuration says that no work is taken without one (`redis.on_failure = defer`)."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Tokens whose job may be claimed (`held`), and those whose job somebody else works on under another token."""

    held: frozenset[UUID]
    busy: frozenset[UUID]


class JobLocks(ABC):
    """A lock a job, whose value is the dispatch token: taken before the claim, kept while it runs, given back after.

    A lock that holds one's own token counts as one's own.
    """

    def start(self) -> None:
        """Begin to keep what is held."""
        return

    @abstractmethod
    async def acquire(self, pairs: Sequence[tuple[UUID, UUID]]) -> Taken:
        """Take the locks of these (job, token). Raises LocksAway."""

    @abstractmethod
    def release(self, pairs: Sequence[tuple[UUID, UUID]]) -> None:
        """Give locks back, once for each time that they were taken, and each only where it still holds that token;
        returns at once and never raises."""

    @property
    def adopts(self) -> bool:
        """Whether a job may start without its lock."""
        return True

    def adopt(self, pairs: Sequence[tuple[UUID, UUID]]) -> None:
        """These jobs have started by the database alone, without a message of which there could be a copy: what runs
        for long is locked like any other. Returns at once; give them back as well."""
        return

    def problems(self) -> list[dict[str, str]]:
        """What people should know at the moment: one a fault, `part` and `error` (a sentence)."""
        return []

    async def close(self) -> None:
        """Give everything back and disconnect. Never raises."""
        return


class NoLocks(JobLocks):
    """The fence in the database alone."""

    async def acquire(self, pairs: Sequence[tuple[UUID, UUID]]) -> Taken:
        return Taken(frozenset(token for _, token in pairs), frozenset())

    def release(self, pairs: Sequence[tuple[UUID, UUID]]) -> None:
        return
