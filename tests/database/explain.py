"""Reading plans: which indexes a statement uses, on tables that are large enough for the planner to want them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db import connections
from django.db.models import QuerySet

Plan = dict[str, Any]
Params = Sequence[Any] | Mapping[str, Any]


def plan_of(sql: str, params: Params = (), *, using: str = "default") -> Plan:
    """The plan of a statement, which is planned and not run; parameters are bound as the application binds them."""
    with connections[using].cursor() as cursor:
        cursor.execute("EXPLAIN (FORMAT JSON) " + sql, params)
        answer = cursor.fetchone()[0]
    return (json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"]


def plan_of_queryset(queryset: QuerySet) -> Plan:
    """The plan of what the ORM would send."""
    sql, params = queryset.query.sql_with_params()
    return plan_of(sql, params, using=queryset.db)


def nodes(plan: Plan) -> Iterator[Plan]:
    """The plan's node and every one below it."""
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


def indexes_used(plan: Plan) -> set[str]:
    """The names of the indexes that the plan reads."""
    return {node["Index Name"] for node in nodes(plan) if "Index Name" in node}


def tables_scanned(plan: Plan) -> set[str]:
    """The tables that the plan reads from end to end."""
    return {node["Relation Name"] for node in nodes(plan) if node["Node Type"] == "Seq Scan"}


def sorts(plan: Plan) -> bool:
    """Whether the plan sorts: an index that serves a list gives its order too."""
    return any("Sort" in node["Node Type"] for node in nodes(plan))


GENERATED = """
    INSERT INTO turno.jobs (id, type, queue, payload, state, priority, dispatch_id, enqueued_at, worker_id, claim_id,
        claimed_at, lease_expires_at, waiting_for, gate, run_at, finished_at, failure_kind, created_at)
    SELECT gen_random_uuid(), 'type.' || n %% 40, 'queue-' || n %% 20,
        jsonb_build_object('text', repeat('x', 1500)), state, n %% 21 - 10,
        CASE WHEN state IN ('Enqueued', 'Processing') THEN gen_random_uuid() END,
        CASE WHEN state = 'Enqueued' THEN made END,
        CASE WHEN state = 'Processing' THEN gen_random_uuid() END,
        CASE WHEN state = 'Processing' THEN gen_random_uuid() END,
        CASE WHEN state = 'Processing' THEN made END,
        CASE WHEN state = 'Processing' THEN made + interval '1 minute' END,
        CASE WHEN state = 'Scheduled' THEN CASE WHEN n %% 2 = 0 THEN 'due' ELSE 'concurrency_key' END END,
        CASE WHEN state = 'Scheduled' AND n %% 2 = 1 THEN 'key-' || n %% 30 END,
        CASE WHEN state = 'Scheduled' AND n %% 2 = 0 THEN made + interval '1 hour' END,
        CASE WHEN state IN ('Succeeded', 'Failed', 'Cancelled') THEN made END,
        CASE WHEN state = 'Failed' THEN 'error' END,
        made
    FROM (
        SELECT n, now() - n * interval '1 second' AS made,
            CASE WHEN n %% 20 < 14 THEN 'Succeeded'
                 ELSE (ARRAY['Scheduled', 'Scheduled', 'Enqueued', 'Enqueued', 'Failed', 'Cancelled'])[n %% 20 - 13]
            END AS shape
        FROM generate_series(1, %(count)s) AS n
    ) AS numbered, LATERAL (SELECT CASE WHEN n %% 400 = 0 THEN 'Processing' ELSE shape END AS state) AS stated
"""


def generate_jobs(count: int = 6000, *, using: str = "default") -> None:
    """So many jobs, mostly finished ones, of all states, 40 types and 20 queues, and fresh statistics about them.

    They are as wide as real ones (pages are what a plan costs), and the only ones, in files of their own: in the old
    ones lies what earlier tests have rolled back.
    """
    with connections[using].cursor() as cursor:
        cursor.execute("TRUNCATE turno.jobs CASCADE")
        cursor.execute(GENERATED, {"count": count})
        cursor.execute("ANALYZE turno.jobs")
