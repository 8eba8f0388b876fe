"""A TCP proxy in front of PostgreSQL, or of any server, that can cut the cable at the instants that hurt.

Modes, switched while it runs: `open`, `blackhole` (nothing passes, connections stay: a cut cable), `cut` (connections
are reset, new ones too). Besides, it can lose one answer or one request of PostgreSQL: see `lose`. A statement outside
of a transaction is its own COMMIT.
"""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Self
from urllib.parse import urlsplit, urlunsplit

from django.db import connections

from tests.kit.traps import BEGIN, COMMIT, Side, Then, Trap, Traps
from tests.kit.wire import Client, Server, Unread

ABORT = struct.pack("ii", 1, 0)  # SO_LINGER 0: close() sends a reset


class Proxy:
    """Listens on a port of its own, or by `listener`, and carries every connection to the server of `url`."""

    def __init__(self, url: str, listener: socket.socket | None = None) -> None:
        self._url = urlsplit(url)
        self.reads = self._url.scheme.startswith("postgres")
        self._listener = listener or socket.create_server(("127.0.0.1", 0), backlog=64)
        address: tuple[str, int] = self._listener.getsockname()
        self._host, self.port = address
        self._lock = threading.Lock()
        self._pipes: set[_Pipe] = set()
        self.traps = Traps()
        self._refusing = False
        self.flows = threading.Event()
        self.flows.set()
        self._closed = False
        self._thread = threading.Thread(target=self._accept, name="proxy", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The server's URL by way of this proxy, unencrypted so that it can listen."""
        login = self._url.netloc.rpartition("@")[0]
        netloc = f"{login}@{self._host}:{self.port}" if login else f"{self._host}:{self.port}"
        query = "sslmode=disable&gssencmode=disable" if self.reads else ""
        return urlunsplit(self._url._replace(netloc=netloc, query=query))

    @property
    def connections(self) -> int:
        """How many connections it carries now."""
        with self._lock:
            return len(self._pipes)

    def open(self) -> None:
        """Let everything through; what a blackhole held up goes on."""
        self._refusing = False
        self.flows.set()

    def blackhole(self) -> None:
        """Nothing passes in either direction, and nobody is told."""
        self.flows.clear()

    def cut(self, *, refuse: bool = False) -> None:
        """Reset every connection; with `refuse`, every new one until `open`."""
        self._refusing = refuse
        with self._lock:
            pipes = list(self._pipes)
        for pipe in pipes:
            pipe.reset()

    def lose(
        self,
        words: str,
        *,
        after: str = "",
        side: Side = "answer",
        then: Then = "cut",
        times: int = 1,
        passes: int = 0,
        with_rows: bool = False,
    ) -> Trap:
        """Lose `times` statements that begin with `words` in a transaction that said `after`, once `passes` passed;
        `with_rows`: only where a statement of the transaction found or changed some.

        The answer: the server does it and its answer never arrives. The request: it never reaches the server. Then the
        connection is reset, or nothing passes on it any more (or the answer is but late: `hold_commit`).
        """
        return self.traps.add(Trap(words, after, side, then, times, passes, with_rows))

    def swallow_commit(self, after: str, *, then: Then = "cut", times: int = 1, passes: int = 0) -> Trap:
        """The transaction that said `after`, and found rows, is committed, and its client never hears of it."""
        return self.lose(COMMIT, after=after, then=then, times=times, passes=passes, with_rows=True)

    def hold_commit(self, after: str) -> Trap:
        """The transaction that said `after`, and found rows, is committed; its client hears of it at `let_go`."""
        return self.lose(COMMIT, after=after, then="hold", with_rows=True)

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refusing or self._closed:
                _abort(client)
                continue
            try:
                server = socket.create_connection((self._url.hostname or "127.0.0.1", self._url.port or 5432), 10)
            except OSError:
                _abort(client)
                continue
            server.settimeout(None)
            pipe = _Pipe(self, client, server)
            with self._lock:
                self._pipes.add(pipe)
            pipe.start()

    def forget(self, pipe: "_Pipe") -> None:
        """The connection is over."""
        with self._lock:
            self._pipes.discard(pipe)

    def close(self) -> None:
        """End every connection and listen no more."""
        self._closed = True
        self.flows.set()
        self.traps.let_go()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(60)
        self.cut()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Pipe:
    """One connection: a thread in each direction."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._said, self._answered = (Client(), Server()) if proxy.reads else (Unread(), Unread())
        self._transaction: list[str] = []
        self._trap: Trap | None = None
        self._alone: str | None = None  # outside of a transaction, and its answer may be one to be lost
        self._silent = False
        self._over = threading.Event()
        self._ending = threading.Lock()

    def start(self) -> None:
        for work in (self._up, self._down):
            threading.Thread(target=self._guarded, args=(work,), name="proxy-pipe", daemon=True).start()

    def _guarded(self, work: Callable[[], None]) -> None:
        with suppress(OSError):
            work()
        self.reset()

    def _up(self) -> None:
        while data := self._client.recv(65536):
            self._proxy.flows.wait()
            for text in self._said.feed(data):
                trap = self._proxy.traps.stepped_into(text, self._transaction, self._answered.rows)
                if trap is None and not self._transaction and not text.startswith((BEGIN, COMMIT)):
                    trap = self._proxy.traps.unsent(text)
                    self._alone = text if trap is None and self._proxy.traps.awaited(text) else None
                if trap is not None and trap.side == "request":
                    self._end(trap)
                    return
                self._trap = self._trap or trap
                self._transaction.append(text)
            if self._silent:
                self._over.wait()
            self._server.sendall(data)

    def _down(self) -> None:
        kept = b""
        while data := self._server.recv(65536):
            self._proxy.flows.wait()
            statuses = self._answered.feed(data)
            if self._alone is not None and "I" in statuses:
                self._trap = self._proxy.traps.done(self._alone, self._answered.rows)
                self._alone = None
            if "I" in statuses:
                self._transaction.clear()
                self._answered.rows = 0
            if self._trap is None and self._alone is None:
                self._client.sendall(kept + data)
                kept = b""
                continue
            kept += data
            if not statuses or self._trap is None:
                continue
            if self._trap.then != "hold":  # answered: the server has done it
                self._end(self._trap)
                return
            self._trap.catch()
            self._trap.held()
            self._trap = None
            self._client.sendall(kept)
            kept = b""

    def _end(self, trap: Trap) -> None:
        self._silent = True
        trap.catch()
        if trap.then == "blackhole":  # silent until the proxy ends, or somebody cuts it
            self._over.wait()
        self.reset()

    def reset(self) -> None:
        """Both ends are told at once, by a reset."""
        with self._ending:
            if self._over.is_set():
                return
            self._over.set()
        _abort(self._client)
        _abort(self._server)
        self._proxy.forget(self)


def _abort(end: socket.socket) -> None:
    with suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
    with suppress(OSError):
        end.shutdown(socket.SHUT_RD)  # wakes the thread that reads it; the other side hears nothing of this
    with suppress(OSError):
        end.close()


@contextmanager
def through(proxy: Proxy, *aliases: str) -> Iterator[None]:
    """New connections of these aliases, in every thread of this process, go by way of the proxy."""
    own = {alias: connections.databases[alias] for alias in aliases}
    before = {alias: (settings["HOST"], settings["PORT"], settings["OPTIONS"]) for alias, settings in own.items()}
    plain = {"sslmode": "disable", "gssencmode": "disable"}
    for alias, settings in own.items():
        connections[alias].close()
        settings |= {"HOST": "127.0.0.1", "PORT": str(proxy.port), "OPTIONS": settings["OPTIONS"] | plain}
    try:
        yield
    finally:
        for alias, settings in own.items():
            connections[alias].close()
            settings["HOST"], settings["PORT"], settings["OPTIONS"] = before[alias]
