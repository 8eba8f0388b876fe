"""One claimed job, run in the test's own process and thread by the engine's own line, and inside its transaction."""

import asyncio
import json
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from asgiref.sync import async_to_sync, sync_to_async
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus

from jobs.context import LogLevel
from jobs.outcomes import Claim, Ending
from jobs.states import Outcome, State
from turno.testing.drained import DrainedRun
from turno.testing.handed import files_below
from workers.context import WorkerContext
from workers.execution import Call, Execution, prepare_with
from workers.isolation.handler_loop import LoopRun
from workers.leases import Held, timeout_error


class _Context(WorkerContext):
    """A worker's context that keeps what the handler said, and what it left in its folder."""

    def __init__(self, held: Held) -> None:
        super().__init__(held, lambda _context: None)
        self.stages: list[str] = []
        self.lines: list[tuple[LogLevel, str]] = []
        self.files: dict[str, bytes] = {}

    def _publish_progress(self, percent: int, stage: str) -> None:
        super()._publish_progress(percent, stage)
        if stage and self.stages[-1:] != [stage]:
            self.stages.append(stage)

    def _publish_log(self, level: LogLevel, message: str) -> None:
        super()._publish_log(level, message)
        self.lines.append((level, message))

    def clear_folder(self) -> None:
        self.files = files_below(self._folder)
        super().clear_folder()


class _Execution(Execution):
    """A worker's execution that keeps what ended it, each try a part of the test's transaction."""

    raised: BaseException | None = None

    async def _called(self, call: Call, payload: Any) -> Any:
        parts = _Parts()
        if self.isolation != "async":
            parts.begin()
            try:
                return await super()._called(call, payload)
            finally:
                parts.end()
        await sync_to_async(parts.begin)()
        try:
            return await super()._called(call, payload)
        finally:
            await sync_to_async(parts.end)()

    def _raised(self, error: BaseException) -> Ending:
        self.raised = error
        return super()._raised(error)


@dataclass(frozen=True)
class Single:
    """A job that was run, and the end that is to be written."""

    claim: Claim
    ending: Ending
    error: BaseException | None
    context: _Context

    def told(self, state: State | None) -> DrainedRun:
        """What the test is told of it; `state` is the job's since its end was written."""
        claim, ending, context = self.claim, self.ending, self.context
        return DrainedRun(
            job_id=claim.id,
            type=claim.type,
            queue=claim.queue,
            payload=claim.payload,
            attempt=claim.attempt,
            execution=claim.execution,
            at=claim.claimed_at,
            outcome=ending.outcome,
            state=state,
            result=None if ending.result is None else json.loads(ending.result),
            error=self.error,
            delay=ending.delay if state is State.SCHEDULED else None,
            progress=context.progress,
            stages=context.stages,
            logs=context.lines,
            files=context.files,
        )


def run_single(claim: Claim) -> Single:
    """Run what was claimed, whatever its isolation: immediate retries included, without their pauses.

    Never raises what the handler raises, but KeyboardInterrupt: that may well be yours.
    """
    held = Held(claim, math.inf)
    context = _Context(held)
    plan = prepare_with(held, context)
    execution = _Execution(
        plan.held, plan.job_type, replace(plan.policy, immediate_retry_delay=0.0), context, plan.limit
    )
    with _kept_open():
        ending = async_to_sync(_on_this_loop)(execution) if execution.isolation == "async" else execution.run()
    error = execution.raised
    if ending.outcome is Outcome.TIMED_OUT:
        error = timeout_error(execution.limit)
    return Single(claim, ending, error if ending.error is not None else None, context)


async def _on_this_loop(execution: Execution) -> Ending:
    """As on a worker's loop of handlers: with its time limit. Whatever was asked of the database's thread is done."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Ending] = loop.create_future()
    LoopRun(execution, loop, lambda _execution, ending: ended.set_result(ending))
    ending = await ended
    await sync_to_async(_nothing)()
    return ending


def _nothing() -> None:
    """Takes its turn."""


class _Parts:
    """What a worker gives each try of a handler, where the test's own transaction is around: after a statement of its
    that failed the connection can be used again, and what it registered for its commit is called.

    In a worker each statement is a transaction of its own, unless the handler opens one. Here PostgreSQL undoes, with
    the statement that failed outside of an atomic() of the handler's, what the handler had written before.
    """

    def __init__(self) -> None:
        self._open: list[tuple[BaseDatabaseWrapper, str, int]] = []

    def begin(self) -> None:
        """Before a try."""
        self._open = [(one, one.savepoint(), len(one.run_on_commit)) for one in _in_transactions()]

    def end(self) -> None:
        """After it. Raises what a hook for the commit raises."""
        for connection, savepoint, _hooks in self._open:
            if connection.needs_rollback or _broken(connection):
                connection.set_rollback(False)
                connection.savepoint_rollback(savepoint)
            else:
                connection.savepoint_commit(savepoint)
        for connection, _savepoint, hooks in self._open:
            while len(connection.run_on_commit) > hooks:
                _savepoints, hook, robust = connection.run_on_commit.pop(hooks)
                with suppress(Exception) if robust else ExitStack():
                    hook()


def _in_transactions() -> list[BaseDatabaseWrapper]:
    return [connection for connection in connections.all(initialized_only=True) if connection.in_atomic_block]


@contextmanager
def _kept_open() -> Iterator[None]:
    """A worker closes after an error what may be broken, and a handler what it needs no more, to be opened again when
    it is used; the test's transaction would end with it."""
    with ExitStack() as stack:
        for connection in _in_transactions():
            stack.enter_context(patch.object(connection, "close_if_unusable_or_obsolete", _nothing))
            stack.enter_context(patch.object(connection, "close", _nothing))
        yield


def _broken(connection: BaseDatabaseWrapper) -> bool:
    """Whether a statement of this transaction has failed, so that PostgreSQL takes no other one."""
    info = getattr(connection.connection, "info", None)  # (another alias may be of another database)
    return getattr(info, "transaction_status", None) == TransactionStatus.INERROR
