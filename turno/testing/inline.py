"""One handler, run once and to its end with a context that keeps what it says: no worker, no database."""

import json
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync, sync_to_async

from jobs.cancellation import CancelFlag
from jobs.context import JobContext, LogLevel
from jobs.errors import JobError, Snooze
from jobs.ids import new_id
from jobs.registry import Catalogue, catalogue
from turno.testing.handed import Handler, declared_type, files_below, payload_of, refuse_in_loop


class FakeContext(JobContext):
    """A JobContext that keeps what the handler says in lists.

    `progresses` has (percent, stage) of each report, `stages` each new stage once, `logs` (level, message).
    `cancel_at`: the job is cancelled as soon as its progress reaches this percentage. The folder is `folder`, or a
    temporary one that goes with this object.
    """

    def __init__(
        self,
        type: str = "test.handler",
        *,
        attempt: int = 1,
        execution: int | None = None,
        max_attempts: int = 5,
        job_id: UUID | None = None,
        folder: Path | None = None,
        cancel_at: float | None = None,
    ) -> None:
        super().__init__(
            job_id=job_id or new_id(),
            type=type,
            attempt=attempt,
            execution=execution or attempt,
            max_attempts=max_attempts,
            cancel=CancelFlag(),
        )
        self.progresses: list[tuple[int, str]] = []
        self.stages: list[str] = []
        self.logs: list[tuple[LogLevel, str]] = []
        self._given_folder = folder
        self._cancel_at = cancel_at

    def cancel(self, error: JobError | None = None) -> None:
        """Ask the handler to stop, from any thread: as cancelled, or with JobTimeout(...) or LeaseLost(...)."""
        self._cancel.set(error)

    @property
    def files(self) -> dict[str, bytes]:
        """The content of each file below the folder, by relative path with "/"."""
        return files_below(self._folder)

    def _publish_progress(self, percent: int, stage: str) -> None:
        self.progresses.append((percent, stage))
        if stage and (not self.stages or self.stages[-1] != stage):
            self.stages.append(stage)
        if self._cancel_at is not None and percent >= self._cancel_at:
            self._cancel.set()

    def _publish_log(self, level: LogLevel, message: str) -> None:
        self.logs.append((level, message))

    def _open_folder(self) -> Path:
        if self._given_folder is not None:
            return self._given_folder
        folder = tempfile.mkdtemp(prefix="turno-test-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)


@dataclass(frozen=True)
class Run:
    """What one run of a handler did. `result` went through JSON; `snooze` is set when it asked to run later."""

    ctx: FakeContext
    result: Any
    snooze: Snooze | None = None

    @property
    def progress(self) -> int:
        """The last progress, 0-100."""
        return self.ctx.progress

    @property
    def stages(self) -> list[str]:
        """Each new stage, in order."""
        return self.ctx.stages

    @property
    def logs(self) -> list[tuple[LogLevel, str]]:
        """(level, message) of each line, in order."""
        return self.ctx.logs

    @property
    def files(self) -> dict[str, bytes]:
        """The content of each file that the handler left, by relative path."""
        return self.ctx.files


async def arun_job(handler: Handler, payload: Any = None, *, ctx: FakeContext | None = None) -> Run:
    """Run a handler inside an async test; a plain one runs where Django's database calls run. See `run_job`."""
    declared = declared_type(handler)
    context = ctx or FakeContext(declared.name)
    value = payload_of(declared, payload)
    try:
        if declared.is_async:
            returned = await declared.call(context, value)
        else:
            returned = await sync_to_async(declared.call)(context, value)
    except Snooze as snooze:
        returned = snooze
    return _run(context, returned)


def run_job(handler: Handler, payload: Any = None, *, ctx: FakeContext | None = None) -> Run:
    """Run a handler, given as it is, by its JobType or by its type's name, once and to its end.

    The payload is checked as when it is enqueued, and payload and result go through JSON, as in a worker. Plain
    handlers run in this thread, and database calls of async ones too: inside the test's own transaction, where it has
    one. Several attempts are several runs, `FakeContext(attempt=2)`.

    Raises what the handler raises, Invalid when the payload does not fit (PayloadTooLarge when it is), ResultError when
    the result can't be stored, UnknownType for a name that nothing is registered under. Inside an event loop use
    `await arun_job(...)`.
    """
    refuse_in_loop("run_job()", "await arun_job(...)")
    declared = declared_type(handler)
    if declared.is_async:
        return async_to_sync(arun_job)(declared, payload, ctx=ctx)
    context = ctx or FakeContext(declared.name)
    value = payload_of(declared, payload)
    try:
        returned = declared.call(context, value)
    except Snooze as snooze:
        returned = snooze
    return _run(context, returned)


def _run(context: FakeContext, returned: Any) -> Run:
    if isinstance(returned, Snooze):
        return Run(context, None, returned)
    result = context.final_result(returned)
    return Run(context, None if result is None else json.loads(result))


@contextmanager
def temporary_types() -> Iterator[Catalogue]:
    """Job types that are declared inside are forgotten afterwards; gives the catalogue."""
    with catalogue.scratch() as scratch:
        yield scratch
