"""A connection to RabbitMQ that is kept: opened again, with backoff and jitter, whenever it is lost."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from workers.connections import Backoff
from workers.transports.amqp import Connection, Options, Unreachable, connect
from workers.transports.base import FIRST, LONGEST, Absence

log = logging.getLogger(__name__)
STEADY = 5.0  # seconds after which a connection counts as one that works


class Link:
    """`serve` uses each connection while it lasts, and is cancelled when it is lost. `connection`: the one there is."""

    def __init__(self, options: Options, serve: Callable[[Connection], Awaitable[None]], longest: float) -> None:
        self._options = options
        self._serve = serve
        self._backoff = Backoff(min(LONGEST, longest), FIRST)
        self._task: asyncio.Task[None] | None = None
        self._away: Absence | None = None
        self.connection: Connection | None = None

    def start(self) -> None:
        """Begin, on the running loop."""
        self._task = asyncio.create_task(self._keep(), name=self._options.name)

    async def close(self, limit: float) -> None:
        """End, and close the connection in order within `limit` seconds."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self.connection is not None:
            await self.connection.close(limit)
            self.connection = None

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                self.connection = await connect(self._options)
            except Unreachable as error:
                self._say_away(str(error))
            except Exception as error:
                log.exception("broker.failed")
                self._say_away(str(error))
            else:
                since = loop.time()
                self._say_back()
                await self._use(self.connection)
                if loop.time() - since > STEADY:
                    self._backoff.reset()
                self._say_away(self.connection.lost.result())
                self.connection = None
            await asyncio.sleep(self._backoff.delay())

    async def _use(self, connection: Connection) -> None:
        """Returns when the connection is lost."""
        serving = asyncio.ensure_future(self._serve(connection))
        watched: list[asyncio.Future[Any]] = [serving, connection.lost]
        try:
            await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            if serving.done() and not connection.lost.done():
                log.error("broker.failed", exc_info=None if serving.cancelled() else serving.exception())
                await connection.close(1.0)
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    def _say_away(self, why: str) -> None:
        if self._away is None:
            log.warning("broker.away", extra={"connection": self._options.name, "error": why})
        self._away = Absence.noted(self._away, why)

    def _say_back(self) -> None:
        log.info("broker.connected", extra={"connection": self._options.name})
        self._away = None

    @property
    def why(self) -> str:
        """Why there is no connection; empty when there is one, or none was tried yet."""
        return self._away.why if self._away else ""

    def problem(self) -> str | None:
        """What people should know."""
        return self._away.sentence() if self._away else None
