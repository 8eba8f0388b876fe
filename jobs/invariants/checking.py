"""Looks at all invariants in one snapshot; what is only soon true has to be broken for a margin without a break."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.db import OperationalError, connections, transaction
from django.db.backends.utils import CursorWrapper
from psycopg.errors import QueryCanceled

from jobs.conf import conf
from jobs.invariants.base import Finding, Invariant
from jobs.invariants.gates import GATES
from jobs.invariants.scope import statement
from jobs.invariants.truth import TRUTH
from jobs.invariants.turns import TURNS
from jobs.invariants.ways import WAYS

INVARIANTS: tuple[Invariant, ...] = (*WAYS, *GATES, *TURNS, *TRUTH)
LIVE = {one.name: statement(one.wrong, whole=False) for one in INVARIANTS}
WHOLE = {one.name: statement(one.wrong, whole=True) for one in INVARIANTS}
MOST = 1000  # of each that are counted
EXAMPLES = 5
PENDING = 5000  # dead letters that are looked at
ENDED = 20_000  # successes of a minute that are counted
TIME, LONG = 3.0, 600.0  # seconds that one statement may take, of the living house and of everything
BUDGET = 10.0  # seconds that one look at the living house may take: its snapshot keeps old rows from being vacuumed
AGAIN = 5.0  # seconds between two looks, a fifth of the margin at most
SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
BOUND = "SELECT set_config('statement_timeout', %(time)s, true)"
# Somebody leads, or has to by now: a worker that takes work and has been there for as long as a change of leaders.
ATTENDED = """
SELECT EXISTS (
    SELECT FROM turno.workers
    WHERE state = 'Online' AND seen_at > now() - %(silent)s::float8 * interval '1 second'
      AND started_at < now() - %(margin)s::float8 * interval '1 second'
)
"""
SINCE = "SELECT min(minute) FROM turno.metrics_minute"


@dataclass(frozen=True, slots=True)
class Checked:
    """One look: what is broken, and the names of the invariants that were not answered in time.

    `attended`: somebody led, so that what is soon true was looked at too. `unsure`: something would be broken if it
    stayed so for the margin: look again. `seconds`: how long it took. `wrong`: by name, all ids of what was found.
    """

    findings: tuple[Finding, ...]
    unanswered: tuple[str, ...]
    attended: bool
    unsure: bool
    seconds: float
    wrong: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False)


def usual_margin() -> float:
    """Seconds within which whatever leads must have mended what a leader's end, a crash or a lost notice has left."""
    settings = conf()
    return 2 * settings.worker.leadership_lease + settings.scheduler.interval


