"""What runs in a child process: jobs one after another, each down the same straight line as in a thread.

After each job the child closes what the handler opened through the ORM, ends the processes that it left running, and
puts itself back (`baseline`). Only then does it say how the job ended: nothing of a handler outlives its job.
"""

import contextvars
import faulthandler
import logging
import os
import signal
import socket
import threading
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, NoReturn

from jobs import events
from jobs.conf import conf
from jobs.outcomes import Ending
from jobs.retry import RetryPolicy
from workers import conclusion, tree
from workers.connections import close_handler_connections
from workers.context import remove_folder
from workers.execution import RETURNED, Execution, call_into, checked, prepare_with
from workers.isolation import endings, frames
from workers.isolation.baseline import Baseline
from workers.isolation.childcontext import ChildContext
from workers.isolation.gate import RAISE, ChildFlag, Gate
from workers.isolation.lane import Inbox
from workers.isolation.looks import Look, forget_peak, look, peak_so_far
from workers.isolation.watchdog import Watchdog
from workers.isolation.wire import ConnectionGone, Wire
from workers.leases import Held
from workers.streams import flush_streams

log = logging.getLogger(__name__)
EXIT_GONE = 71  # the connection to the worker is gone
EXIT_BROKEN = 70  # a fault of this program
OOM_SCORE = 300  # of 1000, added to what a process takes of the memory in thousandths
LEFT = 5.0  # seconds for processes that a handler left to die
# What forkserver and worker ignore or handle in ways of their own.
NOT_OURS = (signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
DEFAULT_SIGNALS = (*NOT_OURS, signal.SIGTSTP, signal.SIGCHLD, signal.SIGALRM)
OF_SERVICES = (signal.SIGTERM, signal.SIGHUP)


def run(work: socket.socket, control: socket.socket, lane: socket.socket) -> NoReturn:
    """Be a child from here on; this process was just forked, and holds no other socket of its parent."""
    code = EXIT_BROKEN
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in DEFAULT_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        _WorkersBusiness()
        events.silence()  # the worker says what becomes of its jobs
        tree.become_subreaper()
        _die_first()
        with suppress(OSError, RuntimeError):
            faulthandler.enable(2)  # a crash in C says where
        code = Child(work, control, lane).serve()
    except ConnectionGone:
        code = EXIT_GONE
    except BaseException:
        log.exception("child.failed")
    finally:
        flush_streams()
        os._exit(code)


class Child:
    """A child process that serves its worker until that has no more work for it."""

    def __init__(self, work: socket.socket, control: socket.socket, lane: socket.socket) -> None:
        settings = conf().worker
        self._most = settings.child_max_jobs
        self._ran = 0  # jobs
        self._gate = Gate()
        signal.signal(RAISE, self._gate.on_signal)
        self._inbox = Inbox(lane)
        self._wire = Wire(work, self._gate)
        self._watchdog = Watchdog(control, self._gate)
        self._watchdog.start()
        self._baseline = Baseline(settings.child_max_memory)

    def serve(self) -> int:
        """Run jobs until the worker sends no more, or until this process should not be used again; the exit code."""
        while True:
            job = self._inbox.receive()
            if job is None:
                return 0
            self._ran += 1
            forgets = forget_peak()
            ctx, ending = self._run(job)
            if not self._wire.is_original:
                os._exit(EXIT_BROKEN)  # a copy, made where nobody looked for one: it must take no job
            retire, seen = self._clean()
            retire = retire or ("age" if job.last or self._ran >= self._most else None)
            if retire is None:  # else threads may be writing there: the worker clears it when this process is dead
                remove_folder(ctx.give_up_folder())
            peak = seen.peak if forgets or self._ran == 1 else 0  # else it may be an earlier job's
            fields = endings.to_fields(ending) | {"peak_memory": peak or None}
            self._wire.send("end", job.number, fields, retire, peak_so_far(forgets=forgets))
            self._wire.finish()
            self._watchdog.end(job.number)
            if retire is not None:
                return 0

    def _run(self, job: frames.Job) -> tuple[ChildContext, Ending]:
        self._gate.begin(job.number)
        held = Held(job.claim, job.deadline, ChildFlag(self._gate))
        ctx = ChildContext(held, self._wire, job.folder)
        self._watchdog.begin(job.number, held, ctx)
        try:
            execution = prepare_with(held, ctx)
        except Exception as error:
            log.exception("job.not_prepared", extra={"job": str(job.claim.id)})
            return ctx, conclusion.failed(job.claim, error, RetryPolicy(), Random())  # noqa: S311  (jitter)
        ending = contextvars.copy_context().run(execution.run, self._call)
        held.ended = True
        return ctx, ending

    async def _call(self, execution: Execution, payload: Any) -> Any:
        """Call the handler. What its own timers and signal handlers raise after it has returned concerns nobody."""
        if execution.tries > 1:
            self._wire.send("try", execution.tries)
        returned: defaultdict[str, Any] = defaultdict()
        try:
            try:
                self._gate.open(execution.held.flag)
                call_into(returned, execution, payload)
            finally:
                self._quiet()
        except BaseException:
            self._quiet()  # (one of them may have broken into the first)
            if not returned:
                raise
        return checked(execution, returned[RETURNED])

    def _quiet(self) -> None:
        self._baseline.quiet()
        self._gate.close()

    def _clean(self) -> tuple[str | None, Look]:
        """Undo what the job did to this process; why it must not be used again, if so, and what it was like."""
        try:
            flush_streams()
            close_handler_connections()
            left = _end_processes()
            seen = look()
            return self._baseline.put_back(seen) or ("processes" if left else None), seen
        except Exception:
            log.exception("child.not_clean")
            return "error", look()


class _WorkersBusiness:
    """A service manager sends these to every process of the service: the worker stops its handlers in order.

    They are handled, not ignored, for what a handler starts would inherit that. A copy of this process that a handler
    forks (`multiprocessing`) has the system's own way with them again, and has it before the first can reach it: they
    are blocked while it is made, since Python forgets what comes to a copy before it is ready.
    """

    def __init__(self) -> None:
        self._masks = threading.local()
        for number in OF_SERVICES:
            signal.signal(number, self._ignore)
        os.register_at_fork(before=self._block, after_in_parent=self._go_on, after_in_child=self._leave)

    def _ignore(self, number: int, frame: FrameType | None) -> None:
        """The signal's handler."""

    def _block(self) -> None:
        self._masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, OF_SERVICES)

    def _go_on(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._masks.before)

    def _leave(self) -> None:
        for number in OF_SERVICES:
            if signal.getsignal(number) == self._ignore:
                signal.signal(number, signal.SIG_DFL)
        self._go_on()


def _die_first() -> None:
    """Where memory runs out, the system shall choose a handler, not the worker or the forkserver."""
    with suppress(OSError, ValueError):
        path = Path("/proc/self/oom_score_adj")
        path.write_text(str(max(OOM_SCORE, int(path.read_text()))))


def _end_processes() -> bool:
    """End what the handler left running below this process, and reap it; whether there was anything alive."""
    if not tree.has_children():
        return False
    tree.reap()
    if not tree.has_children():
        return False
    tree.kill_below(os.getpid(), LEFT)
    tree.reap()
    return True
