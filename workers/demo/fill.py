"""Fills an empty database with the demonstration: tells its past, then its present, in one transaction."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from random import Random

from django.db import connections, transaction

from jobs.transitions.plant import NotEmpty, plant, require_empty
from workers.demo import present
from workers.demo.book import Book, Rows
from workers.demo.kinds import KINDS
from workers.demo.moments import Moments
from workers.demo.past import Past

__all__ = ["Filled", "NotEmpty", "fill"]
FEW = 6
NOW = "SELECT clock_timestamp()"
ANALYZE = "ANALYZE turno.jobs, turno.metrics_minute, turno.dead_letters, turno.workers, turno.job_attempts"


@dataclass(frozen=True)
class Filled:
    """How many rows there are now."""

    workers: int
    jobs: int
    letters: int


def fill(*, seed: int, workers: int = FEW, finished: int = 6000) -> Filled:
    """Plant the demonstration: six workers by hand, or as many as are asked for; `finished` jobs of the last 24 h.

    Instants count from the database's clock, those of the present from when the past is planted. Raises NotEmpty when
    there is anything already.
    """
    require_empty()
    pages = tell(_now, seed=seed, workers=workers, finished=finished)
    past = next(pages)  # this takes a while, which a transaction may not
    with transaction.atomic():
        require_empty()
        plant(past)
        present_rows = next(pages)
        plant(present_rows)
    with connections["default"].cursor() as cursor:
        cursor.execute(ANALYZE)
    jobs, letters = (len(past[table]) + len(present_rows[table]) for table in ("jobs", "dead_letters"))
    return Filled(len(present_rows["workers"]), jobs, letters)


def _now() -> datetime:
    with connections["default"].cursor() as cursor:
        cursor.execute(NOW)
        found: datetime = cursor.fetchone()[0]
        return found


def tell(now: Callable[[], datetime], *, seed: int, workers: int, finished: int) -> Iterator[Rows]:
    """The rows of the past, then those of the present, as they are for this seed at the instants that `now` gives."""
    rng = Random(seed)  # noqa: S311  (the same picture each time)
    moments = Moments(now(), rng)
    book = Book(moments, rng)
    people, queues = present.six(moments, rng) if workers == FEW else present.many(moments, rng, workers)
    past = Past(book, people, queues)
    past.finished(finished)
    past.failures()
    yield book.turn_page()
    since, moments.now = moments.now, now()
    for worker in people:
        worker["seen_at"] += moments.now - since
        book.add("workers", **worker)
    if workers == FEW:
        present.run_in_six(book, people, past)
        present.paused(book)
        present.waiting(book, past, queued=44, scheduled=310, reports=84)
    else:
        present.run_in_many(book, people, past)
        present.waiting(book, past, queued=workers * 40, scheduled=workers * 60, reports=12)
    for kind in KINDS:
        book.add("job_types", name=kind.name, first_seen_at=moments.ago(9e6), last_served_at=moments.now)
    yield book.turn_page(last=True)
