"""Percentiles out of the histograms of `metrics_minute`: estimates, as exact as the buckets are narrow."""

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.metrics import BUCKETS

# Of fewer executions the 95th percentile is no more than the longest one.
ENOUGH = 20
# The sum of each bucket over some rows, without unfolding the arrays.
SUMS = ", ".join(f"COALESCE(sum(durations[{n}]), 0)::float8" for n in range(1, len(BUCKETS) + 2))


@dataclass(frozen=True, slots=True)
class Percentile:
    """`seconds`; with `beyond` it lies somewhere above them, in the last and open bucket."""

    seconds: float
    beyond: bool = False


def percentile(counts: Sequence[float], share: float = 0.95) -> Percentile | None:
    """The value below which `share` of the executions are, counted by `BUCKETS`; None below ENOUGH executions."""
    total = sum(counts)
    if total < ENOUGH:
        return None
    wanted, below = share * total, 0.0
    for place, count in enumerate(counts[: len(BUCKETS)]):
        if count > 0 and below + count >= wanted:
            low = BUCKETS[place - 1] if place else 0.0
            return Percentile(low + (BUCKETS[place] - low) * (wanted - below) / count)
        below += count
    return Percentile(BUCKETS[-1], beyond=True)
