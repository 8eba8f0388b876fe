"""The rows of workers: registration, sign of life, end. Liveness of a job never depends on them (law 3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from django.db import connections

from jobs import quick

# A worker that was believed dead and beats again (it was frozen) is Online again: the row says what is true now.
BEAT = """
INSERT INTO turno.workers (id, name, host, boot_id, pid_namespace, pid, pid_started, version, queues, types, state,
    problems)
VALUES (%(id)s::uuid, %(name)s, %(host)s, %(boot_id)s, %(pid_namespace)s, %(pid)s, %(pid_started)s, %(version)s,
    %(queues)s::jsonb, %(types)s::text[], %(state)s, %(problems)s::jsonb)
ON CONFLICT (id) DO UPDATE
SET seen_at = now(), state = EXCLUDED.state, problems = EXCLUDED.problems, queues = EXCLUDED.queues,
    types = EXCLUDED.types, stopped_at = NULL, settled_at = NULL
"""
SERVE = """
INSERT INTO turno.job_types (name, last_served_at)
SELECT name, now() FROM unnest(%(types)s::text[]) AS t(name) ORDER BY name
ON CONFLICT (name) DO UPDATE SET last_served_at = EXCLUDED.last_served_at
WHERE turno.job_types.last_served_at IS NULL OR turno.job_types.last_served_at < now() - interval '1 minute'
"""
LEAVE = "UPDATE turno.workers SET state = 'Offline', stopped_at = now() WHERE id = %(id)s::uuid AND state <> 'Offline'"
SETTLE = """
UPDATE turno.workers
SET state = 'Offline', stopped_at = COALESCE(stopped_at, now()), settled_at = COALESCE(settled_at, now())
WHERE id = %(id)s::uuid AND (state <> 'Offline' OR settled_at IS NULL)
"""
SWEEP = """
WITH silent AS (
    SELECT id FROM turno.workers
    WHERE state <> 'Offline' AND seen_at < now() - %(age)s::float8 * interval '1 second'
    ORDER BY id FOR UPDATE SKIP LOCKED
)
UPDATE turno.workers AS w SET state = 'Offline', stopped_at = now() FROM silent WHERE w.id = silent.id
"""
# Whoever owns Processing jobs though Offline was found silent, or ended without giving them back, or its last claim was
# committed when it was dead.
NEIGHBOURS = """
WITH near AS (
    SELECT * FROM turno.workers
    WHERE state <> 'Offline' AND boot_id = %(boot_id)s AND pid_namespace = %(pid_namespace)s
    UNION ALL
    SELECT * FROM turno.workers
    WHERE state = 'Offline' AND boot_id = %(boot_id)s AND pid_namespace = %(pid_namespace)s
      AND id IN (SELECT worker_id FROM turno.jobs WHERE state = 'Processing')
)
SELECT id, name, pid, pid_started,
       state = 'Online' OR settled_at IS NOT NULL
         OR GREATEST(seen_at, stopped_at) < now() - %(ending_for)s::float8 * interval '1 second',
       settled_at IS NOT NULL
FROM near ORDER BY id
"""
FORGET = """
DELETE FROM turno.workers WHERE id = ANY (ARRAY(
    SELECT id FROM turno.workers
    WHERE state = 'Offline' AND COALESCE(stopped_at, seen_at) < now() - %(age)s::float8 * interval '1 second'
    ORDER BY seen_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
))
"""


@dataclass(frozen=True, slots=True)
class Presence:
    """A worker as it registers: its id (new at each start), name, identity of the process, and what it serves."""

    id: UUID
    name: str
    host: str
    boot_id: str
    pid_namespace: str
    pid: int
    pid_started: str
    version: str
    queues: Mapping[str, int]
    types: Sequence[str]

    @property
    def label(self) -> dict[str, Any]:
        """What a claim copies onto the job, for people."""
        return {"name": self.name, "host": self.host, "pid": self.pid, "version": self.version}


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A worker that registered from the same boot and pid namespace, and is not known to be done.

    `due` False: it was ending in order a moment ago, and what it left is still its supervisor's to give back.
    `settled`: it was proven dead once already, and owned nothing then.
    """

    id: UUID
    name: str
    pid: int
    pid_started: str
    due: bool
    settled: bool


def beat(
    presence: Presence, *, state: str = "Online", problems: Sequence[Mapping[str, str]] = (), using: str = "default"
) -> None:
    """Register the worker, or renew its sign of life. `problems` are what a person should know about it."""
    params = {
        "id": presence.id,
        "name": presence.name,
        "host": presence.host,
        "boot_id": presence.boot_id,
        "pid_namespace": presence.pid_namespace,
        "pid": presence.pid,
        "pid_started": presence.pid_started,
        "version": presence.version,
        "queues": orjson.dumps(dict(presence.queues)).decode(),
        "types": list(presence.types),
        "state": state,
        "problems": orjson.dumps(list(problems)).decode(),
    }
    with connections[using].cursor() as cursor:
        cursor.execute(BEAT, params)
        cursor.execute(SERVE, {"types": list(presence.types)})


def leave(worker_id: UUID, *, using: str = "default") -> None:
    """Mark the worker Offline: it stopped in order."""
    with connections[using].cursor() as cursor:
        cursor.execute(LEAVE, {"id": worker_id})


def settle(worker_id: UUID, *, using: str = "default") -> None:
    """Mark the worker Offline for good: it is proven dead, and after that it was seen to own no running job.

    What it owns later was claimed by a commit whose answer it did not live to read: no handler of that was started.
    """
    with connections[using].cursor() as cursor:
        cursor.execute(SETTLE, {"id": worker_id})


def sweep(*, silent_for: float, using: str = "default") -> int:
    """Mark workers Offline that gave no sign of life for `silent_for` seconds; returns how many."""
    with connections[using].cursor() as cursor:
        cursor.execute(SWEEP, {"age": float(silent_for)})
        return cursor.rowcount


def forget(*, offline_for: float, limit: int = 500, using: str = "default") -> int:
    """Delete at most `limit` rows of workers that have been Offline for `offline_for` seconds; touches no job."""
    with quick.batch(using) as cursor:
        cursor.execute(FORGET, {"age": float(offline_for), "limit": limit})
        return cursor.rowcount


def neighbours(boot_id: str, pid_namespace: str, *, ending_for: float, using: str = "default") -> list[Neighbour]:
    """The workers of this boot and pid namespace that are not Offline, or own running jobs all the same.

    One that is ending, or did, is due `ending_for` seconds after its last sign of life.
    """
    params = {"boot_id": boot_id, "pid_namespace": pid_namespace, "ending_for": float(ending_for)}
    with connections[using].cursor() as cursor:
        cursor.execute(NEIGHBOURS, params)
        return [Neighbour(*row) for row in cursor.fetchall()]
