"""The last 24 hours: what ended well, and what did not (a bump 20 minutes ago, four causes that are still pending)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from math import pi, sin
from random import Random

from jobs.states import Outcome, Reason, State
from workers.demo.book import Book, Row, Seat, Turn
from workers.demo.faults import CAUSES, COLUMN, LOST, MISSING, TIMEOUT, Error, Fault
from workers.demo.kinds import BY_NAME, Kind, any_kind

DAY = 1440  # minutes
LAST_HOUR = 0.25  # of a small demonstration, so that its chart has something to show
BUMP = range(14, 24)  # minutes ago
PENDING = 23, 9, 4, 1  # letters of each cause


def seats_of(workers: Sequence[Row]) -> dict[str, list[Seat]]:
    """The slots of these workers, by queue."""
    found: dict[str, list[Seat]] = {}
    for worker in workers:
        for queue, slots in worker["queues"].items():
            found.setdefault(queue, []).extend(Seat(worker, slot) for slot in range(1, slots + 1))
    return found


class Past:
    """Tells finished jobs into a book; `seats` by queue say who ran them."""

    def __init__(self, book: Book, workers: Sequence[Row], queues: dict[str, str]) -> None:
        self._book = book
        self._rng: Random = book.rng
        self._seats = seats_of(workers)
        self._queues = queues

    def kind(self, name: str) -> Kind:
        """The kind, in the queue that serves it here."""
        return placed(BY_NAME[name], self._queues)

    def seat(self, kind: Kind) -> Seat:
        """A slot that may have run it."""
        return self._rng.choice(self._seats[kind.queue])

    def finished(self, count: int) -> None:
        """So many jobs that ended well, most at once, some at the second attempt, a few cancelled."""
        hour = max(1460.0, count / 24) if count > 8000 else count * LAST_HOUR
        weights = [
            hour / 60 * (1.25 + sin(m / 17)) if m < 60 else (count - hour) / (DAY - 60) * _hour(m) for m in range(DAY)
        ]
        for minute in sorted(self._rng.choices(range(DAY), weights, k=count) if count else (), reverse=True):
            kind = placed(any_kind(self._rng), self._queues)
            self._ended_well(kind, minute * 60 + self._rng.uniform(0, 60))

    def _ended_well(self, kind: Kind, ago: float) -> None:
        turn = Turn(self.seat(kind), self._wait(), kind.duration(self._rng))
        turns = [turn]
        chance = self._rng.random()
        if chance < 0.012:
            error = Error("TransientJobError", "O servidor respondeu 503", "", "")
            failed = Turn(
                self.seat(kind), self._wait(), kind.duration(self._rng), Outcome.FAILED, State.SCHEDULED, Reason.RETRY,
                delay=round(self._rng.uniform(12, 18), 1), error=error,
            )  # fmt: skip
            turns = [failed, turn]
        elif chance < 0.016:
            columns = {"cancel_requested_by": "operacao", "cancel_reason": "pedido refeito"}
            stopped = Turn(
                turn.seat, turn.wait, turn.duration, Outcome.CANCELLED, State.CANCELLED, Reason.CANCELLED,
                actor="operacao",
            )  # fmt: skip
            self._book.job(kind, [stopped], waited=ago, cancel_requested_at=self._book.moments.ago(ago + 1), **columns)
            return
        self._book.job(kind, turns, waited=ago)

    def _wait(self) -> float:
        return round(self._rng.expovariate(1 / 0.8), 3)

    def failures(self) -> None:
        """The pending letters of four causes; others that people requeued or discarded."""
        rng = self._rng
        for fault, count in zip(CAUSES, PENDING, strict=True):
            for number in range(count):
                self._failed(fault, self._when(fault, number), with_lines=number == 0)
        for _ in range(24):
            self._failed(TIMEOUT, rng.uniform(BUMP.start, BUMP.stop) * 60, resolved="requeued")
        for _ in range(16):
            self._failed(rng.choice((TIMEOUT, COLUMN)), rng.uniform(2, 23) * 3600, resolved="requeued")
        for _ in range(18):
            self._failed(MISSING, rng.uniform(1, 23) * 3600, resolved="discarded")

    def _when(self, fault: Fault, number: int) -> float:
        """Seconds ago that the letter of this number came to be."""
        rng = self._rng
        if fault is TIMEOUT:
            return 130.0 if number == 0 else rng.uniform(BUMP.start, BUMP.stop) * 60
        if fault is MISSING:
            return 720 + number * rng.uniform(6500, 8200)
        if fault is COLUMN:
            return 3 * 3600 + number * rng.uniform(3000, 3900)
        return 2.2 * 3600

    def _failed(self, fault: Fault, ago: float, *, resolved: str | None = None, with_lines: bool = False) -> None:
        rng, kind = self._rng, self.kind(fault.type)
        error = fault.happen(rng)
        turns = []
        for number in range(1, fault.attempts):
            delay = round(15 * 2 ** (number - 1) * rng.uniform(0.8, 1.2), 1)
            reason = Reason.WORKER_LOST if fault is LOST else Reason.RETRY
            turns.append(
                Turn(
                    self.seat(kind), self._wait(), self._spent(fault), fault.outcome, State.SCHEDULED, reason,
                    delay=delay, error=error,
                )
            )  # fmt: skip
        last = Turn(
            self.seat(kind), self._wait(), self._spent(fault), fault.outcome, State.FAILED, fault.reason,
            error=error, failure_kind=fault.failure_kind,
        )  # fmt: skip
        row = self._book.job(kind, [*turns, last], waited=ago, origin="integracoes")
        if with_lines and fault is TIMEOUT:
            page = row["payload"]["pagina"]
            self._book.lines(
                row,
                (0.02, "info", f"Etapa: Página {page} de 40"),
                (0.34, "info", f"GET https://crm.example.com/api/clientes?page={page}"),
                (15.3, "warning", "Sem resposta em 15 s; nova tentativa imediata 1 de 2"),
                (29.9, "error", "Sem resposta em 30 s"),
            )
        self._book.letter(row, last, resolved=resolved, after=min(ago * 0.6, 900))
        if resolved == "requeued":
            self._requeued(row, kind, min(ago * 0.6, 900))

    def _spent(self, fault: Fault) -> float:
        return round(fault.seconds * self._rng.uniform(0.97, 1.05), 3)

    def _requeued(self, row: Row, kind: Kind, after: float) -> None:
        """A person gave it another life, and it ended well."""
        again = row["finished_at"] + timedelta(seconds=after)
        row.update(state=State.ENQUEUED, attempts_used=0, lost_count=0, failure_kind=None, finished_at=None)
        self._book.step(row, State.FAILED, State.ENQUEUED, again, Reason.REQUEUED, actor="key")
        row["enqueued_at"] = again
        self._book.go_on(row, kind, Turn(self.seat(kind), self._wait(), kind.duration(self._rng)), again)


def placed(kind: Kind, queues: dict[str, str]) -> Kind:
    """The same kind in another queue, where `queues` names one."""
    return replace(kind, queue=queues[kind.name]) if kind.name in queues else kind


def _hour(minute: int) -> float:
    """How busy that minute of the day was, around 1."""
    return 1 + 0.5 * sin(2 * pi * minute / DAY)
