"""One execution, a straight line: resolve, validate, run with immediate retries, conclude.

The same line for async and plain handlers, in this process or in a child of its own; only the call and the pause
between tries differ. Of a handler in a child process the worker keeps an Execution too: it is never run here, it takes
in what the child says, and it concludes when the child can't.
"""

import asyncio
import logging
import os
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from operator import attrgetter
from random import Random
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.utils.translation import gettext as _

from jobs.conf import conf
from jobs.errors import JobCancelled, JobError, JobTimeout, LeaseLost, PermanentJobError, Snooze
from jobs.jobtypes import JobType
from jobs.outcomes import Ending
from jobs.policy import EffectivePolicy, policy
from jobs.registry import catalogue
from jobs.states import State
from workers import conclusion, copies
from workers.conclusion import Death
from workers.context import WorkerContext
from workers.leases import Held, Interrupt, timeout_error
from workers.stacks import class_name
from workers.transience import is_transient, snooze_of

log = logging.getLogger(__name__)
RETURNED = "returned"
STOPPED = "coroutine raised StopIteration"  # the interpreter's words
_rng = Random()  # noqa: S311  (jitter)
os.register_at_fork(after_in_child=_rng.seed)  # or all children would draw the same
_dropping: set["asyncio.Task[None]"] = set()  # or nobody would hold them
Call = Callable[["Execution", Any], Awaitable[Any]]
Pause = Callable[["Execution", float], Awaitable[None]]
_PARTS = tuple(field.name for field in fields(Ending))
_parts = attrgetter(*_PARTS)


