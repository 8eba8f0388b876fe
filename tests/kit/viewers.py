"""Viewers without a browser: each one loads a page, keeps its socket and fetches its regions as the page's script does.

What they cost is counted in the web process by statement (`tests.kit.site_app`), and in PostgreSQL by its own counters.
"""

import asyncio
import json
import os
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from html.parser import HTMLParser

import httpx

from tests.kit.site import STATEMENTS, Site

HUB = "/hubs/painel"
SETTLE = 3.0  # seconds for the sockets to open and the first fetches to end
ARRIVING = 5  # how many load the page at once: a crowd comes one after the other
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


@dataclass
class Region:
    """A part of the page that fetches itself: `every` and `poll` in seconds."""

    id: str
    address: str
    topics: frozenset[str]
    every: float
    poll: float | None
    seen: str
    dirty: asyncio.Event = field(default_factory=asyncio.Event)


class _Regions(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Region] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if given.get("data-live") and given.get("hx-get") and given.get("id"):
            poll = given.get("data-poll")
            self.found.append(
                Region(
                    given["id"],
                    given["hx-get"],
                    frozenset(given["data-live"].split()),
                    float(given.get("data-every") or 1000) / 1000,
                    float(poll) / 1000 if poll else None,
                    given.get("data-seen", ""),
                )
            )


def regions(page: str) -> list[Region]:
    """The regions of a page's HTML."""
    parser = _Regions()
    parser.feed(page)
    return parser.found


class Socket:
    """The least of a WebSocket client: text in and out, pings answered."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, site: Site, path: str) -> "Socket":
        """Shake hands as a page of this site does."""
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        lines = [f"GET {path} HTTP/1.1", f"Host: {site.host}", "Upgrade: websocket", "Connection: Upgrade"]
        lines += ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13", f"Origin: {site.address}"]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 101"), answer
        return cls(reader, writer)

    async def messages(self) -> AsyncIterator[str]:
        """Texts until the other side closes."""
        while True:
            first, second = await self._reader.readexactly(2)
            length = second & 0x7F
            if length >= 126:
                kind = ">H" if length == 126 else ">Q"
                (length,) = struct.unpack(kind, await self._reader.readexactly(struct.calcsize(kind)))
            payload = await self._reader.readexactly(length)
            if first & 0xF == CLOSE:
                return
            if first & 0xF == PING:
                self._send(PONG, payload)
            elif first & 0xF == TEXT:
                yield payload.decode()

    def say(self, text: str) -> None:
        """Send a text."""
        self._send(TEXT, text.encode())

    def _send(self, kind: int, payload: bytes) -> None:
        assert len(payload) < 126
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[n % 4] for n, byte in enumerate(payload))
        self._writer.write(bytes([0x80 | kind, 0x80 | len(payload)]) + mask + masked)

    def close(self) -> None:
        """Drop the connection."""
        self._writer.close()


@dataclass(frozen=True)
class Cost:
    """What `viewers` cost in `seconds`: fetches and how many of them were empty, signals, statements by their text."""

    viewers: int
    seconds: float
    fetches: int
    unchanged: int
    signals: int
    statements: dict[str, int]

    @property
    def total(self) -> int:
        """All statements of the web process."""
        return sum(self.statements.values())

    @property
    def statistics(self) -> int:
        """Those that count, sum or estimate for everybody.

        Not the rows of a list, nor what is newer than a viewer's own first row: these are each viewer's, and bounded.
        """
        words = ("COUNT(", "SUM(", "EXPLAIN", "RELTUPLES", "METRICS_MINUTE")
        return sum(
            times
            for text, times in self.statements.items()
            if '"id" > ' not in text and any(word in text.upper() for word in words)
        )

    def most(self, number: int = 8) -> list[tuple[int, str]]:
        """The statements that ran most."""
        return [(count, " ".join(text.split())[:160]) for text, count in Counter(self.statements).most_common(number)]


class _Crowd:
    def __init__(self, site: Site, path: str, client: httpx.AsyncClient) -> None:
        self._site, self._path, self._client = site, path, client
        self._door = asyncio.Semaphore(ARRIVING)
        self.here = 0
        self.counts: Counter[str] = Counter()

    async def viewer(self) -> None:
        """One viewer, until it is cancelled."""
        async with self._door:
            page = await self._client.get(self._path)
            while page.status_code == 503:  # busy: they load it again
                await asyncio.sleep(1)
                page = await self._client.get(self._path)
        assert page.status_code == 200, page.text[:500]
        self.here += 1
        parts = regions(page.text)
        assert parts, "the page has no live region"
        async with asyncio.TaskGroup() as group:
            group.create_task(self._hear(parts))
            for region in parts:
                group.create_task(self._keep(region))

    async def _hear(self, parts: list[Region]) -> None:
        while True:  # as the page does: a socket that is lost or refused is opened again
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                socket = await Socket.open(self._site, HUB)
                try:
                    await self._listen(socket, parts)
                finally:
                    socket.close()
            await asyncio.sleep(1)

    async def _listen(self, socket: Socket, parts: list[Region]) -> None:
        async for text in socket.messages():
            message = json.loads(text)
            if "n" in message:
                socket.say(json.dumps({"seen": message["n"]}))
            self.counts["signals"] += "topics" in message
            for region in parts:
                if region.topics & set(message.get("topics") or ()):
                    region.dirty.set()

    async def _keep(self, region: Region) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(region.dirty.wait(), region.poll)
            region.dirty.clear()
            began = time.monotonic()
            answer = await self._client.get(region.address, headers={"X-Turno-Seen": region.seen, "HX-Request": "true"})
            if answer.status_code == 503:  # busy: the page keeps what it shows, and asks again
                self.counts["refused"] += 1
                await asyncio.sleep(region.every)
                region.dirty.set()
                continue
            assert answer.status_code in {200, 204}, f"{region.address}: {answer.status_code} {answer.text[:300]}"
            self.counts["fetches"] += 1
            self.counts["unchanged"] += answer.status_code == 204
            region.seen = answer.headers.get("X-Turno-Seen", region.seen)
            took = time.monotonic() - began
            await asyncio.sleep(max(region.every - took, 3 * took))  # as the page does


async def watch(site: Site, path: str, *, viewers: int, seconds: float) -> Cost:
    """Let so many viewers look at a page, and count for `seconds` once all of them are there."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=site.address, limits=limits, timeout=60, trust_env=False) as client:
        crowd = _Crowd(site, path, client)
        tasks = [asyncio.create_task(crowd.viewer()) for _ in range(viewers)]
        try:
            while crowd.here < viewers and not any(task.done() for task in tasks):
                await asyncio.sleep(0.1)
            await asyncio.sleep(SETTLE)
            await client.get(STATEMENTS)
            crowd.counts.clear()
            began = time.monotonic()
            done, _running = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
            counted, lasted = (await client.get(STATEMENTS)).json(), time.monotonic() - began
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    counts = crowd.counts
    return Cost(viewers, lasted, counts["fetches"], counts["unchanged"], counts["signals"], counted)
