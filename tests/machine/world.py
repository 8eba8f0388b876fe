"""What the tables say at one instant, and what changed between two of them."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

type Row = dict[str, Any]

JOBS = """
SELECT id, type, queue, state, priority, executions, attempts_used, max_attempts, lost_count, dispatch_id, admitted,
    claim_id, worker_id, lease_expires_at, waiting_for, gate, run_at, not_before, concurrency_key, concurrency_limit,
    unique_key, tags, progress, stage, started_at, cancel_requested_at, recurring_job_id, fired_for, enqueued_at,
    finished_at, failure_kind
FROM turno.jobs
"""
HISTORY = "SELECT id, job_id, from_state, to_state, reason FROM turno.job_state_changes ORDER BY id"
ATTEMPTS = "SELECT job_id, ordinal, dispatch_id, worker_id, outcome, counted, discarded_at FROM turno.job_attempts"
SLOTS = """
SELECT k.kind, k.value, s.slot, s.job_id, s.dispatch_id
FROM turno.concurrency_slots AS s JOIN turno.concurrency_keys AS k ON k.id = s.key_id ORDER BY 1, 2, 3
"""
PAUSES = "SELECT scope, value, id FROM turno.pauses WHERE until IS NULL OR until > now()"
LIMITS = "SELECT name, max_running FROM turno.job_types WHERE max_running IS NOT NULL"
RATES = "SELECT type, allowed FROM turno.rates"
CIRCUITS = "SELECT type, state, opened_at, probe_job_id FROM turno.circuits"
PARENTS = "SELECT child_id, parent_id, policy FROM turno.job_dependencies"
LETTERS = "SELECT id, job_id, resolved_at IS NULL AS pending FROM turno.dead_letters ORDER BY created_at, id"


@dataclass(frozen=True)
class World:
    """One snapshot."""

    now: datetime
    jobs: dict[UUID, Row]
    history: dict[UUID, list[Row]]
    attempts: dict[UUID, dict[int, Row]]
    slots: list[Row]
    pauses: set[tuple[str, str, int]]
    limits: dict[str, int]
    rates: dict[str, int]
    circuits: dict[str, Row]
    parents: list[Row]
    letters: list[Row]

    def holders(self, kind: str, value: str) -> list[Row]:
        """The slots of a key that are taken."""
        return [slot for slot in self.slots if (slot["kind"], slot["value"]) == (kind, value)]

    def of_state(self, *states: str) -> list[Row]:
        """The jobs in these states, in the order of their ids: that of their making."""
        return sorted((job for job in self.jobs.values() if job["state"] in states), key=lambda job: job["id"])

    def held_back(self, job: Row, since: "World") -> bool:
        """Whether a pause or an open breaker keeps the job from starting, and has done so since that world."""
        own = {("queue", job["queue"]), ("type", job["type"]), ("key", job["concurrency_key"])}
        own |= {("tag", tag) for tag in job["tags"]}
        if any((scope, value) in own for scope, value, _id in self.pauses & since.pauses):
            return True
        broken = self.circuits.get(job["type"])
        return broken is not None and broken["state"] == "open" and broken == since.circuits.get(job["type"])


EMPTY = World(datetime.min.replace(tzinfo=UTC), {}, {}, {}, [], set(), {}, {}, {}, [], [])


def look(watcher: psycopg.Connection) -> World:
    """The tables, in one snapshot."""
    with watcher.cursor(row_factory=dict_row) as cursor:

        def rows(sql: str) -> list[Row]:
            return cursor.execute(sql).fetchall()

        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        history: dict[UUID, list[Row]] = defaultdict(list)
        for row in rows(HISTORY):
            history[row["job_id"]].append(row)
        attempts: dict[UUID, dict[int, Row]] = defaultdict(dict)
        for row in rows(ATTEMPTS):
            attempts[row["job_id"]][row["ordinal"]] = row
        world = World(
            now=rows("SELECT clock_timestamp() AS now")[0]["now"],
            jobs={row["id"]: row for row in rows(JOBS)},
            history=history,
            attempts=attempts,
            slots=rows(SLOTS),
            pauses={(row["scope"], row["value"], row["id"]) for row in rows(PAUSES)},
            limits={row["name"]: row["max_running"] for row in rows(LIMITS)},
            rates={row["type"]: row["allowed"] for row in rows(RATES)},
            circuits={row["type"]: row for row in rows(CIRCUITS)},
            parents=rows(PARENTS),
            letters=rows(LETTERS),
        )
        cursor.execute("COMMIT")
    return world


@dataclass(frozen=True)
class Step:
    """One change of a job's state that a commit has written; `old` is the job before that commit (None: it was not)."""

    job: UUID
    was: str | None
    to: str
    reason: str
    old: Row | None
    new: Row = field(repr=False)


def steps(before: World, after: World) -> list[Step]:
    """The changes of state that are in the time line now and were not before, in their order."""
    made = []
    for id_, rows in after.history.items():
        known = {row["id"] for row in before.history.get(id_, ())}
        made += [(row, before.jobs.get(id_), after.jobs[id_]) for row in rows if row["id"] not in known]
    made.sort(key=lambda one: one[0]["id"])
    return [Step(r["job_id"], r["from_state"], r["to_state"], r["reason"], old, new) for r, old, new in made]
