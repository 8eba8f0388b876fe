"""Where a hub hears: LISTEN always, and the channel layer over Redis when it is configured."""

import asyncio
import json
import logging
import os
import random
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

import psycopg
from channels.layers import get_channel_layer

from jobs.announcements import CONTROL, DUE, SCREENS, WORK, can_listen, connection_parameters
from jobs.backoff import Backoff
from jobs.carriers import GROUP, LAYER
from jobs.nudge import Nudge
from jobs.text import first_line

log = logging.getLogger(__name__)
LONGEST_PAUSE = 10.0
NAME = "turno-screens"  # by which an administrator knows the connection in pg_stat_activity
QUIET = 5.0  # seconds without a notification after which the database is asked whether it lives
POLL = 1.0  # the same where nobody can listen: then everything may have changed
ANSWER = 5.0  # seconds that it has to answer
ECHO = "screens.echo"
ECHO_EVERY = 5.0  # seconds between two looks whether the layer still brings what is sent over it
Heard = Callable[[Nudge], None]


def nudge_of(channel: str, payload: str) -> Nudge | None:
    """What a notification means for screens."""
    if channel == SCREENS:
        return Nudge.read(payload)
    if channel == WORK:  # something was enqueued, or may run again: which job is not said
        return Nudge(("jobs", "queues"))
    if channel == DUE:
        return Nudge(("jobs",))
    try:
        message = json.loads(payload)
        return Nudge(("jobs", "workers"), [str(message["cancel"])], [str(message["worker"])])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


async def listen(heard: Heard, hearing: Callable[[bool], None]) -> None:
    """LISTEN until cancelled, reconnecting with backoff and jitter; `hearing` is told when it begins and ends.

    Where that is no use (`can_listen`) everything may have changed each second.
    """
    deaf = not can_listen()
    channels = () if deaf else (WORK, CONTROL, DUE, SCREENS)
    backoff = Backoff(LONGEST_PAUSE)
    known = True
    while True:
        try:
            parameters = connection_parameters() | {"application_name": NAME}
            async with await psycopg.AsyncConnection.connect(autocommit=True, **parameters) as connection:
                for channel in channels:
                    await connection.execute(psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(channel)))
                backoff.reset()
                known = True
                hearing(True)
                while True:
                    async for notification in connection.notifies(timeout=POLL if deaf else QUIET):
                        nudge = nudge_of(notification.channel, notification.payload)
                        if nudge is not None:
                            heard(nudge)
                    await _lives(connection)
                    if deaf:
                        heard(Nudge.everything())
        except (psycopg.Error, OSError) as error:
            if known:
                log.warning("screens.listen_lost", extra={"error": first_line(error)})
            known = False
        finally:
            hearing(False)
        await asyncio.sleep(backoff.delay())


async def _lives(connection: psycopg.AsyncConnection) -> None:
    """Returns when the database answers; one that is frozen, or cut off without a word, is hung up on.

    Raises psycopg.Error. By hand and not by a timeout: psycopg would wait for the answer to its cancel.
    """
    asked = asyncio.ensure_future(connection.execute("SELECT"))
    asked.add_done_callback(lambda task: None if task.cancelled() else task.exception())  # maybe nobody awaits it
    try:
        await asyncio.wait({asked}, timeout=ANSWER)
    finally:
        if not asked.done():
            with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)
    await asked


async def over_layer(heard: Heard) -> None:
    """Hear the layer's group until cancelled. What was lost while it was away is not known: then everything changed.

    That may be so at each failed try: whoever reaches Redis goes on to speak over it, and is not heard here.
    """
    layer: Any = get_channel_layer(LAYER)
    backoff = Backoff(LONGEST_PAUSE)
    known = True
    try:
        while True:
            try:
                async with asyncio.timeout(ECHO_EVERY):
                    name = await layer.new_channel()
                    await layer.group_add(GROUP, name)
                heard(Nudge.everything())
                backoff.reset()
                known = True
                async with asyncio.TaskGroup() as both:
                    echo = _Echo(layer)
                    both.create_task(_receive(layer, name, heard, echo))
                    both.create_task(echo.watch(heard))
            except* Exception as errors:  # noqa: BLE001  (the layer raises what it likes)
                if known:
                    log.warning("screens.layer_lost", extra={"error": first_line(errors.exceptions[0])})
                known = False
            heard(Nudge.everything())
            with suppress(Exception):
                await layer.flush()
            await asyncio.sleep(backoff.delay())
    finally:
        with suppress(Exception):
            await layer.flush()


async def _receive(layer: Any, name: str, heard: Heard, echo: "_Echo") -> None:
    while True:
        message = await layer.receive(name)
        if message.get("type") == ECHO:
            echo.came(message.get("id"))
        elif (nudge := Nudge.of(message)) is not None:
            heard(nudge)


class _Echo:
    """The library reconnects by itself and tells nobody: a message to ourselves finds out what it lost."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer
        self._id = uuid4().hex
        self._back = asyncio.Event()

    def came(self, id_: object) -> None:
        """Our own message came back, or another process's."""
        if id_ == self._id:
            self._back.set()

    async def watch(self, heard: Heard) -> None:
        """Says that everything may have changed while the layer does not work, and when it works again."""
        away = False
        while True:
            self._back.clear()
            try:
                async with asyncio.timeout(ECHO_EVERY):
                    await self._layer.group_send(GROUP, {"type": ECHO, "id": self._id})
                    await self._back.wait()
            except Exception as error:  # noqa: BLE001  (the layer raises what it likes)
                if not away:
                    log.warning("screens.layer_away", extra={"error": first_line(error)})
                away = True
                heard(Nudge.everything())
            else:
                if away:
                    heard(Nudge.everything())
                away = False
            await asyncio.sleep(ECHO_EVERY * random.uniform(0.5, 1.5))  # noqa: S311  (spreads processes)
