"""Who does the housekeeping: who holds the lease row and, where locks are taken in Redis, the leader's lock there.

Without a quorum of Redis servers the row elects alone (`redis.on_failure` "fence"), or nobody leads ("defer"). Two
that believe for a moment that they lead are harmless: every routine is safe when all do (law 5). Asked before each
batch, so that a leader which lost the lock steps down before it does anything more.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Literal
from uuid import UUID

from jobs import leadership
from workers.clock import boottime
from workers.connections import ENGINE
from workers.locks.redlock import NamedLock, Standing

log = logging.getLogger(__name__)
ASKING = 1.0  # seconds that a routine's thread waits for the loop


class Leadership:
    """Of one worker. `lock`: its leader's lock in Redis, None where the lease row alone elects.

    `leads` and `resign` are called in the routines' threads, while the loop on which `start` was called runs.
    """

    def __init__(
        self,
        worker_id: UUID,
        lock: NamedLock | None = None,
        *,
        lease: float,
        on_failure: Literal["fence", "defer"] = "fence",
    ) -> None:
        self._worker_id = worker_id
        self._lock = lock
        self._lease = lease
        self._row_elects = on_failure == "fence"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._by: str | None = None
        self._has_row = False

    def start(self) -> None:
        """The running loop is the one on which Redis is asked."""
        self._loop = asyncio.get_running_loop()

    def leads(self) -> bool:
        """Whether this worker leads now: takes the leadership when nobody has it, or keeps it. Raises a database
        error where the lease row is asked and the database is away."""
        by = self._elected()
        if by != self._by:
            log.info("leader.elected" if by else "leader.stepped_down", extra={"by": by or self._by})
            self._by = by
        return by is not None

    def _elected(self) -> str | None:
        """What elected this worker, "redis" or "database"; None when it does not lead."""
        if self._lock is not None and self._lock.away and not self._row_elects:
            self._leave_row()  # nobody here is electable, and maybe elsewhere
            return None
        # The row first: a worker that is cut off from the database does not keep the lock from those that are not.
        self._has_row = leadership.lead(leadership.HOUSEKEEPING, self._worker_id, lease=self._lease, using=ENGINE)
        if not self._has_row:
            return None
        if self._lock is None:
            return "database"
        whose = self._ask(self._lock.take(str(self._worker_id)))
        if whose is Standing.MINE and boottime() < self._lock.until:  # this thread may have waited for long since
            return "redis"
        if whose in (Standing.AWAY, None) and self._row_elects:
            return "database"
        self._leave_row()
        return None

    def _leave_row(self) -> None:
        """The row is for whom Redis elects: kept by one who is cut off from there, it would keep everybody from
        leading."""
        if self._has_row:
            leadership.resign(leadership.HOUSEKEEPING, self._worker_id, using=ENGINE)
            self._has_row = False

    def resign(self) -> None:
        """Give the leadership up, so that another need not wait for its end. Raises a database error when away."""
        self._by, self._has_row = None, False
        if self._lock is not None:
            self._ask(self._lock.release(str(self._worker_id)))
        leadership.resign(leadership.HOUSEKEEPING, self._worker_id, using=ENGINE)

    def _ask[T](self, question: Coroutine[Any, Any, T]) -> T | None:
        """The loop's answer; None when there is none in time."""
        if self._loop is None or not self._loop.is_running():
            question.close()
            return None
        future = asyncio.run_coroutine_threadsafe(question, self._loop)
        try:
            return future.result(ASKING)
        except TimeoutError:
            future.cancel()
        except Exception:
            log.exception("leader.not_asked")
        return None
