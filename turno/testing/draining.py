"""Running what waits, in the test's own process, thread and transaction, by the verbs that workers use."""

import os
import socket
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from asgiref.sync import sync_to_async
from django.apps import apps
from django.db import transaction
from django.db.models import QuerySet

from jobs.conf import conf
from jobs.errors import Refused
from jobs.ids import new_id
from jobs.outcomes import Claim
from jobs.registry import catalogue
from jobs.schedules import fire_due
from jobs.states import Outcome, State
from jobs.transitions import claim_next, promote, settle
from jobs.version import VERSION
from turno.testing.clock import Clock, running_time
from turno.testing.drained import Drained, DrainedRun, DrainLimit
from turno.testing.handed import instant_of, length_of, queues_of, refuse_in_loop
from turno.testing.single import Single, run_single

LEASE = 86_400.0  # seconds: nobody renews it, and a test may stand in a debugger
LIMIT = 1000
FOREVER = datetime.max.replace(tzinfo=UTC)

type WithFailures = Literal["raise", "record"]
type WithScheduled = bool | datetime | str | timedelta | float

# What a leader does before workers find work: of the alias, says how much it did. A routine that makes jobs out of time
# belongs here, and the instant at which it has something to do next in `_next_instant`.
ROUTINES: list[Callable[[str], int]] = [
    lambda using: fire_due(limit=conf().scheduler.batch_size, using=using),
    lambda using: promote(limit=conf().scheduler.batch_size, using=using),
]


class _Drain:
    """One call of `drain`: a worker with one slot, without a process of its own."""

    def __init__(self, queues: frozenset[str] | None, failures: WithFailures, limit: int, using: str) -> None:
        self._queues = queues
        self._raises = failures == "raise"
        self._limit = limit
        self._using = using
        self._types = catalogue.names()
        self._worker = new_id()
        self._label = {
            "name": "turno.testing",
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "version": VERSION,
        }
        self.drained = Drained()

    def until(self, clock: Clock, last: datetime | None) -> None:
        """Run what is due, then what becomes due up to the instant `last`, each at its own."""
        self.due()
        while last is not None and (instant := self._next_instant(last)) is not None and instant <= last:
            passed = clock.reach(instant)
            if not self.due() and not passed:
                return  # it is due and does not come: somebody else has its row locked

    def due(self) -> bool:
        """Run what is due now, and what that enqueues, until nothing is left; whether there was anything."""
        some = False
        while True:
            for routine in ROUTINES:
                while routine(self._using):
                    some = True
            claim = self._claim()
            if claim is None:
                return some
            some = True
            self._run(claim)

    def _claim(self) -> Claim | None:
        """The best job that waits, claimed. A queue from which nobody is given any (it is paused) is passed over."""
        passed: set[str] = set()
        while True:
            best = self._mine(State.ENQUEUED).exclude(queue__in=passed).order_by("-priority", "enqueued_at", "id")
            queue = best.values_list("queue", flat=True).first()
            if queue is None:
                return None
            claimed = self._claim_of(queue)
            if claimed:
                return claimed[0]
            passed.add(queue)

    def _claim_of(self, queue: str) -> list[Claim]:
        if len(self.drained) < self._limit:
            return self._claimed(queue)
        with transaction.atomic(using=self._using):  # one too many stays where it is
            if self._claimed(queue):
                raise DrainLimit(self.drained)
        return []

    def _claimed(self, queue: str) -> list[Claim]:
        return claim_next(
            [(queue, 1)],
            types=self._types,
            worker_id=self._worker,
            claim_id=new_id(),
            label=self._label,
            lease=LEASE,
            using=self._using,
        )

    def _run(self, claim: Claim) -> None:
        single = run_single(claim)
        [settled] = settle([single.ending], worker_id=self._worker, using=self._using)
        run = single.told(settled.state)
        self.drained.runs.append(run)
        if isinstance(single.error, KeyboardInterrupt):
            raise single.error
        if self._raises and run.outcome in {Outcome.FAILED, Outcome.TIMED_OUT}:
            _raise(run, single)

    def _next_instant(self, last: datetime) -> datetime | None:
        jobs = self._mine(State.SCHEDULED).filter(run_at__isnull=False)
        found = [jobs.order_by("run_at").values_list("run_at", flat=True).first()]
        if last != FOREVER:
            recurring = apps.get_model("jobs", "RecurringJob").objects.using(self._using)
            due = recurring.filter(enabled=True, type__in=self._types, next_run_at__lte=last)
            found.append(due.order_by("next_run_at").values_list("next_run_at", flat=True).first())
        return min((instant for instant in found if instant is not None), default=None)

    def _mine(self, state: State) -> "QuerySet[Any]":
        jobs = apps.get_model("jobs", "Job").objects.using(self._using).filter(state=state, type__in=self._types)
        return jobs if self._queues is None else jobs.filter(queue__in=self._queues)


