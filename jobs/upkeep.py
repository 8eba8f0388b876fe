"""Retention of what is no job: metrics, known by their minute, ended sessions of browsers, acts over many."""

from django.contrib.sessions.models import Session
from django.db import connections
from django.db.models.functions import Now

# In batches by the primary key, so that no statement holds many rows for long.
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
BULK_KEPT = 7 * 86_400.0


def forget_bulk(*, age: float = BULK_KEPT, limit: int, using: str = "default") -> int:
    """Delete at most `limit` acts over many that ended more than `age` seconds ago; returns how many."""
    with connections[using].cursor() as cursor:
        cursor.execute(FORGET_BULK, {"age": float(age), "limit": limit})
        return cursor.rowcount


def forget_metrics(*, age: float, limit: int, using: str = "default") -> int:
    """Delete at most `limit` rows of metrics older than `age` seconds; returns how many."""
    with connections[using].cursor() as cursor:
        cursor.execute(FORGET_METRICS, {"age": float(age), "limit": limit})
        return cursor.rowcount


def forget_sessions(*, limit: int, using: str = "default") -> int:
    """Delete at most `limit` sessions that have ended; returns how many."""
    ended = Session.objects.using(using).filter(expire_date__lt=Now()).values("pk")[:limit]
    return Session.objects.using(using).filter(pk__in=ended).delete()[0]
