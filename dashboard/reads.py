"""What the screens read, once a span for all viewers of this process: the dear ones seldom, the board each second."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from dashboard.shared import shared
from jobs import health, queries


def stats() -> queries.Stats:
    """The figures of now; what has ended is at most 15 s old."""
    return shared("stats", 1.0, lambda: queries.stats(shared("past", 15.0, queries.past)))


def board() -> queries.Board:
    """The workers and what runs in their slots."""
    return shared("board", 1.0, lambda: queries.board(shared("durations", 30.0, queries.durations)))


def _depths() -> tuple[datetime, Sequence[queries.Depth]]:
    seen = board()
    return seen.as_of, queries.depths(seen)


def depths() -> Sequence[queries.Depth]:
    """The queues, a little older than the board; their ages are those at the instant of the board."""
    as_of, found = shared("depths", 2.0, _depths)
    lag = (board().as_of - as_of).total_seconds()
    return [depth if depth.oldest_for is None else replace(depth, oldest_for=depth.oldest_for + lag) for depth in found]


def concerns() -> Sequence[queries.Concern]:
    """What needs a person, the worst first."""
    return shared("attention", 2.0, lambda: queries.attention(board(), depths(), health.latest()))


def rhythm() -> Sequence[queries.Minute]:
    """What ended in each minute of the last hour."""
    return shared("rhythm", 2.0, queries.rhythm)


def fleet() -> Sequence[queries.WorkerRow]:
    """All workers of late, also those that have ended."""
    return shared("workers", 1.0, queries.workers)