def _raise(run: DrainedRun, single: Single) -> None:
    """Raise what the handler raised, with which job it was."""
    error = single.error
    where = f"while drain() ran {run.type} (attempt {run.attempt} of {single.claim.max_attempts}, {run.payload!r})"
    if isinstance(error, Exception):
        for field, texts in error.errors.items() if isinstance(error, Refused) else ():
            error.add_note(f"{field}: {texts[0]}")
        error.add_note(where)
        raise error
    raise RuntimeError(f"{type(error).__name__} {where}") from error  # an exit, say, which would end the test's run


def drain(
    queue: str | Iterable[str] | None = None,
    *,
    with_scheduled: WithScheduled = False,
    with_failures: WithFailures = "raise",
    limit: int = LIMIT,
    using: str = "default",
) -> Drained:
    """Run every job that waits, and every job that those enqueue, until nothing is due; what was run, in order.

    Jobs are claimed, run and ended as by a worker with one slot, by priority and age: attempts, retries, unique keys,
    dead letters and the time line are real. All handlers run inline, whatever their isolation: in this thread, and,
    where the test is in a transaction, inside it. Immediate retries happen without their pauses; of the time limits,
    those of async handlers interrupt, the others are looked at afterwards.

    `queue`: a queue, or several; None: all. `with_scheduled`: also what waits for an instant, moving the clock to each
    (that of `frozen_time`, where there is one): True: for as long as something does; seconds or a timedelta: as far
    ahead; a datetime, or its text: up to then. Recurring jobs fire at each of their instants up to an end that was
    given; with True, which has none, only when they are due already. `with_failures`: "raise" raises what a failed
    attempt raised, after its end is written; "record" goes on. Jobs of paused queues, of types whose breaker is open or
    without a handler here, and parked ones stay. A cancel does not reach a handler that runs.

    Raises DrainLimit after `limit` executions when there is more to run, TypeError and ValueError for what can't be
    asked. Inside an event loop use `await adrain(...)`.
    """
    refuse_in_loop("drain()", "await adrain(...)")
    if with_failures not in get_args(WithFailures.__value__):
        raise ValueError(f'with_failures: expected "raise" or "record", got {with_failures!r}')
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ValueError(f"limit: expected a whole number from 1, got {limit!r}")
    queues = queues_of(queue)
    with running_time(using) as clock:
        last = _last(clock, with_scheduled)
        work = _Drain(queues, with_failures, limit, using)
        work.until(clock, last)
        if last is not None and last != FOREVER:
            clock.reach(last)
        return work.drained


async def adrain(
    queue: str | Iterable[str] | None = None,
    *,
    with_scheduled: WithScheduled = False,
    with_failures: WithFailures = "raise",
    limit: int = LIMIT,
    using: str = "default",
) -> Drained:
    """The same for async tests: async handlers run on the test's loop, the rest where Django's database calls run."""
    return await sync_to_async(drain)(
        queue, with_scheduled=with_scheduled, with_failures=with_failures, limit=limit, using=using
    )


def _last(clock: Clock, with_scheduled: WithScheduled) -> datetime | None:
    """The last instant that counts as due; None: only what is due already."""
    if with_scheduled is False:
        return None
    if with_scheduled is True:
        return FOREVER
    if isinstance(with_scheduled, (datetime, str)):
        return instant_of("with_scheduled", with_scheduled)
    return clock.now + length_of("with_scheduled", with_scheduled)