@dataclass(eq=False, slots=True)
class Execution:
    """What is needed to run one claim: `limit` is the seconds the whole attempt may take."""

    held: Held
    job_type: JobType | None
    policy: EffectivePolicy
    ctx: WorkerContext
    limit: float
    tries: int = 0
    stillborn: int = 0  # processes of its own that ended before they had begun with it
    over: bool = False  # the handler has ended, and nothing is left to interrupt

    @property
    def isolation(self) -> str:
        """Where the handler runs."""
        return self.job_type.isolation if self.job_type else "async"

    def run(self, call: Call | None = None) -> Ending:
        """Run a plain handler in this thread, by `call` where who runs it has something to do around. Never raises."""
        return self._conclude(_drive(self._attempt(call or _call_plain, _pause_plain)))

    async def arun(self) -> Ending:
        """Run an async handler on this loop. Never raises, whatever the handler raises."""
        ended = await self._attempt(_call_async, _pause_async)
        if ended[0].error is not None:  # where it was a broken connection, the next handler must not inherit it
            _drop_connections()
        return self._conclude(ended)

    def time_out(self) -> None:
        """The attempt's time is over."""
        self.held.ask(Interrupt.TIMEOUT, self.limit)

    def relayed(self, ending: Ending, duration: float) -> Ending:
        """The end that the handler's own process gave, with what it had said until then; it ran for `duration` s."""
        return self._with_words(ending, duration=duration)

    def not_started(self) -> Ending:
        """The end of an execution of which nothing ran."""
        cancelled = self.held.interrupt is Interrupt.CANCELLED
        return (conclusion.cancelled if cancelled else conclusion.never_started)(self.held.claim)

    def died(self, death: Death, duration: float) -> Ending:
        """The end of an execution whose process has died: as it was asked to, else a loss."""
        claim, why = self.held.claim, self.held.interrupt
        if why is None:
            ending = conclusion.lost(claim, death, self.policy.retry, conf().resilience.lost_limit, _rng)
        else:
            ending = conclusion.interrupted(claim, why, self._timeout_error(), self.policy.retry, _rng)
            ending = _changed(ending, exit_code=death.exit_code, signal=death.signal, peak_memory=death.peak_memory)
        return self._with_words(ending, duration=duration, tries=max(1, self.tries))

    async def _attempt(self, call: Call, pause: Pause) -> tuple[Ending, float]:
        claim, started = self.held.claim, time.monotonic()
        try:
            ending = await self._tries(call, pause)
        except BaseException as error:  # noqa: BLE001  (whatever a handler raises ends its job, never the worker)
            ending = self._raised(error)
        self.over = True
        duration = time.monotonic() - started
        late = duration > self.limit or self.held.interrupt is Interrupt.TIMEOUT
        if ending.to is State.SUCCEEDED and late:
            # It took no notice of its time limit (or blocked the loop that keeps it): too late is too late.
            ending = conclusion.failed(claim, self._timeout_error(), self.policy.retry, _rng)
        return ending, duration

    async def _tries(self, call: Call, pause: Pause) -> Ending:
        claim = self.held.claim
        if self.job_type is None:
            raise PermanentJobError(_("No handler of the type %(type)s is loaded here.") % {"type": claim.type})
        payload = self.job_type.parse(claim.payload)
        self.held.expire()  # this process may have been stopped since the claim
        while True:
            self.tries += 1
            self.held.flag.raise_if_set()
            try:
                returned = await self._called(call, payload)
            except Exception as error:
                retries_left = self.policy.immediate_retries - (self.tries - 1)
                if retries_left <= 0 or claim.at_most_once or self.held.interrupt or not is_transient(error):
                    raise
                delay = self.policy.immediate_retry_delay * 2 ** (self.tries - 1)
                await pause(self, delay * _rng.uniform(0.8, 1.2))
            else:
                if isinstance(returned, Snooze):
                    return conclusion.snoozed(claim, returned)
                return conclusion.succeeded(claim, self.ctx.final_result(returned))

    async def _called(self, call: Call, payload: Any) -> Any:
        """What the handler returns, or raises. In a copy of this process that it has forked nothing follows on it."""
        this = os.getpid()
        try:
            returned = await call(self, payload)
        except BaseException as error:
            if os.getpid() != this:
                copies.leave(error)
            raise
        if os.getpid() != this:
            copies.leave(None)
        return returned

    def _raised(self, error: BaseException) -> Ending:
        """What an exception makes of the job; never raises, though what is read of an exception is a handler's code."""
        try:
            return self._judged(_as_raised(error))
        except BaseException as second:  # noqa: BLE001
            if self.held.interrupt in (Interrupt.SHUTDOWN, Interrupt.LOST):
                return conclusion.released(self.held.claim)
            what = {"type": class_name(error), "error": class_name(second)}
            text = _("The handler raised %(type)s, which can't be read: %(error)s.") % what
            return conclusion.failed(self.held.claim, TypeError(text), self.policy.retry, _rng)

    def _judged(self, error: BaseException) -> Ending:
        claim, why = self.held.claim, self.held.interrupt
        if (snooze := snooze_of(error)) is not None:
            return conclusion.snoozed(claim, snooze)
        stopped = isinstance(error, (JobCancelled, JobTimeout, LeaseLost, asyncio.CancelledError))
        if why is not None and stopped:
            if why is Interrupt.TIMEOUT:
                error = self._timeout_error()
            return conclusion.interrupted(claim, why, error, self.policy.retry, _rng)
        if why in (Interrupt.SHUTDOWN, Interrupt.LOST):  # torn down by us: whatever came of it is not the job's fault
            return conclusion.released(claim)
        if why is Interrupt.TIMEOUT and not isinstance(error, PermanentJobError):  # what it made of the word "stop"
            late, error = error, self._timeout_error()
            error.__cause__ = late
        private = self.job_type is not None and self.job_type.private_output
        if private:
            log.warning("job.private_error", extra={"job": str(claim.id), "type": claim.type}, exc_info=error)
        return conclusion.failed(claim, error, self.policy.retry, _rng, private=private)

    def _timeout_error(self) -> JobError:
        return timeout_error(self.limit)

    def _conclude(self, ended: tuple[Ending, float]) -> Ending:
        ending, duration = ended
        ending = self._with_words(ending, duration=duration, tries=max(1, self.tries))
        self.ctx.clear_folder()
        return ending

    def _with_words(self, ending: Ending, **more: Any) -> Ending:
        lines = self.ctx.end()
        percent, stage = self.ctx.last_progress or (None, None)
        return _changed(ending, logs=lines, progress=percent, stage=stage or None, **more)


