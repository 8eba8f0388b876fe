"""What goes out to RabbitMQ: published with confirms, many at once, on a connection of its own.

The broker stops reading from connections that publish while it is short of memory or disk. Acknowledgements, which are
what frees both, must not stand behind that: they go by another connection.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from workers.transports.amqp import Connection, Options
from workers.transports.base import BrokerAway, Published
from workers.transports.channel import Answer, Channel, Gone
from workers.transports.link import Link
from workers.transports.topology import Topology

log = logging.getLogger(__name__)
# Seconds before each further try with what had no queue, or was refused: a quorum queue that is new, or has lost its
# leader, refuses for a moment.
AGAIN = (0.0, 0.1, 0.5)
# Seconds for which a queue that refused all the same, or did not answer, is hardly waited for, since what goes to other
# queues would wait as well; and seconds that it has nevertheless.
REFUSING, SHORTLY = 30.0, 0.5
UNCONFIRMED_MOST = 10_000  # messages that one channel waits for
ALIVE = 2.0  # seconds in which a broker that is there opens a channel, or declares a queue
# Stored with the outbox's rows as they stand here; who shows them translates them then.
REFUSED = gettext_noop("the broker refused the message")
UNROUTABLE = gettext_noop("the queue does not exist, and could not be declared")
UNCONFIRMED = gettext_noop("the broker did not confirm the message in time")
ERRORS = {
    Answer.CONFIRMED: None, Answer.REFUSED: REFUSED, Answer.UNROUTABLE: UNROUTABLE, None: UNCONFIRMED
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Letter:
    """A message for a queue; `message_id` is among its properties."""

    queue: str
    body: bytes
    properties: Mapping[str, Any] = field(default_factory=dict)


class Outlet:
    """Lives on the engine's loop. `timeout`: seconds for all confirms of a batch."""

    def __init__(self, options: Options, topology: Topology, *, timeout: float, longest: float) -> None:
        self.link = Link(options, self._serve, longest)
        self._topology = topology
        self._timeout = timeout
        self._channel: Channel | None = None
        self._refusing: dict[str, float] = {}  # by queue: until when
        self._loop = asyncio.get_running_loop()

    async def _serve(self, connection: Connection) -> None:
        """A channel that confirms, opened again where the broker closes it."""
        while not connection.lost.done():
            channel = await connection.channel()
            await channel.confirm()
            self._channel = channel
            try:
                await asyncio.wait([channel.gone])
            finally:
                self._channel = None
            if not connection.lost.done():
                log.warning("broker.channel_closed", extra={"error": str(channel.gone.result())})

    @property
    def blocked(self) -> bool:
        """Whether the broker takes nothing for now."""
        return self.link.connection is not None and self.link.connection.blocked

    @property
    def ready(self) -> bool:
        """Whether something can be published."""
        connection = self.link.connection
        return self._channel is not None and connection is not None and not connection.lost.done() and not self.blocked

    def problem(self) -> str | None:
        """What people should know."""
        if self.blocked:
            return _("The broker takes no messages for now: its memory or its disk is nearly full.")
        return self.link.problem()

    async def send(self, letters: Sequence[Letter]) -> list[Published]:
        """Publish; one answer a letter, in order. A queue that does not exist is declared. Raises BrokerAway."""
        limit = self._loop.time() + self._timeout
        answers = await self._publish(letters, limit)
        for pause in AGAIN:
            failed = [n for n, answer in enumerate(answers) if self._again(letters[n].queue, answer, first=not pause)]
            if not failed:
                break
            await self._declare({letters[n].queue for n in failed if answers[n] is Answer.UNROUTABLE}, limit)
            await asyncio.sleep(pause)
            for n, answer in zip(failed, await self._publish([letters[n] for n in failed], limit), strict=True):
                answers[n] = answer
        self._remember(letters, answers)
        return [Published(ERRORS[answer]) for answer in answers]

    def _again(self, queue: str, answer: Answer | None, *, first: bool) -> bool:
        """Whether a letter is published again at once; a queue that is missing is declared in any case."""
        if answer is Answer.UNROUTABLE and first:
            return True
        return answer in (Answer.UNROUTABLE, Answer.REFUSED) and not self._refuses(queue)

    def _refuses(self, queue: str) -> bool:
        return self._loop.time() < self._refusing.get(queue, 0.0)

    def _remember(self, letters: Sequence[Letter], answers: Sequence[Answer | None]) -> None:
        for letter, answer in zip(letters, answers, strict=True):
            if answer is Answer.CONFIRMED:
                self._refusing.pop(letter.queue, None)
            elif not self._refuses(letter.queue):
                self._refusing[letter.queue] = self._loop.time() + REFUSING

    async def _publish(self, letters: Sequence[Letter], limit: float) -> list[Answer | None]:
        """The broker's answers; None: it gave none in time, and is there all the same. Raises BrokerAway."""
        channel, connection = self._channel, self.link.connection
        if channel is None or connection is None or self.blocked:
            raise BrokerAway(self.problem() or "not connected yet")
        try:
            asked = [
                channel.publish(self._topology.name(letter.queue), letter.body, letter.properties) for letter in letters
            ]
        except Gone as gone:
            raise BrokerAway(str(gone)) from None
        await self._wait(asked, [self._refuses(letter.queue) for letter in letters], limit)
        answers = [future.result() if future.done() else None for future in asked]
        if Answer.LOST in answers:
            raise BrokerAway(self.problem() or "the connection was lost")
        if None in answers and (connection.blocked or not await connection.answers(ALIVE)):
            if not connection.blocked:
                await connection.close(0.0)
            raise BrokerAway(self.problem() or "no answer in time")
        if channel.unconfirmed > UNCONFIRMED_MOST:
            await channel.close()  # nobody waits for these any more; the next one begins at none
        return answers

    async def _wait(self, asked: "Sequence[asyncio.Future[Answer]]", refused: Sequence[bool], limit: float) -> None:
        """For the broker's answers, those of queues that refused of late only for a moment longer than the others."""
        for late, patience in ((False, self._timeout), (True, SHORTLY)):
            awaited = [future for future, is_late in zip(asked, refused, strict=True) if is_late is late]
            if awaited:
                await asyncio.wait(awaited, timeout=max(0.0, min(patience, limit - self._loop.time())))

    async def _declare(self, queues: set[str], limit: float) -> None:
        connection = self.link.connection
        for queue in sorted(queues):
            try:
                if connection is not None:
                    async with asyncio.timeout_at(min(limit, self._loop.time() + ALIVE)):
                        await self._topology.declare(connection, queue)
            except (Gone, TimeoutError) as error:  # what can't be declared stays unroutable
                log.warning("queue.refused", extra={"queue": queue, "error": str(error) or _("no answer in time")})
