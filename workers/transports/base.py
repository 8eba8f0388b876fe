"""What carries the work to a worker: one interface, whatever is behind it.

A transport lives on the engine's loop; every method is called there. It never raises because a broker is away: it says
so (`problems`, `connected`), reconnects by itself with backoff and jitter, and brings nothing meanwhile.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from django.utils.translation import gettext as _

from workers.leases import Held
from workers.transports.messages import DeadLetter, Dispatch

FIRST, LONGEST = 0.5, 30.0  # seconds between two tries to connect


class BrokerAway(Exception):
    """There is no broker at the moment: nothing of the batch was, or could be known to be, published."""


@dataclass(frozen=True, slots=True)
class Absence:
    """Of a broker: since when, and why, by what was said last."""

    since: datetime
    why: str

    @classmethod
    def noted(cls, before: Self | None, why: str) -> Self:
        """The same absence, or a new one, and why it lasts."""
        return cls(datetime.now(UTC) if before is None else before.since, why)

    def sentence(self) -> str:
        """For people."""
        return _("The broker has been away since %(since)s: %(why)s") % {
            "since": f"{self.since:%Y-%m-%d %H:%M} UTC",
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class Published:
    """What became of one message: `error` is None when the broker has confirmed it, else why it can't be published."""

    error: str | None = None


class Transport(ABC):
    """Brings claimed jobs for free slots. Never brings more than was offered."""

    name: str = ""
    brings_all = False  # whether no more jobs of a queue wait when it brings fewer than there were slots for them

    def start(self, queues: Mapping[str, int], wake: Callable[[], None]) -> None:
        """Begin: `queues` are the worker's slots by queue; `wake` is called when there is something to `take`."""
        return

    @abstractmethod
    async def take(self, offer: Sequence[tuple[str, int]]) -> list[Held]:
        """Jobs claimed for the free slots (queue, slot) of `offer`, maybe none. Raises a database error when away.

        Returns at once when nothing has come: `wake` says when something did.
        """

    def full(self, queue: str) -> None:
        """All slots of the queue are taken: what was delivered and not claimed goes back soon (hysteresis)."""
        return

    def room(self, queue: str, free: int) -> None:
        """So many slots of the queue are free, one more than before."""
        return

    def look(self) -> None:
        """Somebody has paused or resumed a queue: find out which of them are, now."""
        return

    async def pause(self) -> None:
        """Take nothing more, and return what was delivered and not claimed; the connection stays for `publish`."""
        return

    async def close(self) -> None:
        """Give everything back and disconnect. Never raises, takes a few seconds at most."""
        return

    @property
    def connected(self) -> bool:
        """Whether work can come, and `publish` can succeed."""
        return True

    def problems(self) -> list[dict[str, str]]:
        """What people should know of it at the moment: one a fault, `part` and `error` (a sentence)."""
        return []


class Broker(Transport):
    """A transport behind which stands a broker: it is fed from the outbox, and its queues can be looked at."""

    poisoned: int = 0  # messages since the start that could not be processed, and were put where people look

    @abstractmethod
    async def publish(self, messages: Sequence[Dispatch | DeadLetter]) -> list[Published]:
        """Publish a batch, pipelined, persistent and mandatory; one answer a message, in order.

        A queue that does not exist is declared. Returns when every message is confirmed, refused, or `publish_timeout`
        is over. Raises BrokerAway when there is no connection, or it is lost before all answers came: the caller
        publishes the whole batch again later, duplicates are dropped by their token.
        """

    @abstractmethod
    async def depth(self, queue: str) -> int | None:
        """How many messages of the queue wait to be delivered; None when that can't be told. Raises BrokerAway."""

    async def sweep(self, limit: int) -> list[Dispatch]:
        """Messages that the broker itself has set aside (Service Bus' dead-letter queues), taken off there: the caller
        announces them again where they still count. At most `limit`. Raises BrokerAway.

        When the caller dies before it has, their jobs are some whose message is gone, which reconciliation finds by
        their number, or by their age."""
        return []
