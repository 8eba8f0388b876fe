"""Azure Service Bus carries the ids of jobs: one queue each, `<prefix>-<queue>`, made by an administrator.

What the service has not: priorities (a queue is first in, first out), and a count of its messages that a client may ask
for. What it sets aside by itself (delivered too often, too old) `sweep` brings back; what can't be processed goes to
`<prefix>-<queue>_error` where that exists, else to the queue's own dead-letter queue.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from uuid import uuid4

from django.utils.translation import gettext as _

from jobs.bounds import DEAD_LETTER
from jobs.sections_broker import Messaging
from jobs.transitions import by_queue
from workers.connections import Backoff
from workers.leases import Held
from workers.ledger import ClaimLedger
from workers.locks.base import JobLocks
from workers.transports.azurebus import Bus, Message, Writer
from workers.transports.base import FIRST, LONGEST, Absence, Broker, BrokerAway, Published
from workers.transports.busfeed import Feed
from workers.transports.buslooker import Looker
from workers.transports.busterms import NoQueue, Refused
from workers.transports.messages import DeadLetter, Dispatch, error_queue
from workers.transports.named import Delivery, NamedClaims

log = logging.getLogger(__name__)
WITHOUT = 600.0  # seconds for which a queue to which nothing could be sent is told of, and one for errors is not tried
ENDING = 4.0  # seconds


@dataclass(frozen=True, slots=True)
class Stray:
    """What can't be processed, on its way to where people look at it."""

    raw: bytes
    id: str

    def body(self) -> bytes:
        """As it came."""
        return self.raw


