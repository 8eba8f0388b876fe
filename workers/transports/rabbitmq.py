"""RabbitMQ carries the work: one durable queue a queue of Turno, consumed for free slots, published to with confirms.

Two connections a worker: one consumes, one publishes (`outlet` says why). Each comes back by itself.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from uuid import uuid4

from django.utils.translation import gettext as _

from jobs.bounds import DEAD_LETTER
from jobs.sections_broker import Messaging
from jobs.text import clean
from jobs.transitions import by_queue
from workers.leases import Held
from workers.ledger import ClaimLedger
from workers.locks.base import JobLocks
from workers.transports.amqp import Connection, Options
from workers.transports.base import Broker, BrokerAway, Published
from workers.transports.channel import NOT_FOUND, Gone, Incoming
from workers.transports.intake import Intake
from workers.transports.link import Link
from workers.transports.messages import CONTENT_TYPE, DeadLetter, Dispatch, error_queue
from workers.transports.named import Delivery, NamedClaims
from workers.transports.outlet import Letter, Outlet
from workers.transports.topology import Topology

log = logging.getLogger(__name__)
APP = "turno"
RETURNED = 2.0  # seconds for what is held to go back
CLOSED = 2.0  # seconds for a connection to be closed in order
LOOK = 2.0  # seconds for a look at one queue
TRY_AGAIN = 1.0  # seconds until a message that can't be processed is put aside again, when that failed
TRIES = 10  # as often does a broker that is there refuse to have it put aside; then it is dropped
REMEMBERED = 600.0  # seconds for which that is shown
REASON_LENGTH = 500
KEPT = 2**20  # bytes of its body: the queue is bounded by the number of its messages, and ours have a hundred


class RabbitTransport(Broker):
    """`poll`: seconds between two looks at what is paused; `reconnect_max`: those between two tries, at most; `worker`:
    the name by which the broker's administrators see it."""

    name = "rabbitmq"

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
        self._named = NamedClaims(claims, locks, self._review)
        self._poll = poll
        self._topology = Topology(settings)
        self._outlet = Outlet(
            _options(settings, f"turno {worker} publishes"),
            self._topology,
            timeout=settings.publish_timeout,
            longest=reconnect_max,
        )
        self._link = Link(_options(settings, f"turno {worker} consumes"), self._serve, reconnect_max)
        self._intakes: dict[str, Intake] = {}
        self._stopped = False
        self._looking: asyncio.Task[None] | None = None
        self._aside: set[asyncio.Task[None]] = set()
        self.poisoned = 0  # messages that were put aside since the start
        self._dropped: dict[str, tuple[float, str]] = {}  # by queue: when one could not be put aside, and why

    def start(self, queues: Mapping[str, int], wake: Callable[[], None]) -> None:
        for queue, slots in queues.items():
            self._intakes[queue] = Intake(
                queue, slots, self._topology, allowed=self._allowed, wake=wake, reject=self._reject
            )
        self._link.start()
        self._outlet.link.start()
        self._looking = asyncio.create_task(self._named.watch(list(queues), self._poll), name="pauses")

    async def _serve(self, connection: Connection) -> None:
        letters = self._declare_letters(connection)  # whatever becomes of it, work comes
        await asyncio.gather(letters, *(intake.run(connection) for intake in self._intakes.values()))
        await asyncio.wait([connection.lost])

    async def _declare_letters(self, connection: Connection) -> None:
        with suppress(Gone):
            await self._topology.declare(connection, DEAD_LETTER)

    def _allowed(self, queue: str) -> bool:
        return not self._stopped and self._named.allows(queue)

    def _review(self) -> None:
        for intake in self._intakes.values():
            intake.review()

    async def take(self, offer: Sequence[tuple[str, int]]) -> list[Held]:
        places = by_queue(offer)
        seated: list[tuple[Delivery, int]] = []
        for queue, slots in places.items():
            seated += zip(self._intakes[queue].take(len(slots)), slots, strict=False)
        held: list[Held] = []
        try:
            if seated:
                held = await self._named.claim(seated)
        finally:
            for queue in places:
                self._intakes[queue].taken(h for h in held if h.claim.queue == queue)
                if not self._allowed(queue):  # since now, perhaps
                    self._intakes[queue].review()
        return held

    def full(self, queue: str) -> None:
        self._intakes[queue].room(0)

    def room(self, queue: str, free: int) -> None:
        self._intakes[queue].room(free)

    def look(self) -> None:
        self._named.look_again()

    async def pause(self) -> None:
        self._stopped = True
        self._review()
        waiting = [asyncio.ensure_future(intake.quiet.wait()) for intake in self._intakes.values()]
        if waiting:
            _done, late = await asyncio.wait(waiting, timeout=RETURNED)
            for task in late:
                task.cancel()

    async def close(self) -> None:
        await self.pause()
        for task in (self._looking, *self._aside):
            if task is not None:
                task.cancel()
        await asyncio.gather(self._link.close(CLOSED), self._outlet.link.close(CLOSED), return_exceptions=True)

    async def publish(self, messages: Sequence[Dispatch | DeadLetter]) -> list[Published]:
        return await self._outlet.send([_letter(message) for message in messages])

    async def depth(self, queue: str) -> int | None:
        connection = self._link.connection
        if connection is None:
            raise BrokerAway(self._link.problem() or "not connected yet")
        try:
            async with asyncio.timeout(LOOK):
                return await self._topology.depth(connection, queue)
        except TimeoutError:  # this one queue may be out of order: that is no news of the others
            return None
        except Gone as gone:
            if connection.lost.done():
                raise BrokerAway(str(gone)) from None
            return 0 if gone.code == NOT_FOUND else None

    @property
    def connected(self) -> bool:
        return self._link.connection is not None and self._outlet.ready

    def problems(self) -> list[dict[str, str]]:
        first = self._link.problem() or self._outlet.problem()  # both are lost together, as a rule
        found = ([first] if first else []) + self._topology.problems()
        for intake in list(self._intakes.values()):
            found += intake.problems()
        now = time.monotonic()
        found += [
            _("Messages of %(queue)s that could not be processed were dropped: its error queue takes none (%(why)s)")
            % {"queue": self._topology.name(queue), "why": _(why)}
            for queue, (when, why) in list(self._dropped.items())
            if now < when + REMEMBERED
        ]
        return [*({"part": "broker", "error": error} for error in found), *self._named.problems()]

    def _reject(self, incoming: Incoming, queue: str, reason: str) -> None:
        """Put a message that can't be processed where people look, with the reason; acknowledged when it is there."""
        log.warning("message.poisoned", extra={"queue": queue, "error": reason, "bytes": len(incoming.body)})
        task = asyncio.ensure_future(self._put_aside(incoming, queue, reason))
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    async def _put_aside(self, incoming: Incoming, queue: str, reason: str) -> None:
        properties = {
            "message_id": uuid4().hex,
            "type": "poisoned",
            "app_id": APP,
            "content_type": incoming.content_type,
            "headers": {
                "x-turno-reason": clean(reason, REASON_LENGTH, one_line=True),
                "x-turno-queue": queue,
                "x-turno-bytes": len(incoming.body),
            },
        }
        letter = Letter(error_queue(queue), incoming.body[:KEPT], properties)
        refused = 0
        while not incoming.channel.gone.done():  # else it went back, and comes again
            error = await self._send_aside(letter)
            if error is None:
                incoming.ack()
                self.poisoned += 1
                return
            refused += self._outlet.link.connection is not None
            if refused >= TRIES:  # it takes the place of work, and of what would free the broker's memory
                log.error("message.dropped", extra={"queue": queue, "error": error, "reason": reason})
                self._dropped[queue] = time.monotonic(), error
                incoming.ack()
                return
            await asyncio.sleep(TRY_AGAIN)

    async def _send_aside(self, letter: Letter) -> str | None:
        """Why it could not be published; None: it was."""
        try:
            [answer] = await self._outlet.send([letter])
        except BrokerAway as away:
            return str(away)
        except Exception as error:  # such as a property that the library reads and does not write
            log.exception("message.not_put_aside", extra={"queue": letter.queue})
            return type(error).__name__
        return answer.error


def _options(settings: Messaging, name: str) -> Options:
    return Options(settings.urls, settings.heartbeat, settings.connect_timeout, name)


def _letter(message: Dispatch | DeadLetter) -> Letter:
    properties = {"message_id": message.id, "app_id": APP, "content_type": CONTENT_TYPE}
    if isinstance(message, Dispatch):
        return Letter(message.queue, message.body(), properties | {"type": "dispatch", "priority": message.level})
    return Letter(DEAD_LETTER, message.body(), properties | {"type": DEAD_LETTER})
