"""The queues' screen: rows by priority with their lines, what a pause says, who holds what and who waits for it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from dashboard import reads
from dashboard.shared import shared
from jobs import queries, wording
from jobs.queries import PauseRow
from jobs.queries.depthhistory import MINUTES, depth_history
from jobs.queries.gates import RateUse, rates
from jobs.queries.keys import KeyPage, keys, paused_jobs
from jobs.queries.queues import QueueRow

# Seconds: what the lines of the last hour are drawn from is read no oftener.
HISTORY = 15.0
LONGEST_ORDER = 500 * 9
TOP, GROUND, WIDTH = 2.0, 23.0, 100.0  # of a line's view box, 100 by 24
OFTEN, A_ROW = 2000, 40  # milliseconds
# What may be paused besides a queue, and for how long a pause may be set to last, in seconds.
SCOPES: dict[str, Promise] = {
    "type": gettext_lazy("Type"),
    "tag": gettext_lazy("Tag"),
    "key": gettext_lazy("Key"),
}
SPANS: dict[str, int] = {"15min": 900, "1h": 3600, "4h": 14_400, "24h": 86_400}
SPAN_WORDS: list[tuple[str, Promise]] = [
    ("", gettext_lazy("When somebody resumes it")),
    ("15min", gettext_lazy("By itself, after 15 minutes")),
    ("1h", gettext_lazy("By itself, after 1 hour")),
    ("4h", gettext_lazy("By itself, after 4 hours")),
    ("24h", gettext_lazy("By itself, after 24 hours")),
]


@dataclass(frozen=True, slots=True)
class Row:
    """A queue. `depth` counts what the list of its queued jobs shows, parked ones too (`rough`: an estimate); the two
    lines are points in a box of 100 by 24; `asks` is what is said before it is paused."""

    queue: QueueRow
    depth: int
    rough: bool
    depth_line: str
    ended_line: str
    asks: str

    @property
    def priority(self) -> int:
        """The priority of its jobs where they ask for none."""
        return self.queue.default_priority or 0

    @property
    def mark(self) -> str:
        """What its place in the page's order is called."""
        return hashlib.blake2b(self.queue.queue.encode(), digest_size=4).hexdigest()

    @property
    def load(self) -> int:
        """How much of its slots is busy, in percent."""
        return round(100 * self.queue.busy / self.queue.capacity) if self.queue.capacity else 0

    @property
    def pace(self) -> str:
        """Executions that end a minute, in words."""
        return wording.number(self.queue.per_minute, 1 if 0 < self.queue.per_minute < 100 else 0)


@dataclass(frozen=True, slots=True)
class Queues:
    """The rows of the page in its own `order`; `fresh`: queues that came after it was loaded, `paused` how many are."""

    rows: list[Row]
    fresh: int
    paused: int
    order: str

    @property
    def every(self) -> int:
        """Milliseconds between two looks of one page at the list: a long one is work for the server and the eyes."""
        return max(OFTEN, len(self.rows) * A_ROW)


@dataclass(frozen=True, slots=True)
class Paused:
    """A pause of a type, tag or key: how many jobs are parked for it (`at_least`: more), and its scope in words."""

    pause: PauseRow
    jobs: int
    at_least: bool

    @property
    def word(self) -> str:
        """What is paused."""
        return str(SCOPES.get(self.pause.scope, self.pause.scope))


def line(values: Sequence[float]) -> str:
    """The points of a line through these values, the highest at the top; nothing at all lies on the ground. What is
    level takes two points, however long it is: most lines of many queues are."""
    most, last = max(values, default=0) or 1, len(values) - 1
    step = WIDTH / max(1, last)
    bends = (n for n, value in enumerate(values) if n in {0, last} or not values[n - 1] == value == values[n + 1])
    points = ((n * step, GROUND - (GROUND - TOP) * values[n] / most) for n in bends)
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def question(queue: QueueRow, depth: int) -> str:
    """What becomes of whom when the queue is paused."""
    said = []
    if queue.busy:
        said.append(
            ngettext("The %(n)s that runs finishes.", "The %(n)s that run finish.", queue.busy)
            % {"n": wording.number(queue.busy)}
        )
    if depth:
        said.append(
            ngettext(
                "The %(n)s in the queue waits until somebody resumes it.",
                "The %(n)s in the queue wait until somebody resumes it.",
                depth,
            )
            % {"n": wording.count(depth, queue.estimated or queue.parked_at_least)}
        )
    return " ".join([*said, _("New jobs keep coming in.")])


def _read() -> list[QueueRow]:
    return shared("queues", 2.0, lambda: queries.queues(reads.board(), history=True))


def _row(queue: QueueRow, lines: dict[str, list[float]]) -> Row:
    depth = queue.waiting + queue.parked
    rough = queue.estimated or queue.parked_at_least
    history = lines.get(queue.queue) or [0.0] * MINUTES
    return Row(
        queue, depth, rough, line([*history[:-1], float(depth)]), line(queue.history or [0.0, 0.0]),
        question(queue, depth),
    )  # fmt: skip


def _lines(found: Sequence[QueueRow]) -> dict[str, list[float]]:
    depths = {queue.queue: queue.waiting + queue.parked for queue in found}
    return shared("depth-history", HISTORY, lambda: depth_history(depths))


def everything() -> list[Row]:
    """Every queue, by its priority and name."""
    found = _read()
    lines = _lines(found)
    rows = [_row(queue, lines) for queue in found]
    return sorted(rows, key=lambda row: (-row.priority, row.queue.queue))


def queues(order: str = "") -> Queues:
    """The rows. `order` is the one the page was loaded with ("" while it loads): then its queues stay where they are,
    and new ones are only counted."""
    rows = everything()
    paused = sum(row.queue.paused is not None for row in rows)
    fresh = 0
    if order:
        places = {mark: place for place, mark in enumerate(order[:LONGEST_ORDER].split("."))}
        fresh = sum(row.mark not in places for row in rows)
        rows = sorted((row for row in rows if row.mark in places), key=lambda row: places[row.mark])
    else:
        order = ".".join(row.mark for row in rows) or "-"
    return Queues(rows, fresh, paused, order)


def one(name: str) -> Row | None:
    """A queue by itself; None where nothing is known of it."""
    found = _read()
    return next((_row(queue, _lines(found)) for queue in found if queue.queue == name), None)


def other_pauses() -> list[Paused]:
    """What else is paused: types, tags and keys, oldest first."""
    found = [pause for pause in reads.board().pauses if pause.scope != "queue"]
    counts = paused_jobs([f"{pause.scope}:{pause.value}" for pause in found])
    return [Paused(pause, *counts[f"{pause.scope}:{pause.value}"]) for pause in found]


def flow(after: str = "") -> dict[str, Any]:
    """Keys, limits, rates and pauses: what stands below the queues. `after`: the key after which the page begins."""
    page: KeyPage = keys(after) if after else shared("keys", 2.0, keys)
    used: list[RateUse] = shared("rates", 2.0, rates)
    return {"keys": page, "after": after, "rates": used, "pauses": shared("other-pauses", 2.0, other_pauses)}
