"""What a queue of Service Bus does with messages: peek-lock, expiry of locks, delivery counts, the dead-letter queue.

Pure: no socket and no AMQP; the clock is handed in. `tests/kit/servicebus_peer.py` speaks for it.
"""

import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

DEAD = "/$deadletterqueue"  # after a queue's name, in lower case as names are compared
TOO_MANY = "MaxDeliveryCountExceeded"
EXPIRED = "TTLExpiredException"


@dataclass(eq=False)
class Stored:
    """A message: `payload` as the peer keeps it, `reason` why it was set aside."""

    number: int
    payload: Any
    enqueued: float
    deliveries: int = 0  # those that failed
    expires: float | None = None
    reason: tuple[str, str] | None = None


@dataclass(eq=False)
class Lock:
    """Somebody has the message until then."""

    stored: Stored
    until: float


@dataclass(eq=False)
class Queue:
    """One queue; `dead` is its dead-letter queue, which has none itself and counts no deliveries."""

    name: str
    lock_seconds: float
    max_deliveries: int | None
    now: Callable[[], float] = time.time
    dead: "Queue | None" = None
    ready: deque[Stored] = field(default_factory=deque)
    locked: dict[uuid.UUID, Lock] = field(default_factory=dict)
    completed: int = 0
    _number: int = 0

    def add(self, payload: Any, *, ttl: float | None = None) -> Stored:
        """Enqueue; `ttl` in seconds."""
        self._number += 1
        now = self.now()
        stored = Stored(self._number, payload, now, expires=None if ttl is None else now + ttl)
        self.ready.append(stored)
        return stored

    def take(self) -> tuple[uuid.UUID, Lock] | None:
        """Lock the oldest message that waits."""
        if not self.ready:
            return None
        token, lock = uuid.uuid4(), Lock(self.ready.popleft(), self.now() + self.lock_seconds)
        self.locked[token] = lock
        return token, lock

    def renew(self, token: uuid.UUID) -> float | None:
        """Until when the lock now holds; None when it is lost."""
        lock = self.locked.get(token)
        if lock is None:
            return None
        lock.until = self.now() + self.lock_seconds
        return lock.until

    def complete(self, token: uuid.UUID) -> bool:
        """Remove the message. False, like the others: the lock is lost, and nothing happened."""
        if self.locked.pop(token, None) is None:
            return False
        self.completed += 1
        return True

    def release(self, token: uuid.UUID) -> bool:
        """Back in its place, as if it had never been delivered."""
        return self._back(token, counted=False)

    def abandon(self, token: uuid.UUID) -> bool:
        """Back in its place; the delivery counts."""
        return self._back(token, counted=True)

    def set_aside(self, token: uuid.UUID, reason: str, description: str) -> bool:
        """Into the dead-letter queue."""
        lock = self.locked.pop(token, None)
        if lock is None:
            return False
        self._bury(lock.stored, reason, description)
        return True

    def bury(self, reason: str) -> int:
        """Put everything that waits into the dead-letter queue; how many."""
        buried = len(self.ready)
        while self.ready:
            self._bury(self.ready.popleft(), reason, "")
        return buried

    def tick(self) -> bool:
        """Let locks and messages expire. True when something waits anew."""
        now = self.now()
        lapsed = [token for token, lock in self.locked.items() if lock.until <= now]
        for token in lapsed:
            self.abandon(token)
        for stored in [stored for stored in self.ready if stored.expires is not None and stored.expires <= now]:
            self.ready.remove(stored)
            self._bury(stored, EXPIRED, "The message expired.")
        return bool(lapsed)

    def expire_locks(self) -> None:
        """Every lock is lost at once."""
        for lock in self.locked.values():
            lock.until = 0.0
        self.tick()

    def clear(self) -> None:
        """Forget every message."""
        self.ready.clear()
        self.locked.clear()

    def browse(self, number: int, most: int) -> list[Stored]:
        """Messages from that number on, locked ones too, the oldest first."""
        everything = [*self.ready, *(lock.stored for lock in self.locked.values())]
        return sorted((s for s in everything if s.number >= number), key=lambda s: s.number)[:most]

    def counts(self) -> dict[str, int]:
        """Messages that wait, that somebody has, and that were completed so far."""
        return {"ready": len(self.ready), "locked": len(self.locked), "completed": self.completed}

    def _back(self, token: uuid.UUID, *, counted: bool) -> bool:
        lock = self.locked.pop(token, None)
        if lock is None:
            return False
        stored = lock.stored
        stored.deliveries += counted
        if self.dead is not None and self.max_deliveries is not None and stored.deliveries >= self.max_deliveries:
            self._bury(stored, TOO_MANY, f"The message was delivered {stored.deliveries} times.")
        else:
            later = next((i for i, other in enumerate(self.ready) if other.number > stored.number), len(self.ready))
            self.ready.insert(later, stored)
        return True

    def _bury(self, stored: Stored, reason: str, description: str) -> None:
        if self.dead is not None:
            self.dead.add(stored.payload).reason = (reason, description)


class Namespace:
    """The queues by name; names are compared in lower case, as the service does."""

    def __init__(self, lock_seconds: float, max_deliveries: int) -> None:
        self.lock_seconds = lock_seconds
        self.max_deliveries = max_deliveries
        self._queues: dict[str, Queue] = {}

    def create(self, name: str) -> None:
        """A queue with its dead-letter queue; nothing when it exists."""
        name = name.lower()
        if name not in self._queues:
            dead = Queue(name + DEAD, self.lock_seconds, None)
            self._queues[name] = Queue(name, self.lock_seconds, self.max_deliveries, dead=dead)

    def delete(self, name: str) -> None:
        """Without it, and its messages."""
        self._queues.pop(name.lower(), None)

    def find(self, name: str) -> Queue | None:
        """A queue, or a dead-letter queue, by its whole name."""
        name = name.lower()
        if name.endswith(DEAD):
            queue = self._queues.get(name.removesuffix(DEAD))
            return None if queue is None else queue.dead
        return self._queues.get(name)

    def __iter__(self) -> Iterator[Queue]:
        for queue in list(self._queues.values()):
            yield queue
            if queue.dead is not None:
                yield queue.dead
