"""The watchdog of a child: a thread that hears its worker, and ends the child when nobody may use it any more.

It ends the process and all below it when the lease's deadline has come, when the worker is gone, and when it can't hear
any more. The worker sends messages of ASCII: "extend N DEADLINE" and "ask N WHY LIMIT", where N numbers this child's
jobs.
"""

import math
import os
import select
import signal
import socket
import threading
from dataclasses import dataclass
from typing import NoReturn

from workers import tree
from workers.clock import boottime
from workers.isolation.childcontext import ChildContext
from workers.isolation.gate import Gate
from workers.leases import CANCEL_GRACE, Held, Interrupt

TURN = 0.25  # seconds between two looks at the clock while a job runs
LONGEST_MESSAGE = 256
ENDING = 2.0  # seconds for what is below this process to die first
EXIT_ENDED = 72  # the exit code of a child that its watchdog has ended


@dataclass(slots=True)
class _Watched:
    """A job that began, or of which something was said already: the two come on different ways. (Of one that was taken
    back it stays until another has ended.)"""

    deadline: float = math.inf
    held: Held | None = None
    ctx: ChildContext | None = None
    asked: tuple[Interrupt, float] | None = None
    raise_at: float = math.inf


class Watchdog(threading.Thread):
    """Listens to `control` for as long as the process lives. No signal is handled in this thread."""

    def __init__(self, control: socket.socket, gate: Gate) -> None:
        super().__init__(name="turno-watchdog", daemon=True)
        self._control = control
        self._gate = gate
        self._file = os.fstat(control.fileno()).st_ino
        self._parent = os.getppid()
        self._lock = threading.Lock()
        self._watched: dict[int, _Watched] = {}
        self._over = 0
        self._asleep = False  # until something is heard: no job runs
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        control.setblocking(False)

    def start(self) -> None:
        """Start the thread, with all signals blocked: they are the main thread's, which can block them as well."""
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def begin(self, number: int, held: Held, ctx: ChildContext) -> None:
        """The job starts; what was said about it before counts now."""
        with self._lock:
            watched = self._watched.setdefault(number, _Watched())
            watched.held, watched.ctx = held, ctx
            if watched.deadline == math.inf:  # else it was extended before it began
                watched.deadline = held.deadline
            self._ask(watched)
            if watched.deadline <= boottime():  # this process was frozen with the job in its hands
                self._end_all()
            if self._asleep:
                os.eventfd_write(self._bell, 1)

    def end(self, number: int) -> None:
        """The job and all that it left are over."""
        with self._lock:
            self._over = number
            for known in [n for n in self._watched if n <= number]:
                del self._watched[known]

    def run(self) -> None:
        try:
            while True:
                self._turn()
        finally:
            self._end_all()

    def _turn(self) -> None:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._bell, select.POLLIN)
        if self._bell in {number for number, _ in poll.poll(self._pause())}:
            os.eventfd_read(self._bell)
        if os.fstat(self._control.fileno()).st_ino != self._file:
            self._end_all()  # a handler closed it, and something else has its number
        while True:
            try:
                message = self._control.recv(LONGEST_MESSAGE)
            except BlockingIOError:
                break
            if not message:
                self._end_all()  # the worker is gone, or has no use for this process
            self._hear(message.decode().split())
        now = boottime()
        with self._lock:
            watched = list(self._watched.items())
        for number, job in watched:
            if job.held is None:  # it is not begun: whoever begins it looks at its deadline
                continue
            if job.deadline <= now:
                self._end_all()
            if job.raise_at <= now:
                job.raise_at = math.inf
                self._gate.ask(number)
            if job.ctx is not None:
                job.ctx.flush()

    def _pause(self) -> int | None:
        """Milliseconds until something is to be done; None: until something is heard."""
        with self._lock:
            begun = [min(job.deadline, job.raise_at) for job in self._watched.values() if job.held is not None]
            self._asleep = not begun
            if self._asleep:
                return None
            nearest = min(begun)
        return math.ceil(1000 * min(TURN, max(0.0, nearest - boottime())))

    def _hear(self, words: list[str]) -> None:
        what, number = words[0], int(words[1])
        with self._lock:
            if number <= self._over:
                return
            watched = self._watched.setdefault(number, _Watched())
            if what == "ask":
                watched.asked = Interrupt(words[2]), float(words[3])
                self._ask(watched)
            else:
                watched.deadline = float(words[2])

    def _ask(self, watched: _Watched) -> None:
        if watched.held is None or watched.asked is None:
            return
        why, limit = watched.asked
        watched.asked = None
        if watched.held.ask(why, limit):
            watched.raise_at = boottime() + (CANCEL_GRACE if why is Interrupt.CANCELLED else 0.0)

    def _end_all(self) -> NoReturn:
        """End this process and everything below it.

        While its parent lives this process goes first, so that the handler does nothing more: the parent then ends what
        it left. Where nobody is left to do that, it goes last.
        """
        try:
            if os.getppid() != self._parent:
                tree.kill_below(os.getpid(), ENDING)
        finally:
            _end()


def _end() -> NoReturn:
    try:
        os._exit(EXIT_ENDED)
    finally:
        os.kill(os.getpid(), signal.SIGKILL)
