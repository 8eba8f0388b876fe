"""Where a pool's children come from: one forkserver after another, asked for one child at a time.

Lives on the pool's loop. A forkserver that ends, hangs, or does not know what it has to is replaced by a new one, at
once the first time, then after growing pauses; a child that can't be had for now is asked for again in the same way.
What has failed again and again counts as broken: then the worker is to end, for its supervisor to start a whole one.
"""

import asyncio
import logging
import os
import time
from typing import Any, Protocol

from jobs.conf import conf
from workers.connections import Backoff
from workers.isolation.forkserver import ForkServer
from workers.isolation.nursery import DESCRIPTORS

log = logging.getLogger(__name__)
ASK_AGAIN = 5.0  # seconds between two questions why the forkserver says nothing
SLOW = 30.0  # seconds for the forkserver to answer, or to see a death, when it is not stopped
STARTING = 60.0  # seconds for a new forkserver to load all but the handler modules
LONGEST_PAUSE = 10.0
MOST_LOST = 6  # forkservers in a row of which no child has begun with a job


class Customer(Protocol):
    """The pool, as its supply knows it."""

    def supplied(self) -> None:
        """A child may be asked for again."""

    def spawned(self, number: int, pid: int, descriptors: list[int]) -> None:
        """The child that was asked for."""

    def reaped(self, message: dict[str, Any]) -> None:
        """A child is dead, and nothing of it lives."""

    def abandoned(self, server: ForkServer) -> None:
        """This forkserver is of no use any more: it, and every child that it made, is to be killed now."""


class Supply:
    """`types`: those that a forkserver has to know. `ready`: it answers; `trouble`: why no child can be had now;
    `broken`: why none ever will be."""

    def __init__(
        self, server: ForkServer, types: frozenset[str], customer: Customer, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._server: ForkServer | None = server
        self._keep = server.keep
        self._types = types
        self._customer = customer
        self._loop = loop
        self.ready = False
        self.trouble: str | None = None
        self.broken: str | None = None
        self._lost = 0  # forkservers, since a child has begun
        self._ended = False
        self._answer: asyncio.TimerHandle | None = None  # an answer is awaited
        self._pause: asyncio.TimerHandle | None = None  # nothing is asked until then
        self._backoff = Backoff(LONGEST_PAUSE)

    def begin(self) -> None:
        """Listen to the forkserver; once, when the loop runs."""
        if self._server is not None:
            self._loop.add_reader(self._server.channel, self._hear)

    def ask(self) -> None:
        """Ask for a child, unless one is on its way or none can be had now: `supplied` says when to ask again."""
        if self._server is None or not self.ready or self._answer or self._pause:
            return
        self._answer = self._loop.call_later(ASK_AGAIN, self._unanswered, time.monotonic())
        try:
            self._server.spawn()
        except OSError as error:
            self.lose(str(error))

    def end(self, seconds: float) -> bool:
        """End the forkserver; whether it ended, and all below it."""
        self._ended = True
        self._answered()
        return self._server is None or self._server.end(seconds)

    def hangs(self, since: float) -> bool:
        """Whether the forkserver, silent since then, is stopped, or slower than even much work makes it."""
        return self._server is not None and (self._server.stopped or time.monotonic() - since > SLOW)

    def lose(self, why: str) -> None:
        """Give the forkserver up. Without one nobody finds what a dead child leaves: all it made goes with it."""
        server, self._server = self._server, None
        if server is None:
            return
        was_ready, self.ready = self.ready, False
        self._count_lost(why)
        self._answered()
        self._loop.remove_reader(server.channel)
        log.error("forkserver.lost", extra={"reason": why, "pid": server.pid})
        self._customer.abandoned(server)
        if self._ended:
            return
        if was_ready and self._lost <= 1:
            self._start()
        else:
            self._wait(why)

    def satisfy(self) -> None:
        """A child has begun with a job: all is well."""
        self._lost = 0
        self._backoff.reset()
        if self.ready:
            self.trouble = self.broken = None

    def disappoint(self, why: str) -> None:
        """A child was of no use: the next is asked for after a pause."""
        if not self._ended:
            self._wait(why)

    def stop(self) -> None:
        """No child and no forkserver is wanted any more."""
        self._ended = True

    def _start(self) -> None:
        try:
            self._server = ForkServer.start(self._keep)
        except OSError as error:
            self._count_lost(str(error))
            self._wait(str(error))
            return
        self.begin()
        patience = STARTING + conf().worker.import_timeout
        self._answer = self._loop.call_later(patience, self.lose, "it does not start")

    def _hear(self) -> None:
        while self._server is not None:
            try:
                message, descriptors = self._server.read()
            except BlockingIOError:
                return
            if message is None:
                self.lose("it has ended")
            elif "spawned" in message:
                self._spawned(message["spawned"], message["pid"], descriptors)
            elif "failed" in message:
                self._answered()
                self._wait(message["failed"])
            elif "ended" in message:
                self._customer.reaped(message)
            else:
                self._started(frozenset(message["ready"]))

    def _started(self, types: frozenset[str]) -> None:
        self._answered()
        missing = sorted(self._types - types)
        if missing:  # (handlers were changed on disk meanwhile)
            self.lose(f"it does not know {missing[:5]}")
            return
        self.ready = True
        self.trouble = None
        self._customer.supplied()

    def _spawned(self, number: int, pid: int, descriptors: list[int]) -> None:
        self._answered()
        if len(descriptors) == DESCRIPTORS:
            self._customer.spawned(number, pid, descriptors)
            return
        for descriptor in descriptors:  # there is no room for all: the child sees its worker's ends closed, and ends
            os.close(descriptor)
        self._wait("no descriptor is left")

    def _unanswered(self, since: float) -> None:
        if self.hangs(since):
            self.lose("it does not answer")
        else:
            self._answer = self._loop.call_later(ASK_AGAIN, self._unanswered, since)

    def _answered(self) -> None:
        if self._answer is not None:
            self._answer.cancel()
            self._answer = None

    def _count_lost(self, why: str) -> None:
        self._lost += 1
        self.trouble = why
        if self._lost >= MOST_LOST and self.broken is None:
            self.broken = why
            log.critical("forkserver.broken", extra={"reason": why, "times": self._lost})

    def _wait(self, why: str) -> None:
        self.trouble = why
        if self._pause is not None:  # (several children may end at once)
            return
        delay = self._backoff.delay()
        log.warning("child.not_started", extra={"error": why, "again_in": round(delay, 2)})
        self._pause = self._loop.call_later(delay, self._resume)

    def _resume(self) -> None:
        self._pause = None
        if self._server is None and not self._ended:
            self._start()
        self._customer.supplied()
