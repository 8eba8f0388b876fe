"""The rows of the demonstration while they are collected: jobs with their time lines, executions, lines, letters.

A job's story is told by its executions (`Turn`), one after the other; every row follows from them, as the verbs of
`jobs.transitions` would have written it.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from jobs.metrics import BUCKETS
from jobs.states import FINAL, FailureKind, Outcome, Reason, State, Waiting
from workers.demo.faults import Error
from workers.demo.kinds import Kind
from workers.demo.moments import Moments

Row = dict[str, Any]
Rows = dict[str, list[Row]]
MAX_ATTEMPTS = 5


@dataclass(frozen=True)
class Seat:
    """A slot of a worker: the worker's row, and the number of the slot within the queue."""

    worker: Row
    slot: int

    @property
    def label(self) -> Row:
        """What a claim copies onto the job."""
        return {name: self.worker[name] for name in ("name", "host", "pid", "version")}


@dataclass(frozen=True)
class Turn:
    """One execution: how long the job waited in its queue, how long it ran (s), what it became, and what came of that.

    `delay` is the wait as Scheduled that follows (s); `failure_kind` is set when it ended Failed.
    """

    seat: Seat
    wait: float
    duration: float
    outcome: Outcome = Outcome.SUCCEEDED
    to: State = State.SUCCEEDED
    reason: Reason = Reason.SUCCEEDED
    delay: float = 0.0
    error: Error | None = None
    failure_kind: FailureKind | None = None
    actor: str | None = None

    @property
    def lost(self) -> bool:
        return self.outcome is Outcome.WORKER_LOST


