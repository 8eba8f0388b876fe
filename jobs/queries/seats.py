"""Jobs in the slots of a worker, and what a queue's slots add up to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

MOST = 1000  # what the configuration allows a queue; a row that says more is not believed


class Running(NamedTuple):  # thousands are made a second
    """A job in the state Processing. `elapsed` and `returns_in` in seconds.

    `slot` counts from 1 within the queue, 0 where none is known. `started` is False from the claim to the start.
    `returns_in` is set where its worker is lost: when recovery may give the job back (0: at any moment). `slow`: it
    runs longer than 95 % of its type. `worker` is the name that the claim wrote down.
    """

    id: UUID
    type: str
    queue: str
    slot: int
    stage: str
    progress: int
    elapsed: float
    started: bool
    returns_in: float | None
    cancelling: bool
    attempt: int
    lost_count: int
    worker: str | None
    slow: bool

    @property
    def has_progress(self) -> bool:
        """It said how far it is; one that never did and one at the very beginning look alike."""
        return self.progress > 0


@dataclass(frozen=True, slots=True)
class Seat:
    """A slot of a worker: its number within the queue (also beyond the queue's size), what runs there, and whether
    a free one takes work."""

    number: int
    job: Running | None
    accepts: bool


@dataclass(frozen=True, slots=True)
class QueueUse:
    """The slots of a queue over all workers. `free` ones accept work now; `workers` are the live ones that serve it."""

    busy: int
    capacity: int
    free: int
    workers: int

    def plus(self, other: "QueueUse") -> "QueueUse":
        """Both together."""
        return QueueUse(
            self.busy + other.busy, self.capacity + other.capacity, self.free + other.free, self.workers + other.workers
        )


def placed(slots: int, jobs: Sequence[Running]) -> tuple[dict[int, Running], list[Running]]:
    """The jobs by their slot from 1 to `slots`, and those that have none of these.

    A job has no slot of its own when its number is unknown, beyond the queue's size (the worker had more slots when it
    took it), or taken by one before it.
    """
    found: dict[int, Running] = {}
    over = []
    for job in jobs:
        if 1 <= job.slot <= slots and job.slot not in found:
            found[job.slot] = job
        else:
            over.append(job)
    return found, over


def seated(slots: int, jobs: Sequence[Running], *, accepts: bool) -> list[Seat]:
    """Seats 1 to `slots`, and one more for each job that has none of those: no job is lost from sight."""
    found, over = placed(slots, jobs)
    over.sort(key=lambda job: (job.slot, job.id))
    seats = [Seat(number, found.get(number), accepts) for number in range(1, slots + 1)]
    return seats + [Seat(slots + n, job, False) for n, job in enumerate(over, 1)]
