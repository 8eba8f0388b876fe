"""Where everything stands on the shift board: rows in order, queues side by side, pools of workers that are alike."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jobs.queries import BoardWorker, Depth, Seat, WorkerRow

DETAIL, MOSAIC = "detalhe", "mosaico"
# Above either of these the board shows cells and not cards.
MOST_COLUMNS, MOST_ROWS = 10, 12
NUMBERS = re.compile(r"(\d+)")
# What ends a worker's name: its number, the one of its pod, what separates them.
TAIL = re.compile(r"[-_.:#\s]*\d*$")
SHORTEST_NAME = 2


@dataclass(frozen=True, slots=True)
class Row:
    """A worker on the board and its slots by queue. `gone`: it left the board since the page was loaded; Offline then
    says that it ended by itself, Silent that nobody knows."""

    worker: BoardWorker
    seats: dict[str, list[Seat]]
    gone: bool = False

    @property
    def trouble(self) -> bool:
        """A person may want to look: it is lost, leaving or gone."""
        return self.gone or self.worker.state != "Online"

    @property
    def slots(self) -> int:
        """How many cells it has."""
        return sum(len(seats) for seats in self.seats.values())

    @property
    def capacity(self) -> int:
        """Its slots while it is online, only the busy ones else."""
        return self.slots if self.worker.state == "Online" else self.worker.busy


@dataclass(frozen=True, slots=True)
class Lane:
    """A queue as a group of columns: as many as the worker with the most slots of it has."""

    queue: str
    width: int
    depth: Depth | None


@dataclass(frozen=True, slots=True)
class Pool:
    """Workers with the same queues and as many slots of each."""

    name: str
    queues: tuple[tuple[str, int], ...]
    rows: tuple[Row, ...]

    @property
    def slots(self) -> int:
        """How many slots each of its workers has."""
        return sum(slots for _, slots in self.queues)

    @property
    def busy(self) -> int:
        """How many jobs its workers run."""
        return sum(row.worker.busy for row in self.rows)

    @property
    def capacity(self) -> int:
        """Slots of those that are online, busy ones of the others."""
        return sum(row.capacity for row in self.rows)


def natural(name: str) -> list[tuple[int, int, str]]:
    """A sort key that puts worker-2 before worker-10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in NUMBERS.split(name) if part]


def _rank(worker: BoardWorker) -> int:
    return 0 if worker.lost else 1 if worker.state == "Draining" else 2


def rows(workers: Iterable[BoardWorker]) -> list[Row]:
    """The rows in the order of the board: no sign of life, draining, then by name."""
    ordered = sorted(workers, key=lambda worker: (_rank(worker), natural(worker.name), worker.id))
    return [Row(worker, worker.seats()) for worker in ordered]


def ended(fleet: Iterable[WorkerRow]) -> list[Row]:
    """Rows of workers that are no longer on the board, from the list of all: without jobs, and taking none."""
    found = []
    for one in fleet:
        if one.live:
            continue
        state = "Silent" if one.stopped_at is None else "Offline"
        queues = {queue: slots for queue, slots in one.queues.items() if type(slots) is int and slots > 0}
        worker = BoardWorker(
            one.id, one.name, one.host, one.pid, one.version, queues, [], state, one.seen_ago, 0.0, [], frozenset()
        )
        found.append(Row(worker, worker.seats(), gone=True))
    return found


def lanes(shown: Sequence[Row], depths: Iterable[Depth] = ()) -> list[Lane]:
    """The columns that these rows need, queues by name."""
    widths: dict[str, int] = {}
    for row in shown:
        for queue, slots in row.worker.queues.items():
            if slots > 0:
                widths[queue] = max(widths.get(queue, 0), slots)
    known = {depth.queue: depth for depth in depths}
    return [Lane(queue, width, known.get(queue)) for queue, width in sorted(widths.items())]


def automatic(shown: Sequence[Row]) -> str:
    """The density that fits: cards for a few, cells for many."""
    columns = sum(lane.width for lane in lanes(shown))
    return MOSAIC if columns > MOST_COLUMNS or len(shown) > MOST_ROWS else DETAIL


def stem(name: str) -> str:
    """What a name has in common with its siblings': "geral" of geral-17, "crawlers" of crawlers-7f9-2."""
    return TAIL.sub("", name)


def _pool_name(queues: tuple[tuple[str, int], ...], members: Sequence[Row]) -> str:
    """The stem of its workers' names where they share one, else their queues."""
    common = stem(members[0].worker.name)
    for row in members[1:]:
        other = stem(row.worker.name)
        while common and not other.startswith(common):
            common = common[:-1]
    if any(stem(row.worker.name) != common for row in members):  # only the beginning is shared: up to a separator
        common = TAIL.sub("", common.rpartition("-")[0])
        common = "" if NUMBERS.search(common) else common
    if len(common) >= SHORTEST_NAME:
        return common[:1].upper() + common[1:]
    return ", ".join(queue for queue, _ in queues) or "–"


def pools(shown: Sequence[Row]) -> list[Pool]:
    """The rows by pool, the largest pool first; rows keep their order."""
    members: dict[tuple[tuple[str, int], ...], list[Row]] = defaultdict(list)
    for row in shown:
        members[tuple(sorted((queue, n) for queue, n in row.worker.queues.items() if n > 0))].append(row)
    names = {queues: _pool_name(queues, part) for queues, part in members.items()}
    taken = list(names.values())
    for queues, name in names.items():
        if taken.count(name) > 1:  # two kinds of "Geral": told apart by what they serve
            names[queues] = f"{name} ({', '.join(f'{queue} {n}' for queue, n in queues)})"
    found = [Pool(names[queues], queues, tuple(part)) for queues, part in members.items()]
    return sorted(found, key=lambda pool: (-len(pool.rows), pool.name, pool.queues))
