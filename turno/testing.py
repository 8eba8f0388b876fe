"""The public door of handlers' tests: run a handler inline, without services, and look at what it did.

```python
from turno.testing import run_job

def test_an_invoice_is_rendered():
    run = run_job(render, {"number": 7})
    assert run.result == {"number": 7}
    assert run.files["invoice.txt"] == b"Invoice 7"
    assert run.stages == ["Rendering"]
```

The payload is validated as it is when it is enqueued and the result is stored as JSON, as in a worker; what the
handler raises reaches the test as it is. Several attempts are several runs, `FakeContext(attempt=2)`.
"""

import asyncio
import json
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from jobs.cancellation import CancelFlag
from jobs.context import JobContext, LogLevel
from jobs.errors import JobError, Snooze
from jobs.ids import new_id
from jobs.jobtypes import JobType
from jobs.registry import Catalogue, catalogue, type_of

__all__ = ["FakeContext", "Run", "arun_job", "run_job", "temporary_types"]


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
        if self._folder is None:
            return {}
        found = sorted(path for path in self._folder.rglob("*") if path.is_file())
        return {path.relative_to(self._folder).as_posix(): path.read_bytes() for path in found}

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


def _declared(handler: Callable[..., Any] | JobType | str) -> JobType:
    if isinstance(handler, JobType):
        return handler
    found = catalogue.require(handler) if isinstance(handler, str) else type_of(handler)
    if found is None:
        raise TypeError(f"{handler!r} is no handler; expected what @job_type decorates, a JobType or a type's name")
    return found


async def arun_job(
    handler: Callable[..., Any] | JobType | str, payload: Any = None, *, ctx: FakeContext | None = None
) -> Run:
    """Run a handler inside an async test; a plain one runs in a thread. See `run_job`."""
    declared = _declared(handler)
    context = ctx or FakeContext(declared.name)
    value = declared.parse({} if payload is None else payload)
    try:
        if declared.is_async:
            returned = await declared.call(context, value)
        else:
            returned = await asyncio.to_thread(declared.call, context, value)
    except Snooze as snooze:
        returned = snooze
    if isinstance(returned, Snooze):
        return Run(context, None, returned)
    result = context.final_result(returned)
    return Run(context, None if result is None else json.loads(result))


def run_job(handler: Callable[..., Any] | JobType | str, payload: Any = None, *, ctx: FakeContext | None = None) -> Run:
    """Run a handler, given as it is, by its JobType or by its type's name, once and to its end.

    Raises what the handler raises, Invalid when the payload does not fit, ResultError when the result can't be stored,
    UnknownType for a name that nothing is registered under. Inside an event loop use `await arun_job(...)`.
    """
    return asyncio.run(arun_job(handler, payload, ctx=ctx))


@contextmanager
def temporary_types() -> Iterator[Catalogue]:
    """Job types that are declared inside are forgotten afterwards; gives the catalogue."""
    with catalogue.scratch() as scratch:
        yield scratch
