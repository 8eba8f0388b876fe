"""The workers as their screen shows them: rows in the page's own order, cells of slots, what to do about problems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from dashboard import reads
from dashboard.shared import shared
from jobs import queries
from jobs.queries.board import BoardWorker
from jobs.queries.fleet import WorkerFigures, WorkerRow
from jobs.queries.seats import Running, Seat

# What stands in the address, and the states that it means.
TABS: dict[str, frozenset[str]] = {
    "": frozenset({"Online", "Draining", "Silent"}),
    "online": frozenset({"Online"}),
    "drenando": frozenset({"Draining"}),
    "sem-sinal": frozenset({"Silent"}),
    "encerrados": frozenset({"Offline"}),
}
TAB_WORDS: dict[str, tuple[str, Promise]] = {
    "": ("", pgettext_lazy("workers", "All")),
    "online": ("success", _("Online")),
    "drenando": ("draining", _("Draining")),
    "sem-sinal": ("failure", _("No heartbeat")),
    "encerrados": ("", _("Stopped in 24 h")),
}
LONGEST_ORDER = 500 * 9


@dataclass(frozen=True, slots=True)
class Cell:
    """A slot as a small square: `p` its progress in tenths or "x", `s` what is special, `gap` before a queue."""

    p: str
    s: str
    gap: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A worker of the screen. `state`: Online, Draining, Silent (its jobs may be lost) or Offline; ages in seconds."""

    id: UUID
    name: str
    host: str
    pid: int
    version: str
    state: str
    queues: Mapping[str, int]
    seen_ago: float
    seen_at: datetime
    started_ago: float
    cells: list[Cell]
    running: list[Running]
    returns_in: float | None
    paused: Sequence[str]
    problems: list[dict[str, Any]]
    figures: WorkerFigures

    @property
    def slots(self) -> int:
        """How many jobs it may run at once."""
        return sum(self.queues.values())

    @property
    def mark(self) -> str:
        """What its place in the page's order is called: the last letters of its id, which are random."""
        return self.id.hex[-8:]

    @property
    def alone(self) -> list["Row"]:
        """Only this one, where rows are listed."""
        return [self]


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab: what stands in the address, its mark ("" without), its word, how many rows it has."""

    key: str
    mark: str
    word: str
    count: int


@dataclass(frozen=True, slots=True)
class Fleet:
    """The rows of a tab, how many there are in each, and what belongs to no row. `fresh`: workers not in the rows."""

    rows: list[Row]
    counts: dict[str, int]
    strays: list[Running]
    fresh: int
    order: str

    @property
    def silent(self) -> int:
        """How many give no sign of life."""
        return self.counts["sem-sinal"]

    @property
    def tabs(self) -> list[Tab]:
        """The tabs in order."""
        return [Tab(key, mark, str(word), self.counts[key]) for key, (mark, word) in TAB_WORDS.items()]


NONE_ENDED = WorkerFigures(0, 0, 0, 0, 0)


def everyone() -> list[Row]:
    """Each worker that is there, those that need a person first, then by name; and those that stopped."""
    board = reads.board()
    figures = shared("worker_figures", 5.0, queries.worker_figures)
    present = [_present(worker, board.as_of, figures.get(worker.id, NONE_ENDED)) for worker in board.workers]
    known = {row.id for row in present}
    stopped = [w for w in reads.fleet() if w.state == "Offline" and w.id not in known]
    stopped.sort(key=lambda worker: worker.seen_ago)
    return present + [_stopped(worker, figures.get(worker.id, NONE_ENDED)) for worker in stopped]


def _present(worker: BoardWorker, as_of: datetime, figures: WorkerFigures) -> Row:
    state = "Silent" if worker.lost else worker.state
    return Row(
        worker.id, worker.name, worker.host, worker.pid, worker.version, state, worker.queues, worker.seen_ago,
        as_of - timedelta(seconds=worker.seen_ago), _minutes(worker.started_ago), _cells(worker), worker.running,
        worker.returns_in, sorted(worker.paused),
        [p for p in worker.problems if isinstance(p, dict)] if worker.live else [], figures,
    )  # fmt: skip


def _minutes(seconds: float) -> float:
    """To the minute: what says seconds would be another text, and another fragment, each second."""
    return seconds - seconds % 60 if seconds > 60 else seconds


def _stopped(worker: WorkerRow, figures: WorkerFigures) -> Row:
    up = (worker.seen_at - worker.started_at).total_seconds()
    queues = {name: slots for name, slots in worker.queues.items() if isinstance(slots, int)}
    return Row(
        worker.id, worker.name, worker.host, worker.pid, worker.version, "Offline", queues, worker.seen_ago,
        worker.seen_at, up, [], [], None, [], [], figures,
    )  # fmt: skip


def _cells(worker: BoardWorker) -> list[Cell]:
    cells: list[Cell] = []
    for seats in worker.seats().values():
        for place, seat in enumerate(seats):
            cells.append(Cell(*_shape(seat), gap=place == 0 and bool(cells)))
    return cells


def _shape(seat: Seat) -> tuple[str, str]:
    if seat.job is None:
        return "", "" if seat.accepts else "shut"
    if seat.job.returns_in is not None:
        return "", "lost"
    return str(seat.job.progress // 10) if seat.job.has_progress else "x", "slow" if seat.job.slow else ""


def fleet(tab: str, search: str, order: str) -> Fleet:
    """The rows of a tab that a text is found in. `order` is the one the page was loaded with ("" while it loads):
    then its workers stay where they are, whatever becomes of them, and new ones are only counted.
    """
    found = everyone()
    needle = search.casefold()
    matching = [row for row in found if not needle or _has(row, needle)]
    counts = {name: sum(row.state in states for row in matching) for name, states in TABS.items()}
    mine = [row for row in matching if row.state in TABS[tab]]
    fresh = 0
    if order:
        places = {mark: place for place, mark in enumerate(order[:LONGEST_ORDER].split("."))}
        fresh = sum(row.mark not in places for row in mine)
        mine = sorted((row for row in found if row.mark in places), key=lambda row: places[row.mark])
    else:
        order = ".".join(row.mark for row in mine) or "-"
    return Fleet(mine, counts, reads.board().strays, fresh, order)


def _has(row: Row, needle: str) -> bool:
    texts = (row.name, row.host, row.version, str(row.id), f"{row.host}:{row.pid}", *row.queues)
    return any(needle in text.casefold() for text in texts)
