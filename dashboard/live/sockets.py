"""The two sockets: `/hubs/painel` for the dashboard's pages, `/hubs/jobs` for programs.

What a socket has to say is one folded nudge, however long it waits: a client that is slow, or does not read at all,
costs no memory. At most four messages a second. Whatever a client sends is counted and measured, never parsed.
"""

import asyncio
import json
import logging
import random
import re
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any

from channels.exceptions import DenyConnection
from channels.generic.websocket import AsyncWebsocketConsumer

from dashboard.live import admission
from dashboard.live.hub import hub
from jobs.nudge import Nudge

log = logging.getLogger(__name__)
GAP = 0.25  # seconds between two messages
TICK = 5.0  # seconds without a message after which one says that the socket lives; a page gives up after some more
LOOK = 5.0  # seconds between two looks at the clock
CHECK = 30.0  # seconds between two looks at the session
WINDOW = 8  # messages a page may leave unconfirmed
PATIENCE = 30.0  # seconds a page may leave a message unconfirmed
MOST_SOCKETS = 2000
MOST_BYTES = 4096  # of a frame from a client
MOST_FRAMES = 200  # from a client in a second
MOST_NAMED = 20  # ids in a message to a program, which confirms nothing
ENDED, TOO_BIG, TOO_MANY, SLOW = 4401, 1009, 1008, 1013
SEEN = re.compile(r'\s*\{\s*"seen"\s*:\s*(\d{1,15})\s*\}\s*')


class Socket(AsyncWebsocketConsumer, ABC):
    """What both have in common: admission, the writer, and measures against what a client may send."""

    rule: Any = None

    async def connect(self) -> None:
        """Let it in, or refuse the handshake with 403."""
        self._writer: asyncio.Task[None] | None = None
        self._dirty = Nudge()
        self._wake = asyncio.Event()
        self._frames, self._second = 0, 0
        self._admission = admission.Admission(type(self).rule, self.scope)
        self._hub = hub()
        if len(self._hub) >= MOST_SOCKETS:
            log.warning("screens.too_many", extra={"sockets": len(self._hub)})
            raise DenyConnection
        if not await self._admission.granted():
            raise DenyConnection
        await self.accept()
        self._hub.join(self)
        self._writer = asyncio.create_task(self._write())

    async def disconnect(self, code: int) -> None:
        """The client has gone, or was sent away."""
        self._hub.leave(self)
        if self._writer is not None:
            self._writer.cancel()
            with suppress(asyncio.CancelledError):
                await self._writer

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Count and measure; what it says is up to `confirmed`."""
        second = int(time.monotonic())
        self._frames = self._frames + 1 if second == self._second else 1
        self._second = second
        if self._frames > MOST_FRAMES:
            await self.close(TOO_MANY)
        elif len(text_data or bytes_data or "") > MOST_BYTES:
            await self.close(TOO_BIG)
        elif text_data and (match := SEEN.fullmatch(text_data)):
            self.confirmed(int(match[1]))

    def tell(self, nudge: Nudge) -> None:
        """From the hub: fold it in."""
        self._dirty.add(nudge)
        self._wake.set()

    def hearing(self, hears: bool) -> None:
        """From the hub; a program needs no word of it: when it hears again, everything has changed."""

    def confirmed(self, number: int) -> None:
        """The client has read the message of that number."""

    def stuck(self, now: float) -> bool:
        """It does not read."""
        return False

    def may_send(self) -> bool:
        """It has read enough of what it was sent."""
        return True

    @abstractmethod
    def messages(self, quiet: float) -> list[dict[str, Any]]:
        """What is to be said now, after `quiet` seconds without a message; what is taken here is said."""

    async def _write(self) -> None:
        try:
            await self._keep_writing()
        except Exception:  # a server may raise for a client that has just gone
            log.debug("screens.write_failed", exc_info=True)
            await self._shut(SLOW)

    async def _keep_writing(self) -> None:
        now = time.monotonic()
        checked, last = now + random.uniform(0, 5), now  # noqa: S311  (spreads the sockets' checks)
        while True:
            now = time.monotonic()
            if now - checked >= CHECK:
                if await self._admission.ended():
                    await self._shut(ENDED)
                    return
                checked = now
            if self.stuck(now):
                await self._shut(SLOW)
                return
            for message in self.messages(now - last) if self.may_send() else ():
                await self.send(json.dumps(message, separators=(",", ":")))
                last = time.monotonic()
                await asyncio.sleep(GAP)
            due = min(TICK - (now - last), CHECK - (now - checked), LOOK)
            with suppress(TimeoutError):
                # What is overdue has just been tried: it may not be sent, or there is nothing to say.
                async with asyncio.timeout(due if due > 0 else LOOK):
                    await self._wake.wait()
            self._wake.clear()

    async def _shut(self, code: int) -> None:
        self._hub.leave(self)
        with suppress(Exception):
            await self.close(code)


class PanelSocket(Socket):
    """For the pages. Each message has a number `n`, which the page confirms with {"seen": n}."""

    rule = staticmethod(admission.page)

    async def connect(self) -> None:
        """Says at once whether the hub hears."""
        self._number = 0
        self._waiting: dict[int, float] = {}  # number -> when it was sent
        self._said: bool | None = None
        await super().connect()

    def hearing(self, hears: bool) -> None:
        """Pages say that they are cut off when the hub is."""
        self._wake.set()

    def confirmed(self, number: int) -> None:
        """Everything up to that number is read."""
        for sent in [sent for sent in self._waiting if sent <= number]:
            del self._waiting[sent]
        self._wake.set()

    def stuck(self, now: float) -> bool:
        """The oldest message is unread for too long."""
        return bool(self._waiting) and now - next(iter(self._waiting.values())) > PATIENCE

    def may_send(self) -> bool:
        """Not too many are unread."""
        return len(self._waiting) < WINDOW

    def messages(self, quiet: float) -> list[dict[str, Any]]:
        """One message with everything, or one that only says that the socket lives."""
        hears = self._hub.hears
        message: dict[str, Any] = {} if hears == self._said else {"live": hears}
        if self._dirty and hears:
            message |= self._dirty.said()
            self._dirty = Nudge()
        if not message and quiet < TICK:
            return []
        self._said = hears
        self._number += 1
        self._waiting[self._number] = time.monotonic()
        return [{"n": self._number} | message]


class JobsSocket(Socket):
    """For programs: {"type": "JobsChanged", "jobs": [ids] or null}, and the same with WorkersChanged and workers."""

    rule = staticmethod(admission.program)

    def messages(self, quiet: float) -> list[dict[str, Any]]:
        """One a kind; null: too many to name, or not known which."""
        dirty, self._dirty = self._dirty, Nudge()
        said = []
        for topic, kind in (("jobs", "JobsChanged"), ("workers", "WorkersChanged")):
            if topic in dirty.topics:
                ids = dirty.said()[topic]
                said.append({"type": kind, topic: ids if ids and len(ids) <= MOST_NAMED else None})
        return said
