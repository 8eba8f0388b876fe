"""What a figure is: a name, its unit, the sides that are measured, and the function that measures one turn of one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.sides.base import Side

# {"value": …} and whatever else is worth keeping of a turn: jobs, seconds, cpu_us (microseconds a job by part), load.
Sample = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """`less`: the smaller the better. `extra`: other numbers of a sample that the table shows beside the value."""

    name: str
    words: str
    unit: str
    sides: tuple[str, ...]
    run: Callable[[Side, float], Sample]
    less: bool = False
    extra: tuple[str, ...] = ()


def scaled(count: int, scale: float, least: int = 10) -> int:
    """So many at scale 1, and never fewer than `least`."""
    return max(least, round(count * scale))