class ServiceBusTransport(Broker):
    """`poll`: seconds between two looks at what is paused; `reconnect_max`: those between two tries, at most; `worker`:
    the name by which the service's logs know it. Lives on the engine's loop.

    Raises ConfigurationError when it is made without the extra, or with a connection string that can't be one.
    """

    name = "servicebus"

    def __init__(
        self,
        claims: ClaimLedger,
        locks: JobLocks,
        settings: Messaging,
        poll: float,
        *,
        reconnect_max: float,
        worker: str,
    ) -> None:
        self._settings = settings
        self._bus = Bus(settings.azure_connection_string or "", settings.connect_timeout, f"turno {worker}")
        self._named = NamedClaims(claims, locks, self._apply)
        self._poll = poll
        self._longest = min(LONGEST, reconnect_max)
        self._feeds: dict[str, Feed] = {}
        self._stopped = False
        self._connected = False
        self._away: Absence | None = None
        self._absent: dict[str, tuple[float, str]] = {}  # where nothing can be sent, by name: since when, and why
        self._writers: dict[str, Writer] = {}
        self._looker = Looker(self._bus)
        self._known: set[str] = set()
        self._no_error_queue: dict[str, float] = {}  # until when
        self._backoff = Backoff(self._longest, FIRST)
        self._tasks: list[asyncio.Task[None]] = []
        self.poisoned = 0  # messages so far that were none of ours

    def start(self, queues: Mapping[str, int], wake: Callable[[], None]) -> None:
        words = _("Azure Service Bus knows no priorities: each queue hands its jobs over by age.")
        log.info("transport.no_priorities", extra={"transport": self.name, "meaning": words})
        self._known |= set(queues)
        self._feeds = {
            queue: Feed(
                self._bus,
                queue,
                self._queue(queue),
                slots,
                wake=wake,
                heard=self._hear,
                poisoned=self._put_aside,
                longest=self._longest,
            )
            for queue, slots in queues.items()
        }
        self._tasks = [
            asyncio.create_task(self._named.watch(list(queues), self._poll), name="pauses"),
            asyncio.create_task(self._reach(), name="reach"),
        ]

    # Work that comes

    async def take(self, offer: Sequence[tuple[str, int]]) -> list[Held]:
        slots = by_queue(offer)
        seated: list[tuple[Delivery, int]] = []
        for queue, numbers in slots.items():
            if queue in self._feeds:
                seated += zip(self._feeds[queue].take(len(numbers)), numbers, strict=False)
        held: list[Held] = []
        try:
            if seated:
                held = await self._named.claim(seated)
        finally:
            used = Counter(one.claim.queue for one in held)
            for queue, numbers in slots.items():
                if queue in self._feeds:
                    self._feeds[queue].taken(len(numbers) - used[queue])
            self._apply()
        return held

    def full(self, queue: str) -> None:
        if queue in self._feeds:
            self._feeds[queue].full()

    def room(self, queue: str, free: int) -> None:
        if queue in self._feeds:
            self._feeds[queue].room(free)

    def look(self) -> None:
        self._named.look_again()

    def _apply(self) -> None:
        for queue, feed in self._feeds.items():
            feed.allow(not self._stopped and self._named.allows(queue))

    async def _reach(self) -> None:
        """While the service is away: try to connect, since maybe nothing else does, all slots being taken."""
        while True:
            if self._connected:
                await asyncio.sleep(FIRST)
                continue
            try:
                await self._writer(self._queue(next(iter(self._feeds), DEAD_LETTER))).open()
            except BrokerAway as error:
                self._hear(str(error))
                await asyncio.sleep(self._backoff.delay())
            except (NoQueue, Refused):
                self._hear("")  # an answer
            else:
                self._hear("")

    async def _put_aside(self, queue: str, message: Message, why: str) -> bool:
        self.poisoned += 1
        log.warning("message.poisoned", extra={"queue": queue, "error": why, "bytes": len(message.body())})
        if monotonic() < self._no_error_queue.get(queue, 0.0):
            return False
        stray = Stray(message.body(), str(message.raw.message_id or uuid4()))
        try:
            writer = self._writer(error_queue(self._queue(queue)))
            [answer] = await writer.send([stray], self._settings.publish_timeout, why)
        except NoQueue:
            self._no_error_queue[queue] = monotonic() + WITHOUT
            return False
        except (BrokerAway, Refused):
            return False
        return answer.error is None

    # Work that goes

    async def publish(self, messages: Sequence[Dispatch | DeadLetter]) -> list[Published]:
        groups: dict[str, list[int]] = {}
        for place, message in enumerate(messages):
            if isinstance(message, Dispatch):
                self._known.add(message.queue)
            name = self._queue(message.queue if isinstance(message, Dispatch) else DEAD_LETTER)
            groups.setdefault(name, []).append(place)
        told = await asyncio.gather(
            *(self._send(name, [messages[place] for place in places]) for name, places in groups.items())
        )
        lost = [answers for answers in told if isinstance(answers, BrokerAway)]
        if lost and len(lost) == len(told):
            self._hear(str(lost[0]))
            raise lost[0]
        if told:
            self._hear("")
        answers = [Published()] * len(messages)
        for places, group in zip(groups.values(), told, strict=True):
            ones = [Published(str(group))] * len(places) if isinstance(group, BrokerAway) else group
            for place, answer in zip(places, ones, strict=True):
                answers[place] = answer
        return answers

    async def _send(self, name: str, letters: Sequence[Dispatch | DeadLetter]) -> list[Published] | BrokerAway:
        try:
            answers = await self._writer(name).send(letters, self._settings.publish_timeout)
        except BrokerAway as error:
            return error
        except (NoQueue, Refused) as error:
            self._absent[name] = monotonic(), str(error)
            return [Published(str(error))] * len(letters)
        self._absent.pop(name, None)
        return answers

    # Looking at queues

    async def depth(self, queue: str) -> int | None:
        self._known.add(queue)
        return await self._looker.depth(self._queue(queue))

    async def sweep(self, limit: int) -> list[Dispatch]:
        found: list[Dispatch] = []
        for queue in sorted(self._known):
            if len(found) >= limit:
                break
            try:
                found += await self._looker.sweep(self._queue(queue), queue, limit - len(found))
            except BrokerAway:
                if not found:  # what was taken off must be told of
                    raise
        return found

    # What is known of it

    @property
    def connected(self) -> bool:
        return self._connected

    def _hear(self, away: str) -> None:
        """The service has answered, or has not, for this reason."""
        if away:
            if self._away is None:
                log.warning("broker.away", extra={"transport": self.name, "error": away})
            self._away = Absence.noted(self._away, away)
        elif not self._connected:
            log.info("broker.connected", extra={"transport": self.name})
            self._away = None
            self._backoff.reset()
        self._connected = not away

    def problems(self) -> list[dict[str, str]]:
        found = [self._away.sentence()] if self._away else []
        found += [feed.problem for feed in list(self._feeds.values()) if feed.problem]
        found += [why for since, why in list(self._absent.values()) if monotonic() < since + WITHOUT]
        return [*({"part": "broker", "error": error} for error in dict.fromkeys(found)), *self._named.problems()]

    def _queue(self, name: str) -> str:
        return f"{self._settings.queue_prefix}-{name}"

    def _writer(self, name: str) -> Writer:
        if name not in self._writers:
            self._writers[name] = self._bus.writer(name)
        return self._writers[name]

    async def pause(self) -> None:
        self._stopped = True
        self._apply()
        await asyncio.gather(*(feed.ended(ENDING) for feed in self._feeds.values()))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await self.pause()
        ends = [*(writer.close() for writer in self._writers.values()), self._looker.close()]
        await asyncio.gather(*ends, return_exceptions=True)
