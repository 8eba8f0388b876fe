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

from jobs.conf import conf
from jobs.outcomes import Ending
from workers.clock import boottime
from workers.conclusion import Death, Fault
from workers.context import remove_folder
from workers.execution import Execution
from workers.isolation import endings, frames
from workers.isolation.watchdog import EXIT_ENDED
from workers.leases import CANCEL_GRACE, Interrupt

log = logging.getLogger(__name__)
CHUNK = 16_384
GONE = 1.0  # seconds between the end of a child's connection and its death, before it is killed
SILENT = 5.0  # seconds between two questions why the forkserver says nothing of a child's death


class Owner(Protocol):
    """The pool, as a child knows it."""

    def freed(self, child: "Child") -> None:
        """It has nothing to do."""

    def begun(self) -> None:
        """A child has begun with a job, or ended one: children live."""

    def ended(self, execution: Execution, ending: Ending) -> None:
        """An execution is over, and nothing of it runs."""

    def not_begun(self, execution: Execution, *, stillborn: bool) -> None:
        """The child died before it had begun with what it was given; `stillborn`: with anything, and by itself."""

    def unheard(self, child: "Child") -> None:
        """It has been dead for SILENT seconds, and the forkserver does not say so; asked again and again."""


class Child:
    """`id` is the forkserver's number of it; `number` counts its jobs, the one that runs included; `execution` is what
    it runs. It is known by its `handle`, a pidfd: what has its pid when it is dead may be another."""

    def __init__(
        self, id_: int, pid: int, descriptors: list[int], owner: Owner, loop: asyncio.AbstractEventLoop
    ) -> None:
        work, control, self.handle = descriptors
        self.id = id_
        self.pid = pid
        self.execution: Execution | None = None
        self.number = 0
        self.last = False  # what it was given is all that it will be given
        self.since = 0.0  # on the monotonic clock: when it was given that
        self.lasted = 0.0  # seconds: its last job
        self.idle_since = time.monotonic()
        self.leaving = False  # it ends by itself
        self.dead_since: float | None = None
        self._owner = owner
        self._loop = loop
        self._work = socket.socket(fileno=work)
        self._control = socket.socket(fileno=control)
        self._work.setblocking(False)
        self._control.setblocking(False)
        self._decoder = frames.Decoder()
        self._unsent = b""
        self._begun = False  # it has said something of a job
        self._unread = False  # it died without having taken the job
        self._ending: Ending | None = None
        self._fault: Fault | None = None
        self._peaked = 0  # bytes: what earlier jobs made the peak that the system tells of it
        self._timers: list[asyncio.TimerHandle] = []
        loop.add_reader(self._work, self._read)
        loop.add_reader(self.handle, self._dead)

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        poll = select.poll()
        poll.register(self.handle, select.POLLIN)
        return not poll.poll(0)

    def give(self, execution: Execution, *, last: bool) -> None:
        """Run this; `last`: and nothing after it."""
        held = execution.held
        self.execution, self._ending = execution, None
        self.number += 1
        self.last = last
        self.since = time.monotonic()
        number = self.number
        held.extended = lambda deadline: self._loop_calls(self._extend, number, deadline)
        deadline = held.deadline
        folder = execution.ctx.reserve_folder()
        self._unsent += frames.pack_job(frames.Job(number, held.claim, deadline, folder, last))
        self._send()
        self._later(execution.limit, execution.time_out)

    def ask(self, why: Interrupt) -> None:
        """Ask the handler to stop, and kill it after the grace; at once when its lease is lost."""
        execution = self.execution
        if execution is None:
            return
        if why is Interrupt.LOST:
            self.kill()
            return
        self._say(f"ask {self.number} {why} {execution.limit!r}")
        grace = conf().worker.kill_grace + (CANCEL_GRACE if why is Interrupt.CANCELLED else 0.0)
        self._later(grace, self.kill)

    def retire(self) -> None:
        """It has nothing to do, and nothing more will come: it ends by itself."""
        self.leaving = True
        with suppress(OSError):
            self._work.shutdown(socket.SHUT_WR)
        self._later(GONE, self.kill)

    def kill(self) -> None:
        """SIGKILL. The forkserver kills what it leaves, and then tells of its death."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)

    def died(self, death: Death) -> None:
        """It is dead, reaped, and nothing of it lives: its last words are read, its execution ends."""
        self._drain()
        self._unread = self._unread or bool(self._unsent)
        self._close()
        execution, self.execution = self.execution, None
        if execution is None:
            return
        self._loop.run_in_executor(None, remove_folder, execution.ctx.give_up_folder())
        held = execution.held
        if self._ending is not None:
            self._owner.ended(execution, execution.relayed(self._ending, self.lasted))
            return
        if self._unread and self._fault is None:
            self._owner.not_begun(execution, stillborn=self.number == 1 and death.fault is None)
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
        self._owner.ended(execution, execution.died(death, time.monotonic() - self.since))

    def _loop_calls(self, call: Any, *arguments: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended, and the child with it
            self._loop.call_soon_threadsafe(call, *arguments)

    def _extend(self, number: int, deadline: float) -> None:
        if number == self.number and self.execution is not None:
            self._say(f"extend {number} {deadline!r}")

    def _say(self, message: str) -> None:
        with suppress(OSError):  # full: it hears nothing anyway; closed: its death is on the way
            self._control.send(message.encode())

    def _send(self) -> None:
        """Write as much of the job as the child takes; the rest when it takes more."""
        try:
            sent = self._work.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError:  # it is gone
            self._loop.remove_writer(self._work)
            self._unread = True
            return
        self._unsent = self._unsent[sent:]
        if self._unsent:
            self._loop.add_writer(self._work, self._send)
        else:
            self._loop.remove_writer(self._work)

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

    def _drain(self) -> None:
        while self._fault is None and (data := self._receive()):
            self._take(data)

    def _receive(self) -> bytes | None:
        """What it has said; None: nothing more at the moment, b"": nothing more at all.

        A reset says that the other end was closed with something unread in it: the job that was sent last.
        """
        try:
            return self._work.recv(CHUNK)
        except BlockingIOError:
            return None
        except OSError as error:
            self._unread = self._unread or isinstance(error, ConnectionResetError)
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
        execution = self.execution
        if execution is None or self._ending is not None:
            return
        if not self._begun or word == "end":
            self._begun = True
            self._owner.begun()
        if word == "try":
            execution.tries = min(int(said[0]), 1_000_000)
        elif word == "progress":
            execution.ctx.report_progress(*said)
        elif word == "log":
            execution.ctx.relay_log(*said)
        elif word == "end":
            self._end(execution, *said)
        else:
            raise frames.BrokenFrame(f"an unknown word: {word!r:.50}")

    def _end(self, execution: Execution, fields: Any, retire: str | None, peaked: int) -> None:
        ending = endings.from_fields(execution.held.claim, fields)
        self.lasted = min(ending.duration or 0.0, time.monotonic() - self.since)
        self._peaked = int(peaked)
        self._cancel_timers()
        if retire is not None:
            log.debug("child.leaves", extra={"pid": self.pid, "reason": retire})
            self._ending, self.leaving = ending, True
            self._later(GONE, self.kill)
            return
        self.execution = None
        self.idle_since = time.monotonic()
        self._owner.ended(execution, execution.relayed(ending, self.lasted))
        self._owner.freed(self)

    def _blame(self, fault: Fault) -> None:
        if self._ending is None and self.dead_since is None:  # else it had reasons of its own to end
            self._fault = fault
        self.kill()

    def _dead(self) -> None:
        self._loop.remove_reader(self.handle)
        self._cancel_timers()
        self.dead_since = time.monotonic()
        self._later(SILENT, self._unheard)

    def _unheard(self) -> None:
        self._later(SILENT, self._unheard)
        self._owner.unheard(self)

    def _later(self, delay: float, call: Any, *arguments: Any) -> None:
        self._timers.append(self._loop.call_later(delay, call, *arguments))

    def _cancel_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers = []

    def _close(self) -> None:
        self._cancel_timers()
        for descriptor in (self._work, self.handle):
            self._loop.remove_reader(descriptor)
        self._loop.remove_writer(self._work)
        self._work.close()
        self._control.close()
        os.close(self.handle)