class Watch:
    """Looks again and again; remembers since when what is soon true has been broken by whom.

    `whole`: everything is looked at, however much, and whether or not somebody leads. `attended` None: as the
    database tells. `only`: the names of the invariants that are asked; None: all of them.
    """

    def __init__(
        self,
        *,
        margin: float | None = None,
        whole: bool = False,
        attended: bool | None = None,
        only: Collection[str] | None = None,
        using: str = "default",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.margin = usual_margin() if margin is None else margin
        self._whole = whole
        self._attended = True if whole and attended is None else attended
        self._only = only
        self._using = using
        self._clock = clock
        self._since: dict[str, dict[str, float]] = {}
        self._looked = float("-inf")
        self._first = 0

    def look(self) -> Checked:
        """Look once. Raises a database error when the database is away."""
        started = time.monotonic()
        connection = connections[self._using]
        joined = connection.in_atomic_block
        findings, unanswered, unsure, found = [], [], False, {}
        with transaction.atomic(using=self._using), connection.cursor() as cursor:
            if not joined:
                cursor.execute(SNAPSHOT)
            cursor.execute(BOUND, {"time": f"{(LONG if self._whole else TIME) * 1000:.0f}ms"})
            params = self._params(cursor)
            attended = self._leads(cursor, params)
            for one in self._asked(attended):
                late = not self._whole and time.monotonic() - started > BUDGET
                wrong = None if late else self._wrong(one.name, params)
                if wrong is None:
                    unanswered.append(one.name)
                    continue
                confirmed = self._confirmed(one.name, wrong) if one.soon else wrong
                unsure |= len(confirmed) < len(wrong)
                if confirmed:
                    findings.append(_finding(one, confirmed))
                    found[one.name] = confirmed
        self._looked = self._clock()
        return Checked(tuple(findings), tuple(unanswered), attended, unsure, time.monotonic() - started, found)

    def _params(self, cursor: CursorWrapper) -> dict[str, Any]:
        settings = conf()
        params: dict[str, Any] = {"margin": float(self.margin), "most": MOST, "guards": guards(), "since": None}
        params |= {"grace": settings.recovery.lease_grace_period, "silent": settings.worker.silent_after}
        params |= {"slack": settings.database.idle_in_transaction_timeout}
        params |= {"pending": None if self._whole else PENDING, "ended": None if self._whole else ENDED}
        if self._whole:
            cursor.execute(SINCE)
            params["since"] = cursor.fetchone()[0]
        return params

    def _leads(self, cursor: CursorWrapper, params: dict[str, Any]) -> bool:
        if self._attended is not None:
            return self._attended
        cursor.execute(ATTENDED, params)
        return bool(cursor.fetchone()[0])

    def _asked(self, attended: bool) -> Iterable[Invariant]:
        broker = conf().messaging.broker
        # Each look begins elsewhere: where there is not time for all, none is left out for ever.
        self._first = (self._first + 7) % len(INVARIANTS)
        turned = INVARIANTS[self._first :] + INVARIANTS[: self._first]
        asked = (one for one in turned if (attended or not one.soon) and (broker or not one.broker))
        return (one for one in asked if self._only is None or one.name in self._only)

    def _wrong(self, name: str, params: dict[str, Any]) -> list[str] | None:
        """The ids of what breaks it; None when that was not to be had in time."""
        try:
            with transaction.atomic(using=self._using), connections[self._using].cursor() as cursor:
                if self._whole:
                    cursor.execute(WHOLE[name], params)
                else:
                    cursor.execute(LIVE[name], params)
                return [id_ for (id_,) in cursor.fetchall()]
        except OperationalError as error:
            if isinstance(error.__cause__, QueryCanceled):
                return None
            raise

    def _confirmed(self, name: str, wrong: list[str]) -> list[str]:
        """Those that have been wrong at every look for the margin; looks that are further apart tell nothing of it."""
        now = self._clock()
        before = self._since.get(name, {}) if now - self._looked <= self.margin else {}
        self._since[name] = {id_: before.get(id_, now) for id_ in wrong}
        return [id_ for id_ in wrong if now - self._since[name][id_] >= self.margin]


def check(
    *, using: str = "default", margin: float | None = None, whole: bool = False, attended: bool | None = None
) -> list[Finding]:
    """What is broken: looks once, and again for `margin` seconds while something might be.

    `margin` None: `usual_margin`. `whole`: over everything, as after a storm; else over what is cheap in a house of
    any size. `attended` says whether somebody leads (None: as the database tells); what only holds soon is else left
    out. Raises TimeoutError when an invariant of the whole was not answered, and what the database raises.
    """
    return list(examine(using=using, margin=margin, whole=whole, attended=attended).findings)


def examine(
    *, using: str = "default", margin: float | None = None, whole: bool = False, attended: bool | None = None
) -> Checked:
    """The same, with what is known besides."""
    watch = Watch(margin=margin, whole=whole, attended=attended, using=using)
    ends = time.monotonic() + watch.margin
    checked = watch.look()
    while checked.unsure and time.monotonic() < ends + AGAIN:
        time.sleep(min(AGAIN, watch.margin / 5))
        checked = watch.look()
    if whole and checked.unanswered:
        raise TimeoutError(f"not answered in time: {', '.join(checked.unanswered)}")
    return checked


def guards() -> list[str]:
    """The names of the constraints and unique indexes by which the database keeps the promises, from the models."""
    models = apps.get_app_config("jobs").get_models()
    return sorted(constraint.name for model in models for constraint in model._meta.constraints)


def _finding(one: Invariant, wrong: list[str]) -> Finding:
    return Finding(
        one.name, one.promise, len(wrong), tuple(wrong[:EXAMPLES]), one.says, one.advice, more=len(wrong) >= MOST
    )
