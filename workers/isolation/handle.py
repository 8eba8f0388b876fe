"""One child process as its worker sees it: given a job, listened to, asked to stop, killed, and found dead.

Everything here happens in the pool's loop. What comes from the child is read as from a stranger; an end is handed over
when the child says it, or, where it will not be used again, when it is dead.
"""

import asyncio
import logging
import os
import select
import signal
import socket
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from jobs.outcomes import Ending
from workers.clock import boottime
from workers.conclusion import Death, Fault
from workers.context import remove_folder
from workers.execution import Execution
from workers.isolation import endings, frames
from workers.isolation.docket import Docket, Given
from workers.isolation.lane import Lane
from workers.isolation.watchdog import EXIT_ENDED
from workers.leases import Interrupt

log = logging.getLogger(__name__)
CHUNK = 16_384
GONE = 1.0  # seconds between the end of a child's connection and its death, before it is killed
SILENT = 5.0  # seconds between two questions why the forkserver says nothing of a child's death


class Owner(Protocol):
    """The pool, as a child knows it."""

    def freed(self, child: "Child") -> None:
        """It has ended a job, and may be given another."""

    def leaves(self, child: "Child") -> None:
        """It will begin with nothing more."""

    def begun(self) -> None:
        """A child has begun with a job, or ended one: children live."""

    def ended(self, execution: Execution, ending: Ending) -> None:
        """An execution is over, and nothing of it runs."""

    def not_begun(self, execution: Execution, *, stillborn: bool) -> None:
        """The child died before it had begun with what it was given; `stillborn`: with anything, and by itself."""

    def unheard(self, child: "Child") -> None:
        """It has been dead for SILENT seconds, and the forkserver does not say so; asked again and again."""


