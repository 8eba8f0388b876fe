"""The queues of Turno in RabbitMQ: their names, and how they are declared."""

import logging
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from jobs.bounds import DEAD_LETTER, ERROR_SUFFIX, PRIORITIES
from jobs.sections_broker import Messaging
from workers.transports.amqp import Connection
from workers.transports.channel import OTHERWISE, Gone

log = logging.getLogger(__name__)
UNLIMITED = (4,)  # the release from which a delivery limit of -1 means none
LEVELS = PRIORITIES[1] - PRIORITIES[0]  # the highest; 0 is the lowest
Arguments = Mapping[str, Any]


class Topology:
    """Declares queues, each on a channel of its own, since a refusal closes the channel.

    A queue that exists with other values than the configuration asks for is used as it is, and said.
    """

    def __init__(self, settings: Messaging) -> None:
        self._prefix = settings.queue_prefix
        self._quorum = settings.queue_type == "quorum"
        self._bounded = {"x-max-length": settings.error_queue_length, "x-overflow": "drop-head"}
        self._otherwise: dict[str, str] = {}

    def name(self, queue: str) -> str:
        """The queue's name at the broker."""
        return f"{self._prefix}-{queue}"

    def _ways(self, queue: str, version: tuple[int, ...]) -> list[Arguments]:
        """The arguments to try with a broker of this release, the best first."""
        if queue == DEAD_LETTER or queue.endswith(ERROR_SUFFIX):
            return [{"x-queue-type": "quorum", **self._bounded} if self._quorum else self._bounded]
        if not self._quorum:
            return [{"x-max-priority": LEVELS}]
        # What is given back counts as a delivery, and from release 4 on a message is dropped after twenty of them,
        # unless the queue says otherwise. Releases before have no limit, and with -1 drop it the first time.
        quorum = {"x-queue-type": "quorum"}
        return [{**quorum, "x-delivery-limit": -1}, quorum] if version >= UNLIMITED else [quorum]

    async def declare(self, connection: Connection, queue: str) -> None:
        """The queue exists after this. Raises Gone."""
        name, refusal = self.name(queue), ""
        for arguments in self._ways(queue, connection.version):
            channel = await connection.channel()
            try:
                await channel.declare(name, arguments)
            except Gone as gone:
                if gone.code != OTHERWISE:
                    raise
                refusal = str(gone)
                continue
            await channel.close()
            self._otherwise.pop(name, None)
            return
        channel = await connection.channel()
        await channel.declare(name, passive=True)
        await channel.close()
        if name not in self._otherwise:
            log.warning("queue.declared_otherwise", extra={"queue": name, "error": refusal})
        self._otherwise[name] = refusal

    async def depth(self, connection: Connection, queue: str) -> int:
        """How many messages of the queue wait. Raises Gone, with NOT_FOUND where there is no such queue."""
        channel = await connection.channel()
        found = await channel.declare(self.name(queue), passive=True)
        await channel.close()
        return found

    def problems(self) -> list[str]:
        """What people should know."""
        return [
            _(
                "The queue %(queue)s is declared with other arguments than configured, and used as it is: "
                "delete it when it is empty, or change messaging.queue_type (%(why)s)."
            )
            % {"queue": name, "why": why}
            for name, why in list(self._otherwise.items())
        ]
