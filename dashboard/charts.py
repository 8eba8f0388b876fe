"""Executions a minute as a drawing: stacked bars, failures at the base, the axis in round numbers. No database here."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from jobs.queries import Minute

HEIGHT = 100.0
WIDTH = 0.68
MARGIN = (1 - WIDTH) / 2
# Between the two parts of a bar, and the least that is drawn of what is not zero; in units of the height.
GAP = 1.4
LEAST = 1.2
TICKS = 4
TABLE_STEP = 10
# Leading digits of round tops; 5 only where its half is whole.
ROUND = (1, 2, 4, 5)


@dataclass(frozen=True, slots=True)
class Span:
    """A row of the table beside the drawing: what ended from `start` on."""

    start: datetime
    succeeded: int
    failed: int


@dataclass(frozen=True, slots=True)
class Chart:
    """The drawing and what it says in words.

    `ok` and `ko` are SVG paths in a box of `len(minutes)` by 100; `scale` the numbers of the axis from the top;
    `ticks` the instants below it, the last one ("now") left out; `peak_at` None when nothing ran.
    """

    width: int
    ok: str
    ko: str
    grid: str
    scale: tuple[int, int, int]
    ticks: tuple[datetime, ...]
    spans: tuple[Span, ...]
    succeeded: int
    failed: int
    retried: int
    peak: int
    peak_at: datetime | None

    @property
    def total(self) -> int:
        """The executions that the bars show."""
        return self.succeeded + self.failed


def round_top(peak: float) -> int:
    """The smallest round number at or above `peak` whose half is whole: 2, 4, 10, 20, 40, 50, 100 …"""
    power = 1
    while True:
        for digit in ROUND:
            top = digit * power
            if top % 2 == 0 and top >= peak:
                return top
        power *= 10


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _bar(column: int, bottom: float, height: float) -> str:
    return f"M{_number(column + MARGIN)} {_number(bottom)}h{WIDTH}v-{_number(height)}h-{WIDTH}z"


def _drawn(value: int, top: int) -> float:
    return max(LEAST, value * HEIGHT / top) if value else 0.0


def bars(minutes: Sequence[Minute], top: int) -> tuple[str, str]:
    """The paths of what succeeded and of what failed, one bar a minute, against an axis that ends at `top`."""
    ok, ko = [], []
    for column, minute in enumerate(minutes):
        failed = _drawn(minute.failed, top)
        if failed:
            ko.append(_bar(column, HEIGHT, failed))
        if minute.succeeded:
            bottom = HEIGHT - failed - (GAP if failed else 0)
            ok.append(_bar(column, bottom, min(bottom, _drawn(minute.succeeded, top))))
    return "".join(ok), "".join(ko)


def by_ten(minutes: Sequence[Minute]) -> tuple[Span, ...]:
    """The minutes in steps of ten, oldest first."""
    parts = [minutes[start : start + TABLE_STEP] for start in range(0, len(minutes), TABLE_STEP)]
    return tuple(
        Span(part[0].minute, sum(one.succeeded for one in part), sum(one.failed for one in part)) for part in parts
    )


def chart(minutes: Sequence[Minute]) -> Chart:
    """The drawing of these minutes, oldest first; there is at least one."""
    heights = [minute.succeeded + minute.failed for minute in minutes]
    peak = max(heights)
    top = round_top(peak * HEIGHT / (HEIGHT - GAP))
    ok, ko = bars(minutes, top)
    width = len(minutes)
    step = max(1, width // TICKS)
    return Chart(
        width=width,
        ok=ok,
        ko=ko,
        grid=f"M0 .5H{width}M0 50H{width}M0 99.5H{width}",
        scale=(top, top // 2, 0),
        ticks=tuple(minutes[at].minute for at in range(0, width, step))[:TICKS],
        spans=by_ten(minutes),
        succeeded=sum(minute.succeeded for minute in minutes),
        failed=sum(minute.failed for minute in minutes),
        retried=sum(minute.retried for minute in minutes),
        peak=peak,
        peak_at=minutes[heights.index(peak)].minute if peak else None,
    )
