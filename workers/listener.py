"""LISTEN on a connection of its own: work, due jobs and cancels are heard within milliseconds.

A notification is a hint: everything is polled besides, so that a lost one costs a second and nothing else.
"""

import asyncio
import json
import logging
from collections.abc import Callable

import psycopg
from psycopg.pq.abc import PGconn

from jobs.announcements import CONTROL, DUE, GATES, OUTBOX, WORK, can_listen, connection_parameters
from jobs.text import first_line
from workers.connections import Backoff

log = logging.getLogger(__name__)


class Listener:
    """Calls `on_work(queue)`, `on_due()`, `on_outbox()`, `on_gate(gate)`, `on_cancel(job, worker)` and, when a queue
    was paused, resumed or set anew, `on_queue(queue)`, on the loop; `on_connect()` after each connection, since what
    was said meanwhile was missed."""

    def __init__(
        self,
        *,
        on_work: Callable[[str], None],
        on_due: Callable[[], None],
        on_outbox: Callable[[], None],
        on_gate: Callable[[str], None],
        on_cancel: Callable[[str, str], None],
        on_queue: Callable[[str], None],
        on_connect: Callable[[], None],
        reconnect_max: float,
    ) -> None:
        self._on_work = on_work
        self._on_due = on_due
        self._on_outbox = on_outbox
        self._on_gate = on_gate
        self._on_cancel = on_cancel
        self._on_queue = on_queue
        self._on_connect = on_connect
        self._backoff = Backoff(reconnect_max)
        self.connected = False

    async def run(self) -> None:
        """Listen until cancelled, reconnecting with backoff and jitter. Where that is no use only polls are left."""
        if not can_listen():
            self._on_connect()
            await asyncio.Event().wait()
        while True:
            try:
                await self._listen()
            except (psycopg.Error, OSError) as error:
                if self.connected:
                    log.warning("listen.lost", extra={"error": first_line(error)})
            self.connected = False
            await asyncio.sleep(self._backoff.delay())

    async def _listen(self) -> None:
        async with await psycopg.AsyncConnection.connect(autocommit=True, **connection_parameters()) as connection:
            connection.add_notify_handler(lambda said: self._heard(said.channel, said.payload))  # during these answers
            for channel in (WORK, CONTROL, DUE, OUTBOX, GATES):
                await connection.execute(psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(channel)))
            self.connected = True
            self._backoff.reset()
            self._on_connect()
            await self._read(connection.pgconn)

    async def _read(self, server: PGconn) -> None:
        """Hear what the server says until the connection is lost. The driver's own iterator waits anew after each word,
        which takes longer than all that a worker does with it."""
        loop, lost = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

        def read() -> None:
            try:
                server.consume_input()
                while said := server.notifies():
                    self._heard(said.relname.decode(), said.extra.decode(errors="replace"))
            except Exception as error:  # noqa: BLE001  (it is raised below)
                stop()  # at once: the number may be another's in a moment
                if not lost.done():
                    lost.set_exception(error)

        reading = [server.socket]

        def stop() -> None:
            while reading:
                loop.remove_reader(reading.pop())

        loop.add_reader(reading[0], read)
        try:
            read()  # what came just behind an answer
            await lost
        finally:
            stop()

    def _heard(self, channel: str, payload: str) -> None:
        if channel == WORK:
            self._on_work(payload)
        elif channel == DUE:
            self._on_due()
        elif channel == OUTBOX:
            self._on_outbox()
        elif channel == GATES:
            self._on_gate(payload)
        else:
            try:
                message = json.loads(payload)
                if "queue" in message:
                    self._on_queue(str(message["queue"]))
                    return
                self._on_cancel(str(message["cancel"]), str(message["worker"]))
            except (ValueError, TypeError, KeyError):  # anybody may NOTIFY anything
                log.warning("listen.not_understood", extra={"channel": channel})
