"""Retention: what is older than it is kept leaves in small batches, table by table, and metrics become coarser.

Whoever leads does one batch of each rule a round, and goes on after a pause as long as the round was, until nothing is
left: at most half of the time, so that the queue is not disturbed. Any number may do it at once.
"""

import logging
from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

from django.db import connections

from jobs import quick, transitions, upkeep
from jobs.conf import conf
from jobs.sections import Retention as Kept
from jobs.states import State
from jobs.text import first_line
from jobs.transitions import FIRST, Place
from workers.connections import DATABASE_ERRORS, ENGINE, is_servers_fault
from workers.pacing import Pace

log = logging.getLogger(__name__)
LEAST_PAUSE = 0.05  # seconds between two rounds while something is left
SAID_EVERY = 60.0  # seconds between two lines of the log meanwhile


class Batch(NamedTuple):
    """Rows that are gone, and whether more may be there."""

    rows: int
    more: bool


class Rule(NamedTuple):
    """What is done to one table: `name` is that of the table, or says what is done; `batch` is told how many rows."""

    name: str
    batch: Callable[[int, Kept], Batch]


class _Jobs:
    """Finished jobs of one state; remembers how far it has come."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._after: Place = FIRST

    def __call__(self, limit: int, kept: Kept) -> Batch:
        ages = {State.SUCCEEDED: kept.succeeded, State.CANCELLED: kept.cancelled, State.FAILED: kept.failed}
        age = ages[self._state]
        try:
            gone = transitions.purge(
                self._state, age=age, letters=kept.dead_letters, limit=limit, after=self._after, using=ENGINE
            )
        except DATABASE_ERRORS as error:
            if limit == 1 and quick.too_slow(error):  # the next pass tries it again
                self._after = transitions.beyond(self._state, age=age, after=self._after, using=ENGINE)
            raise
        self._after = gone.after or FIRST
        return Batch(gone.jobs, gone.after is not None)


def _rule(name: str, forget: Callable[..., int], age: Callable[[Kept], float] | None = None) -> Rule:
    def batch(limit: int, kept: Kept) -> Batch:
        rows = forget(limit=limit, using=ENGINE) if age is None else forget(age=age(kept), limit=limit, using=ENGINE)
        return Batch(rows, rows >= limit)

    return Rule(name, batch)


def rules() -> list[Rule]:
    """A new list of all rules; in the order in which they are used."""
    return [
        *(Rule(f"jobs_{state.lower()}", _Jobs(state)) for state in (State.SUCCEEDED, State.CANCELLED, State.FAILED)),
        _rule("concurrency_keys", transitions.forget_keys),
        _rule("job_types", transitions.forget_types),
        _rule("circuits", transitions.forget_circuits),
        _rule("metrics_minute", upkeep.forget_metrics, lambda kept: kept.metrics),
        _rule("metrics_folded_over_workers", upkeep.fold_workers),
        _rule("metrics_folded_by_hour", upkeep.fold_hours),
        _rule("bulk_runs", upkeep.forget_bulk),
        _rule("django_session", upkeep.forget_sessions),
        _rule("django_admin_log", upkeep.forget_admin_log, lambda kept: kept.audit),
    ]


class Retention:
    """The routine of one worker. `run_once` is one round, `interval` the seconds until the next."""

    def __init__(self) -> None:
        self._rules = [(rule, Pace()) for rule in rules()]
        self._gone: Counter[str] = Counter()
        self._said = monotonic()
        self._pause: float | None = None

    def run_once(self) -> int:
        """One batch of each rule; how many rows are gone. What fails stops no other rule.

        Raises a database error where the database is away.
        """
        started, more, gone = monotonic(), False, 0
        for rule, pace in self._rules:
            done = self._batch(rule, pace)
            gone += done.rows
            more = more or done.more
        took = monotonic() - started
        self._pause = max(LEAST_PAUSE, took) if more else None
        self._say(more)
        return gone

    def interval(self) -> float:
        """Seconds until the next round: soon while something is left."""
        return conf().retention.interval if self._pause is None else self._pause

    def _batch(self, rule: Rule, pace: Pace) -> Batch:
        kept = conf().retention
        try:
            done = pace.run(lambda limit: rule.batch(limit, kept), kept.batch_size)
            if done is not None and done.rows:
                self._gone[rule.name] += done.rows
                upkeep.count(rule.name, done.rows, using=ENGINE)
        except DATABASE_ERRORS as error:
            if quick.too_slow(error):
                log.error("retention.too_slow", extra={"rule": rule.name, "error": first_line(error)})
            elif not is_servers_fault(error) and connections[ENGINE].is_usable():  # this table's fault
                log.exception("retention.failed", extra={"rule": rule.name})
            else:
                raise
            return Batch(0, False)
        except Exception:
            log.exception("retention.failed", extra={"rule": rule.name})
            return Batch(0, False)
        return Batch(0, True) if done is None else done

    def _say(self, more: bool) -> None:
        if self._gone and (not more or monotonic() - self._said >= SAID_EVERY):
            log.info("retention", extra={"rows": dict(self._gone)})
            self._gone.clear()
            self._said = monotonic()
