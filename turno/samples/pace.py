"""What the four samples share: their steps, and being slow or failing when the payload asks for it."""

import random
from collections.abc import Iterator
from typing import Literal

from django.utils.translation import gettext, gettext_noop
from pydantic import BaseModel, Field

from turno.handlers import JobContext, PermanentJobError, TransientJobError

TICK = 1.0  # seconds between two progress reports of a slow step


class SampleError(Exception):
    """The failure that a sample's payload asked for."""


class Demonstration(BaseModel):
    """Fields that each sample has besides its own: how slow it is, and whether it fails."""

    duration: float = Field(
        0,
        ge=0,
        le=3600,
        description=gettext_noop("Seconds that the work is stretched over; cancelling ends them at once."),
        examples=[5],
    )
    fail: Literal["none", "error", "permanent", "transient"] = Field(
        "none",
        description=gettext_noop(
            "Whether it fails: an ordinary error, one that will never pass, or one that may pass at once."
        ),
        examples=["none"],
    )
    fail_times: int = Field(
        0,
        ge=0,
        le=100,
        description=gettext_noop("How many attempts fail before one succeeds; 0 means that all do."),
        examples=[1],
    )
    failure_rate: float = Field(
        0,
        ge=0,
        le=1,
        description=gettext_noop("The probability of an ordinary error, drawn anew for each execution from the seed."),
        examples=[0.1],
    )
    seed: int = Field(
        1,
        ge=0,
        le=2**31,
        description=gettext_noop("Where the made-up data start from: the same seed gives the same result."),
        examples=[42],
    )


class Pace:
    """The steps of one run. `step` for plain handlers, `astep` for async ones, `done` at the end.

    A step names itself as the stage, takes its share of `duration` and moves the progress on meanwhile; the failure
    that the payload asks for comes at the beginning of the second half of the steps. Both wake and raise when the job
    is cancelled.
    """

    def __init__(self, ctx: JobContext, options: Demonstration, steps: int) -> None:
        self._ctx = ctx
        self._options = options
        self._steps = steps
        self._taken = 0

    def step(self, title: str) -> None:
        """Begin the next step of a plain handler."""
        for pause in self._pauses(title):
            self._ctx.sleep(pause)

    async def astep(self, title: str) -> None:
        """Begin the next step of an async handler."""
        for pause in self._pauses(title):
            await self._ctx.asleep(pause)

    def done(self) -> None:
        """Everything is done: 100 %."""
        self._ctx.report_progress(100, gettext("Done"))

    def _pauses(self, title: str) -> Iterator[float]:
        """What there is to sleep, reporting the progress before and between."""
        ctx, options = self._ctx, self._options
        if self._taken == self._steps // 2:
            ctx.report_progress(100 * self._taken / self._steps)
            self._fail()
        share = options.duration / self._steps
        ticks = max(1, round(share / TICK))
        for tick in range(ticks):
            ctx.report_progress(100 * (self._taken + tick / ticks) / self._steps, title)
            yield share / ticks
        self._taken += 1

    def _fail(self) -> None:
        ctx, options = self._ctx, self._options
        again = options.fail_times == 0 or ctx.attempt <= options.fail_times
        if options.fail == "permanent" and again:
            raise PermanentJobError(gettext("The payload asked for a failure that never passes."))
        if options.fail == "transient" and again:
            raise TransientJobError(gettext("The payload asked for a failure that may pass."))
        if options.fail == "error" and again:
            raise SampleError(gettext("The payload asked for a failure."))
        drawn = random.Random(f"{options.seed}:{ctx.job_id}:{ctx.execution}").random()  # noqa: S311  (demonstration)
        if drawn < options.failure_rate:
            raise SampleError(gettext("A failure by chance, as the payload asked for."))
