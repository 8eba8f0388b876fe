"""What was found is kept for two days, one row a look; of storms the last report alone."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from django.db import connections, transaction

from jobs.invariants.base import Finding
from jobs.invariants.checking import Checked

# `since`: of what the look before had found already, what that said.
KEEP = """
WITH before AS MATERIALIZED (
    SELECT id, found FROM turno.promise_checks ORDER BY id DESC LIMIT 1
), old AS (
    DELETE FROM turno.promise_checks WHERE at < now() - interval '2 days'
), kept AS (
    INSERT INTO turno.promise_checks (at, seconds, attended, found, unanswered)
    SELECT now(), %(seconds)s::float8, %(attended)s::bool, COALESCE((
        SELECT jsonb_agg(f.one || jsonb_build_object('since', COALESCE((
            SELECT b.one -> 'since' FROM before CROSS JOIN jsonb_array_elements(before.found) AS b(one)
            WHERE b.one ->> 'name' = f.one ->> 'name' LIMIT 1
        ), to_jsonb(now()))) ORDER BY f.place)
        FROM jsonb_array_elements(%(found)s::jsonb) WITH ORDINALITY AS f(one, place)
    ), '[]'), %(unanswered)s::jsonb
)
SELECT b.one ->> 'name' FROM before CROSS JOIN jsonb_array_elements(before.found) AS b(one)
"""
KEEP_STORM = """
INSERT INTO turno.storm_reports AS s (id, at, place, seed, seconds, jobs, faults, found)
VALUES (1, now(), %(place)s, %(seed)s::bigint, %(seconds)s::float8, %(jobs)s::int, %(faults)s::jsonb, %(found)s::jsonb)
ON CONFLICT (id) DO UPDATE SET at = EXCLUDED.at, place = EXCLUDED.place, seed = EXCLUDED.seed,
    seconds = EXCLUDED.seconds, jobs = EXCLUDED.jobs, faults = EXCLUDED.faults, found = EXCLUDED.found
"""


def told(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Findings as they are kept: without their words, which depend on the reader."""
    return [{"name": f.name, "count": f.count, "more": f.more, "examples": list(f.examples)} for f in findings]


def keep(checked: Checked, *, using: str = "default") -> frozenset[str]:
    """Store a look; returns the names that the look before it had found."""
    params = {
        "seconds": checked.seconds,
        "attended": checked.attended,
        "found": orjson.dumps(told(checked.findings)).decode(),
        "unanswered": orjson.dumps(checked.unanswered).decode(),
    }
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        cursor.execute(KEEP, params)
        return frozenset(name for (name,) in cursor.fetchall())


def keep_storm(
    *,
    place: str,
    seed: int,
    seconds: float,
    jobs: int,
    faults: Mapping[str, int],
    findings: Iterable[Finding] = (),
    using: str = "default",
) -> None:
    """Store the report of a storm, in the place of the one before: where it was (`place`), for how long it lasted, how
    many `jobs` were in it, the `faults` by kind, and what was broken afterwards."""
    params = {
        "place": place,
        "seed": seed,
        "seconds": seconds,
        "jobs": jobs,
        "faults": orjson.dumps(dict(faults)).decode(),
        "found": orjson.dumps(told(findings)).decode(),
    }
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        cursor.execute(KEEP_STORM, params)