class Book:
    """Rows by table, and the metrics of what ended."""

    def __init__(self, moments: Moments, rng: Random) -> None:
        self.moments = moments
        self.rng = rng
        self._rows: Rows = defaultdict(list)
        self._minutes: dict[tuple[datetime, UUID, str, str], Row] = {}

    def turn_page(self, *, last: bool = False) -> Rows:
        """All that was told since the last page, by table, jobs by their ids; the last one has the metrics too."""
        if last:
            self._rows["metrics_minute"] = list(self._minutes.values())
        for table, column in (("jobs", "id"), ("job_state_changes", "at")):
            self._rows[table].sort(key=lambda row: row[column])
        page, self._rows = self._rows, defaultdict(list)
        return page

    def add(self, table: str, **row: Any) -> Row:
        """One row as it is."""
        self._rows[table].append(row)
        return row

    def job(self, kind: Kind, turns: Sequence[Turn] = (), *, waited: float = 0.0, **columns: Any) -> Row:
        """A job that has lived through `turns` and has been what it is now for `waited` seconds; returns its row."""
        past = sum(turn.wait + turn.duration + turn.delay for turn in turns)
        created = columns.pop("created_at", None) or self.moments.ago(waited + past)
        row: Row = {
            "id": self.moments.id_at(created), "type": kind.name, "queue": kind.queue,
            "payload": kind.payload(self.rng), "state": State.ENQUEUED, "priority": 0, "executions": 0,
            "attempts_used": 0, "max_attempts": MAX_ATTEMPTS, "lost_count": 0, "at_most_once": False,
            "timeout": 600.0, "progress": 0, "stage": "", "tags": [], "origin": "api", "owner": "key",
            "created_at": created, "enqueued_at": created, **columns,
        }  # fmt: skip
        self.step(row, None, State.ENQUEUED, created, Reason.CREATED, actor=row["owner"])
        at = created
        for turn in turns:
            at = self._turn(row, kind, turn, at)
        if row["state"] is State.ENQUEUED:
            row["dispatch_id"] = self.moments.token()
        self._rows["jobs"].append(row)
        return row

    def claim(self, row: Row, seat: Seat, elapsed: float, lease: float, *, progress: int, stage: str) -> None:
        """The job was claimed `elapsed` seconds ago and runs in that slot; `lease`: seconds from now."""
        claimed = self.moments.ago(elapsed)
        row.update(
            state=State.PROCESSING, executions=row["executions"] + 1, dispatch_id=self.moments.token(),
            claim_id=self.moments.token(), claimed_at=claimed, started_at=claimed, slot=seat.slot,
            worker_id=seat.worker["id"], worker_label=seat.label, lease_expires_at=self.moments.ago(-lease),
            progress=progress, stage=stage,
        )  # fmt: skip
        self.step(row, State.ENQUEUED, State.PROCESSING, claimed, Reason.CLAIMED, turn=seat)

    def step(
        self, row: Row, before: State | None, after: State, at: datetime, reason: Reason, *,
        turn: Seat | None = None, detail: str | None = None, actor: str | None = None,
    ) -> None:  # fmt: skip
        """A step of the job's time line."""
        self.add(
            "job_state_changes", job_id=row["id"], from_state=before, to_state=after, at=at, reason=reason,
            detail=detail, actor=actor, worker_id=turn.worker["id"] if turn else None,
            execution=row["executions"] if turn else None,
        )  # fmt: skip

    def lines(self, row: Row, *lines: tuple[float, str, str]) -> None:
        """Log lines of the job's last execution: (seconds after its start, level, text)."""
        last = row.get("started_at") or row["_started"]
        for number, (after, level, text) in enumerate(lines, 1):
            at = last + timedelta(seconds=after)
            self.add("job_logs", job_id=row["id"], execution=row["executions"], number=number, level=level,
                     message=text, at=at)  # fmt: skip

    def _turn(self, row: Row, kind: Kind, turn: Turn, at: datetime) -> datetime:
        started = at + timedelta(seconds=turn.wait)
        ended = started + timedelta(seconds=turn.duration)
        row["executions"] += 1
        row["_started"] = started
        self.step(row, State.ENQUEUED, State.PROCESSING, started, Reason.CLAIMED, turn=turn.seat)
        error = turn.error
        detail = error.message if error else row.get("cancel_reason")
        self.step(row, State.PROCESSING, turn.to, ended, turn.reason, turn=turn.seat, detail=detail, actor=turn.actor)
        self._attempt(row, turn, started, ended)
        self._measure(kind, turn, ended)
        row["attempts_used"] = min(row["max_attempts"], row["attempts_used"] + 1)
        row["lost_count"] += turn.lost
        self._becomes(row, kind, turn, ended)
        if turn.to is State.SCHEDULED and (resumed := ended + timedelta(seconds=turn.delay)) <= self.moments.now:
            row.update(state=State.ENQUEUED, waiting_for=None, run_at=None, enqueued_at=resumed)
            self.step(row, State.SCHEDULED, State.ENQUEUED, resumed, Reason.DUE)
            return resumed
        return ended

    def born_scheduled(self, row: Row) -> None:
        """The job whose row was told last was asked for a later instant: its time line begins so."""
        self._rows["job_state_changes"][-1].update(to_state=State.SCHEDULED)

    def go_on(self, row: Row, kind: Kind, turn: Turn, at: datetime) -> None:
        """One more execution of a job that waits since `at`."""
        self._turn(row, kind, turn, at)

    def _becomes(self, row: Row, kind: Kind, turn: Turn, ended: datetime) -> None:
        error = turn.error
        row["state"] = turn.to
        if error:
            row.update(error_type=error.kind, error_message=error.message)
        if turn.to is State.ENQUEUED:
            row["enqueued_at"] = ended
        elif turn.to is State.SCHEDULED:
            row.update(waiting_for=Waiting.RETRY, run_at=ended + timedelta(seconds=turn.delay))
        elif turn.to in FINAL:
            row["finished_at"] = ended
        if turn.to is State.SUCCEEDED:
            row.update(progress=100, stage=kind.stage(self.rng, 1.0), result=kind.result(self.rng))
            row.update(error_type=None, error_message=None)
        elif turn.to is State.FAILED:
            row.update(failure_kind=turn.failure_kind, progress=self.rng.randint(5, 60))

    def _attempt(self, row: Row, turn: Turn, started: datetime, ended: datetime) -> None:
        error, label = turn.error, turn.seat.label
        self.add(
            "job_attempts", job_id=row["id"], ordinal=row["executions"],
            attempt=min(row["max_attempts"], row["attempts_used"] + 1), tries=1, counted=True,
            dispatch_id=self.moments.token(), worker_id=turn.seat.worker["id"], worker_name=label["name"],
            worker_host=label["host"], worker_pid=label["pid"], worker_version=label["version"], slot=turn.seat.slot,
            started_at=started, ended_at=ended, duration=None if turn.lost else turn.duration, outcome=turn.outcome,
            error_type=error.kind if error else None, error_message=error.message if error else None,
            stack=error.stack if error else None,
        )  # fmt: skip

    def letter(self, row: Row, turn: Turn, *, resolved: str | None = None, after: float = 0.0) -> Row:
        """The dead letter of a job that ended Failed by `turn`; `resolved` how, `after` so many seconds."""
        error, ended = turn.error or Error("Error", "", "", ""), row["finished_at"]
        return self.add(
            "dead_letters", id=self.moments.id_at(ended), job_id=row["id"], type=row["type"], queue=row["queue"],
            failure_kind=turn.failure_kind, error_type=error.kind, error_message=error.message, stack=error.stack,
            fingerprint=error.fingerprint, attempts=row["executions"], created_at=ended, resolved_how=resolved,
            resolved_at=ended + timedelta(seconds=after) if resolved else None,
            resolved_by="key" if resolved else None,
        )  # fmt: skip

    def _measure(self, kind: Kind, turn: Turn, ended: datetime) -> None:
        minute = ended.replace(second=0, microsecond=0)
        key = (minute, turn.seat.worker["id"], kind.queue, kind.name)
        row = self._minutes.get(key)
        if row is None:
            row = self._minutes[key] = {
                "minute": minute, "worker_id": key[1], "queue": kind.queue, "type": kind.name, "succeeded": 0,
                "failed": 0, "retried": 0, "cancelled": 0, "lost": 0, "duration_sum": 0.0, "wait_sum": 0.0,
                "durations": [0] * (len(BUCKETS) + 1),
            }  # fmt: skip
        becomes = {State.SUCCEEDED: "succeeded", State.FAILED: "failed", State.CANCELLED: "cancelled"}
        row[becomes.get(turn.to, "retried")] += 1
        row["lost"] += turn.lost
        row["wait_sum"] += turn.wait
        if not turn.lost:
            row["duration_sum"] += turn.duration
            row["durations"][bisect_right(BUCKETS, turn.duration)] += 1
