"""Rows known by their age: minutes of metrics, acts over many, ended sessions, what people did in the admin."""

from jobs import quick
from jobs.metrics import RETENTION

# In batches by the primary key, so that no statement holds many rows for long; no one waits for another.
FORGET_METRICS = """
DELETE FROM turno.metrics_minute WHERE id = ANY (ARRAY(
    SELECT id FROM turno.metrics_minute
    WHERE minute < now() - %(age)s::float8 * interval '1 second'
    ORDER BY minute LIMIT %(limit)s FOR UPDATE SKIP LOCKED
))
"""
# Also those that nobody took over: whoever asked for them has long gone.
FORGET_BULK = """
DELETE FROM turno.bulk_runs WHERE id = ANY (ARRAY(
    SELECT id FROM turno.bulk_runs
    WHERE created_at < now() - %(age)s::float8 * interval '1 second'
      AND COALESCE(finished_at, beat_at, created_at) < now() - %(age)s::float8 * interval '1 second'
    ORDER BY created_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
))
"""
FORGET_SESSIONS = """
DELETE FROM django_session WHERE session_key = ANY (ARRAY(
    SELECT session_key FROM django_session
    WHERE expire_date < now() ORDER BY expire_date LIMIT %(limit)s FOR UPDATE SKIP LOCKED
))
"""
# Its rows are found by their key, which grows with their time: it has no other index.
FORGET_ADMIN_LOG = """
DELETE FROM django_admin_log WHERE id = ANY (ARRAY(
    SELECT id FROM django_admin_log
    WHERE id = ANY (ARRAY(SELECT id FROM django_admin_log ORDER BY id LIMIT %(limit)s))
      AND action_time < now() - %(age)s::float8 * interval '1 second'
    ORDER BY id FOR UPDATE SKIP LOCKED
))
"""
COUNT = """
INSERT INTO turno.counters AS c (name, value) VALUES (%(name)s, %(rows)s)
ON CONFLICT (name) DO UPDATE SET value = c.value + EXCLUDED.value
"""
BULK_KEPT = 7 * 86_400.0


def forget_metrics(*, age: float, limit: int, using: str = "default") -> int:
    """Delete at most `limit` rows of metrics older than `age` seconds; returns how many."""
    return _forget(FORGET_METRICS, using, age, limit)


def forget_bulk(*, age: float = BULK_KEPT, limit: int, using: str = "default") -> int:
    """Delete at most `limit` acts over many that ended more than `age` seconds ago; returns how many."""
    return _forget(FORGET_BULK, using, age, limit)


def forget_sessions(*, limit: int, using: str = "default") -> int:
    """Delete at most `limit` sessions that have ended; returns how many."""
    return _forget(FORGET_SESSIONS, using, 0.0, limit)


def forget_admin_log(*, age: float, limit: int, using: str = "default") -> int:
    """Delete at most `limit` lines, older than `age` seconds, of what people did in the admin; returns how many."""
    return _forget(FORGET_ADMIN_LOG, using, age, limit)


def _forget(statement: str, using: str, age: float, limit: int) -> int:
    with quick.batch(using) as cursor:
        cursor.execute(statement, {"age": float(age), "limit": limit})
        return cursor.rowcount


def count(what: str, rows: int, *, using: str = "default") -> None:
    """Add to the counter of what retention has done since the database was made; its own transaction."""
    with quick.batch(using) as cursor:
        cursor.execute(COUNT, {"name": RETENTION + what, "rows": rows})