def _changed(ending: Ending, **changes: Any) -> Ending:
    """What `dataclasses.replace` gives, in a third of its time: each end comes here."""
    return Ending(**dict(zip(_PARTS, _parts(ending), strict=True)) | changes)


def prepare(held: Held, dirty: Callable[[WorkerContext], None]) -> Execution:
    """An execution of what was claimed; the request's own timeout wins over the type's."""
    return prepare_with(held, WorkerContext(held, dirty))


def prepare_with(held: Held, ctx: WorkerContext) -> Execution:
    """The same, with a context that speaks in another way."""
    job_type = catalogue.get(held.claim.type)
    effective = policy(job_type or held.claim.type)
    asked = held.claim.timeout
    return Execution(held, job_type, effective, ctx, effective.timeout if asked is None else asked)


def _as_raised(error: BaseException) -> BaseException:
    """The StopIteration that a handler raised: no coroutine lets one through, so Python puts another around it."""
    if type(error) is RuntimeError and isinstance(error.__cause__, StopIteration) and str(error) == STOPPED:
        return error.__cause__
    return error


async def _call_async(execution: Execution, payload: Any) -> Any:
    assert execution.job_type is not None  # noqa: S101  (_tries has looked)
    return await copies.Steps(execution.job_type.call(execution.ctx, payload))


async def _pause_async(execution: Execution, delay: float) -> None:
    _drop_connections()
    await execution.ctx.asleep(delay)


def _drop_connections() -> None:
    """Close what is unusable of the connections of async handlers: before the next that is asked of them, for they all
    have one thread, which takes one call after another. Not waited for: a handler may hold that thread for long."""
    task = asyncio.ensure_future(sync_to_async(close_old_connections)())
    _dropping.add(task)
    task.add_done_callback(_dropped)


def _dropped(task: "asyncio.Task[None]") -> None:
    _dropping.discard(task)
    if not task.cancelled() and task.exception() is not None:
        log.warning("handlers.connections_not_closed", exc_info=task.exception())


async def _call_plain(execution: Execution, payload: Any) -> Any:
    """Call the handler of an execution; it does not wait, though it is a coroutine."""
    assert execution.job_type is not None  # noqa: S101  (_tries has looked)
    return execution.job_type.call(execution.ctx, payload)


def call_into(returned: defaultdict[str, Any], execution: Execution, payload: Any) -> None:
    """Call a plain handler and keep what it returns under RETURNED, for `checked`: at once, in the interpreter's own
    code, so that no signal handler can raise after it has returned and lose that. Raises all that the handler raises
    (an iterator in its place would end at StopIteration)."""
    assert execution.job_type is not None  # noqa: S101  (_tries has looked)
    entry, arguments = execution.job_type.entry(execution.ctx, payload)
    returned.default_factory = partial(entry, *arguments)
    returned[RETURNED]


def checked(execution: Execution, returned: Any) -> Any:
    """What a plain handler returned. Raises TypeError for a coroutine."""
    assert execution.job_type is not None  # noqa: S101  (_tries has looked)
    return execution.job_type.checked(returned)


async def _pause_plain(execution: Execution, delay: float) -> None:
    with suppress(Exception):  # a transient error may have been a broken connection: the next try opens another
        close_old_connections()
    execution.ctx.sleep(delay)


def _drive[T](line: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits: how a plain handler goes down the same line without an event loop."""
    try:
        line.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("a plain handler's line waited")
