"""Medians, spreads, and the ratio of two sides that took turns."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

TIE = 0.25  # two sides that differ by less are even: what a machine's noise can make


@dataclass(frozen=True)
class Spread:
    """Median, least and most of some measurements."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of one or more values."""
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True)
class Ratio:
    """How often the one's median is the other's; `least` and `most` are those of the turns, side by side in time."""

    of_medians: float
    least: float
    most: float

    @classmethod
    def of(cls, one: Sequence[float], other: Sequence[float]) -> "Ratio":
        """The n-th value of each side was measured in the n-th turn. Raises ValueError where no turn has both."""
        turns = [a / b for a, b in zip(one, other, strict=False) if b]
        if not turns:
            raise ValueError("no turn in which both sides were measured")
        return cls(statistics.median(one) / statistics.median(other), min(turns), max(turns))

    @property
    def tie(self) -> bool:
        """Whether the smaller is less than a quarter below the larger."""
        return min(self.of_medians, 1 / self.of_medians) > 1 - TIE


def percentile(values: Sequence[float], percent: int) -> float:
    """The percentile, by linear interpolation between neighbours; of a single value that value."""
    if len(values) == 1:
        return values[0]
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