class Child:
    """`id` is the forkserver's number of it, `docket` what it has to do. What it says is said of the first job there,
    until it says its end. It is known by its `handle`, a pidfd: what has its pid when it is dead may be another."""

    def __init__(
        self, id_: int, pid: int, descriptors: list[int], owner: Owner, loop: asyncio.AbstractEventLoop
    ) -> None:
        work, control, entry, end, self.handle = descriptors
        self.id = id_
        self.pid = pid
        self.docket = Docket(Lane(entry, end, loop), loop, self._say, self.kill)
        self.lasted = 0.0  # seconds: its last job
        self.type = ""  # of that
        self.idle_since = time.monotonic()
        self.leaving = False  # it begins with nothing more
        self.begun = False  # it has said something of a job
        self.dead_since: float | None = None
        self._owner = owner
        self._loop = loop
        self._work = socket.socket(fileno=work)
        self._control = socket.socket(fileno=control)
        self._work.setblocking(False)
        self._control.setblocking(False)
        self._decoder = frames.Decoder()
        self._ending: Ending | None = None
        self._fault: Fault | None = None
        self._peaked = 0  # bytes: what earlier jobs made the peak that the system tells of it
        self._timers: list[asyncio.TimerHandle] = []
        loop.add_reader(self._work, self._read)
        loop.add_reader(self.handle, self._dead)

    @property
    def execution(self) -> Execution | None:
        """What it runs, or is about to."""
        jobs = self.docket.jobs
        return jobs[0].execution if jobs else None

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        poll = select.poll()
        poll.register(self.handle, select.POLLIN)
        return not poll.poll(0)

    def retire(self) -> None:
        """It has nothing to do, and nothing more will come: it ends by itself."""
        self.leaving = True
        self.docket.end()
        self._later(GONE, self.kill)

    def kill(self) -> None:
        """SIGKILL. The forkserver kills what it leaves, and then tells of its death."""
        self.leaving = True
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)

    def died(self, death: Death) -> None:
        """It is dead, reaped, and nothing of it lives: its last words are read, its execution ends."""
        self.leaving = True
        self.hear()
        back = self.docket.take_back(dead=True)
        self._close()
        while self.docket.jobs:  # one at most, unless a handler has taken from our descriptors what was not its
            self._lost(self.docket.jobs.popleft(), death)
        for given in reversed(back):  # each goes before those that wait
            self._owner.not_begun(given.execution, stillborn=not self.begun and death.fault is None)

    def _lost(self, given: Given, death: Death) -> None:
        execution, held = given.execution, given.execution.held
        self._loop.run_in_executor(None, remove_folder, execution.ctx.give_up_folder())
        ending, self._ending = self._ending, None
        if ending is not None:
            self._owner.ended(execution, execution.relayed(ending, self.lasted))
            return
        self._owner.begun()
        if held.interrupt is None and boottime() >= held.deadline:
            held.ask(Interrupt.LOST)  # its watchdog was quicker than we
        fault = self._fault or death.fault or (Fault.UNHEARD if death.exit_code == EXIT_ENDED else None)
        peak = death.peak_memory if (death.peak_memory or 0) > self._peaked else None
        death = replace(death, peak_memory=peak, fault=fault)
        if held.interrupt is None:
            extra = {"pid": self.pid, "exit_code": death.exit_code, "signal": death.signal}
            log.warning("child.lost", extra={"job": str(held.claim.id), "type": held.claim.type, **extra})
        self._owner.ended(execution, execution.died(death, time.monotonic() - self.docket.since))

    def _say(self, message: str) -> None:
        with suppress(OSError):  # full: it hears nothing anyway; closed: its death is on the way
            self._control.send(message.encode())

    def _read(self) -> None:
        data = self._receive()
        if data is None:
            return
        if data:
            self._take(data)
        else:
            self._loop.remove_reader(self._work)
            if not self.leaving:
                self._later(GONE, self._blame, Fault.CLOSED)
                self._leave()

    def hear(self) -> None:
        """Read all that it has said until now."""
        while self._fault is None and (data := self._receive()):
            self._take(data)

    def _receive(self) -> bytes | None:
        """What it has said; None: nothing more at the moment, b"": nothing more at all."""
        try:
            return self._work.recv(CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _take(self, data: bytes) -> None:
        try:
            for message in self._decoder.feed(data):
                self._heard(*message)
        except Exception as error:  # noqa: BLE001  (whatever it sent)
            self._loop.remove_reader(self._work)
            log.warning("child.unreadable", extra={"pid": self.pid, "error": str(error)[:200]})
            self._blame(Fault.UNREADABLE)

    def _heard(self, word: str, *said: Any) -> None:
        if not self.docket.jobs or self._ending is not None:
            return
        if not self.begun or word == "end":
            self.begun = True
            self._owner.begun()
        execution = self.docket.jobs[0].execution
        if word == "try":
            execution.tries = min(int(said[0]), 1_000_000)
        elif word == "progress":
            execution.ctx.report_progress(*said)
        elif word == "log":
            execution.ctx.relay_log(*said)
        elif word == "end":
            self._end(*said)
        else:
            raise frames.BrokenFrame(f"an unknown word: {word!r:.50}")

    def _end(self, number: Any, fields: Any, retire: str | None, peaked: int) -> None:
        given, now = self.docket.jobs[0], time.monotonic()
        if number != given.number:
            raise frames.BrokenFrame(f"an end of {number!r:.20}, where {given.number} runs")
        execution = given.execution
        ending = endings.from_fields(execution.held.claim, fields)
        self.lasted, self.type = min(ending.duration or 0.0, now - given.at), execution.held.claim.type
        self._peaked = int(peaked)
        if retire is not None:
            log.debug("child.leaves", extra={"pid": self.pid, "reason": retire})
            self._ending = ending
            self._cancel_timers()
            self._later(GONE, self.kill)
            self._leave()
            return
        self.docket.ended(now)
        self.idle_since = now
        self._owner.ended(execution, execution.relayed(ending, self.lasted))
        if not self.leaving:
            self._owner.freed(self)

    def _leave(self) -> None:
        self.leaving = True
        self._owner.leaves(self)

    def _blame(self, fault: Fault) -> None:
        if self._ending is None and self.dead_since is None:  # else it had reasons of its own to end
            self._fault = fault
        self.kill()

    def _dead(self) -> None:
        self._loop.remove_reader(self.handle)
        self._cancel_timers()
        self.dead_since = time.monotonic()
        self._later(SILENT, self._unheard)
        self._leave()

    def _unheard(self) -> None:
        self._later(SILENT, self._unheard)
        self._owner.unheard(self)

    def _later(self, delay: float, call: Any, *arguments: Any) -> None:
        self._timers.append(self._loop.call_later(delay, call, *arguments))

    def _cancel_timers(self) -> None:
        self.docket.stop_timers()
        for timer in self._timers:
            timer.cancel()
        self._timers = []

    def _close(self) -> None:
        self._cancel_timers()
        for descriptor in (self._work, self.handle):
            self._loop.remove_reader(descriptor)
        self.docket.close()
        self._work.close()
        self._control.close()
        os.close(self.handle)
