"""JobContext: what a running job may ask and say. The worker and `turno.testing` each fill in the hooks."""

import asyncio
import logging
import math
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Literal, get_args
from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext

from jobs.cancellation import CancelFlag
from jobs.conf import conf
from jobs.errors import JobError
from jobs.results import result_json
from jobs.text import clean

LogLevel = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)
STAGE_LENGTH = 200
LINE_LENGTH = 8192


class JobContext(ABC):
    """One execution, seen from its handler.

    `attempt` counts from 1 to `max_attempts` and does not grow when the job was only snoozed or returned to
    its queue; `execution` counts every start of the job, this one included, and so names the execution within
    its job.

    Every method may be called from `async def` and plain handlers alike, without `await` but where it says
    so, and from any thread that the handler starts. What arrives after the lease was lost is discarded.

    A subclass fills in `_publish_progress`, `_publish_log` and `_open_folder`. They are called under this
    object's lock: they must be quick, wait for no I/O that the handler would feel, and not call back.

    Between any two steps of this code the handler's own may run, in the same thread: a destructor that the
    collector calls, or a signal handler. What it says then comes here once more before the call that it broke
    into is done. So the lock is re-entrant, and nothing else is waited for while it is held.
    """

    def __init__(
        self,
        *,
        job_id: UUID,
        type: str,
        attempt: int = 1,
        execution: int = 1,
        max_attempts: int = 1,
        cancel: CancelFlag | None = None,
    ) -> None:
        self.job_id = job_id
        self.type = type
        self.attempt = attempt
        self.execution = execution
        self.max_attempts = max_attempts
        self.result: str | None = None  # JSON text
        self._cancel = cancel or CancelFlag()
        self._lock = threading.RLock()
        self._percent = 0
        self._stage = ""
        self._lines = 0
        self._bytes = 0
        self._log_full = False
        self._folder: Path | None = None
        self._logger: logging.Logger | None = None
        self._async_event: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    # What a subclass does with what the handler says.

    @abstractmethod
    def _publish_progress(self, percent: int, stage: str) -> None:
        """Keep the progress (0-100, never less than before) and the stage; may coalesce."""

    @abstractmethod
    def _publish_log(self, level: LogLevel, message: str) -> None:
        """Keep one line of the log, clean and bounded."""

    @abstractmethod
    def _open_folder(self) -> Path:
        """Make the execution's folder and say where it is; called at most once."""

    # Progress, log, result, files.

    @property
    def progress(self) -> int:
        """The last progress reported, 0-100."""
        return self._percent

    def report_progress(self, percent: float, stage: str | Promise | None = None) -> None:
        """Say how far the work is: 0-100, and with `stage` also what is being done.

        Values outside 0-100 are clamped, fractions dropped; a value below an earlier one keeps the earlier
        one. Raises TypeError for what is no number and ValueError for NaN and infinities.
        """
        if isinstance(percent, bool) or not isinstance(percent, (int, float)):
            raise TypeError(f"percent: expected a number from 0 to 100, got {type(percent).__name__}")
        if isinstance(percent, float) and not math.isfinite(percent):
            raise ValueError(f"percent: expected a number from 0 to 100, got {percent}")
        said = None if stage is None else clean(stage, STAGE_LENGTH, one_line=True)  # (the handler's code, maybe)
        with self._lock:
            self._percent = max(self._percent, int(min(100, max(0, percent))))
            if said is not None:
                self._stage = said
            self._publish_progress(self._percent, self._stage)

    def stage(self, text: str | Promise) -> None:
        """Say in one line, of at most 200 characters, what is being done; the progress stays."""
        self.report_progress(self._percent, text)

    def log(self, message: object, level: LogLevel = "info") -> None:
        """Write a line that stays with the execution.

        Kept are 8,192 characters a line, and `limits.log_lines` lines or `limits.log_bytes` bytes an
        execution; a last line says when more came. Raises ValueError for a level other than debug, info,
        warning and error.
        """
        if level not in LEVELS:
            raise ValueError(f"level: expected one of {', '.join(LEVELS)}, got {level!r}")
        text = clean(message, LINE_LENGTH)
        limits = conf().limits
        with self._lock:
            if self._log_full:
                return
            self._lines += 1
            self._bytes += len(text.encode())
            if self._lines > limits.log_lines or self._bytes > limits.log_bytes:
                self._log_full = True
                level, text = (
                    "warning",
                    gettext("The log of this execution is full; what follows is not kept."),
                )
            self._publish_log(level, text)

    @property
    def logger(self) -> logging.Logger:
        """A standard logger whose records, tracebacks included, become lines of `log` and go nowhere else."""
        if self._logger is None:
            logger = logging.Logger(self.type, logging.DEBUG)
            logger.addHandler(_LogLines(self))
            self._logger = logger
        return self._logger

    def set_result(self, result: Any) -> None:
        """Set the job's result, in place of returning it; what the handler returns, unless None, wins.

        A snapshot is taken, as JSON (`jobs.results` says what becomes what). Raises ResultError naming what
        can't be stored, and where.
        """
        limits = conf().limits
        self.result = result_json(result, depth=limits.depth, max_bytes=limits.result)

    def final_result(self, returned: Any) -> str | None:
        """For who runs the handler: the result as JSON text, of what it returned or else of what it set; or None.

        Raises ResultError when what it returned can't be stored.
        """
        if returned is not None:
            self.set_result(returned)
        return self.result

    @property
    def folder(self) -> Path:
        """The execution's own folder, made at the first access; each file left there becomes an artifact."""
        with self._lock:
            if self._folder is None:
                self._folder = self._open_folder()
            return self._folder

    # Being stopped: cancelled by somebody, out of time, or no longer the owner.

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop: cancelled, timed out, or its lease lost."""
        return self._cancel.is_set()

    def raise_if_cancelled(self) -> None:
        """Raise JobCancelled, JobTimeout or LeaseLost when the handler should stop."""
        self._cancel.raise_if_set()

    def wait_cancelled(self, timeout: float | None = None) -> bool:
        """Block this thread until the handler should stop, at most `timeout` seconds; says whether it should.

        Raises RuntimeError inside an event loop, which it would block: `await ctx.wait_for_cancel()` there.
        """
        self._refuse_in_loop("wait_cancelled", "await ctx.wait_for_cancel()")
        return self._cancel.wait(timeout if timeout is None else max(0.0, timeout))

    def sleep(self, seconds: float) -> None:
        """Sleep in a plain handler; wakes at once, raising as `raise_if_cancelled`, when it should stop.

        Raises RuntimeError inside an event loop, which it would block: `await ctx.asleep()` there.
        """
        self._refuse_in_loop("sleep", "await ctx.asleep()")
        if self._cancel.wait(max(0.0, seconds)):
            self.raise_if_cancelled()

    def cancelled_event(self) -> asyncio.Event:
        """An event of the running loop that is set when the handler should stop. Only inside `async def`."""
        loop = asyncio.get_running_loop()
        known = self._async_event
        if known is None or known[0] is not loop:
            known = self._async_event = (loop, self._cancel.asyncio_event(loop))
        return known[1]

    async def wait_for_cancel(self, timeout: float | None = None) -> bool:
        """Wait until the handler should stop, at most `timeout` seconds; says whether it should."""
        event = self.cancelled_event()
        try:
            async with asyncio.timeout(timeout):
                await event.wait()
        except TimeoutError:
            return self.cancelled
        return True

    async def asleep(self, seconds: float) -> None:
        """Sleep in an `async def` handler; wakes, raising as `raise_if_cancelled`, when it should stop.

        `asleep(0)` lets others run and looks once.
        """
        if seconds > 0:
            await self.wait_for_cancel(seconds)
        else:
            await asyncio.sleep(0)
        self.raise_if_cancelled()

    @staticmethod
    def _refuse_in_loop(method: str, instead: str) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        raise RuntimeError(f"ctx.{method}() would block the event loop; write {instead}")


class _LogLines(logging.Handler):
    """Turns the records of `ctx.logger` into lines of `ctx.log`."""

    def __init__(self, ctx: JobContext) -> None:
        super().__init__()
        self._ctx = ctx

    def handle(self, record: logging.LogRecord) -> bool:
        """Without the lock that `logging` would hold: `ctx.log` needs none, and waits for nobody who wants it."""
        passed = self.filter(record)
        if passed:
            self.emit(passed if isinstance(passed, logging.LogRecord) else record)
        return bool(passed)

    def emit(self, record: logging.LogRecord) -> None:
        level: LogLevel = "debug"
        if record.levelno >= logging.ERROR:
            level = "error"
        elif record.levelno >= logging.WARNING:
            level = "warning"
        elif record.levelno >= logging.INFO:
            level = "info"
        self._ctx.log(self._text(record), level)

    def _text(self, record: logging.LogRecord) -> str:
        """The record's line. As with any logger, a message that does not fit its arguments costs nobody their work."""
        try:
            return self.format(record)
        except JobError:  # the word "stop", which may come in the middle of anything
            raise
        except Exception as error:  # noqa: BLE001  (the handler's own `__str__`, too)
            shown = gettext("(its message can't be shown: %(error)s)") % {"error": type(error).__name__}
            return f"{record.filename}:{record.lineno} {shown}"
