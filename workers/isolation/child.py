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
from contextlib import suppress
from random import Random
from typing import Any, NoReturn

from jobs.conf import conf
from jobs.outcomes import Ending
from jobs.retry import RetryPolicy
from workers import conclusion, tree
from workers.connections import close_handler_connections
from workers.execution import Execution, call_plain, prepare_with
from workers.isolation import endings, frames
from workers.isolation.baseline import Baseline, flush_streams, forget_peak, memory
from workers.isolation.childcontext import ChildContext
from workers.isolation.gate import RAISE, Gate
from workers.isolation.watchdog import Watchdog
from workers.isolation.wire import ConnectionGone, Wire
from workers.leases import Held

log = logging.getLogger(__name__)
EXIT_GONE = 71  # the connection to the worker is gone
EXIT_BROKEN = 70  # a fault of this program
LEFT = 5.0  # seconds for processes that a handler left to die
# What forkserver and worker ignore or handle in ways of their own.
NOT_OURS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
DEFAULT_SIGNALS = (*NOT_OURS, signal.SIGTSTP, signal.SIGCHLD, signal.SIGALRM)


def run(work: socket.socket, control: socket.socket) -> NoReturn:
    """Be a child from here on; this process was just forked, and holds no other socket of its parent."""
    code = EXIT_BROKEN
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in DEFAULT_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        tree.become_subreaper()
        with suppress(OSError, RuntimeError):
            faulthandler.enable(2)  # a crash in C says where
        code = Child(work, control).serve()
    except ConnectionGone:
        code = EXIT_GONE
    except BaseException:
        log.exception("child.failed")
    finally:
        flush_streams()
        os._exit(code)


class Child:
    """A child process that serves its worker until that has no more work for it."""

    def __init__(self, work: socket.socket, control: socket.socket) -> None:
        settings = conf().worker
        self._most = settings.child_max_jobs
        self._gate = Gate()
        signal.signal(RAISE, self._gate.on_signal)
        self._wire = Wire(work, self._gate)
        self._watchdog = Watchdog(control, self._gate)
        self._watchdog.start()
        self._baseline = Baseline(settings.child_max_memory)

    def serve(self) -> int:
        """Run jobs until the worker sends no more, or until this process should not be used again; the exit code."""
        while True:
            job = self._wire.receive()
            if job is None:
                return 0
            self._wire.send("start")
            ending = self._run(job)
            if not self._wire.is_original:
                os._exit(0)  # a copy that the handler forked came back here: it is nobody's
            peak, now = memory()
            ending_fields = endings.to_fields(ending) | {"peak_memory": peak or None}
            retire = self._clean(now) or ("age" if job.last or job.number >= self._most else None)
            self._wire.send("end", ending_fields, retire)
            self._watchdog.end(job.number)
            if retire is not None:
                return 0

    def _run(self, job: frames.Job) -> Ending:
        forget_peak()
        self._gate.reset()
        held = Held(job.claim, job.deadline)
        ctx = ChildContext(held, self._wire, job.folder)
        self._watchdog.begin(job.number, held, ctx)
        try:
            execution = prepare_with(held, ctx)
        except Exception as error:
            log.exception("job.not_prepared", extra={"job": str(job.claim.id)})
            return conclusion.failed(job.claim, error, RetryPolicy(), Random())  # noqa: S311  (jitter)
        ending = contextvars.copy_context().run(execution.run, self._call)
        held.ended = True
        return ending

    async def _call(self, execution: Execution, payload: Any) -> Any:
        if execution.tries > 1:
            self._wire.send("try", execution.tries)
        try:
            self._gate.open(execution.held.flag)
            return await call_plain(execution, payload)
        finally:
            self._gate.close()

    def _clean(self, memory_now: int) -> str | None:
        """Undo what the job did to this process; why the process must not be used again, if so."""
        try:
            flush_streams()
            close_handler_connections()
            left = _end_processes()
            return self._baseline.put_back(memory_now) or ("processes" if left else None)
        except Exception:
            log.exception("child.not_clean")
            return "error"


def _end_processes() -> bool:
    """End what the handler left running below this process, and reap it; whether there was anything alive."""
    if not _has_children():
        return False
    tree.reap()
    if not _has_children():
        return False
    tree.kill_below(os.getpid(), LEFT)
    tree.reap()
    return True


def _has_children() -> bool:
    """Whether there is any child process, ended ones included: one system call."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
