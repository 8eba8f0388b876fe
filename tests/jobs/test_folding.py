"""Metrics become coarser with age, and no figure that anybody is shown changes by it.

All within one transaction: what its figures look back from is one instant.
"""

from datetime import timedelta
from random import Random
from uuid import UUID

import pytest
from django.db import connections

from jobs import queries, upkeep
from jobs.metrics import BUCKETS
from jobs.queries.depthhistory import depth_history
from jobs.queries.durations import usual_duration
from tests.database.explain import indexes_used, tables_scanned
from tests.transitions import rows
from tests.transitions.rows import Sql, execute, select
from tests.transitions.test_plans import plan_with_values, plan_without_values

pytestmark = pytest.mark.django_db
HOUR = 3600.0
COUNTS = ("succeeded", "failed", "retried", "cancelled", "lost")
WORKERS = [UUID(int=n) for n in range(1, 4)]
HISTOGRAM = ", ".join(f"sum(durations[{n}])" for n in range(1, len(BUCKETS) + 2))
BY_HOUR = f"""
SELECT date_trunc('hour', minute, 'UTC') AS hour, queue, type, sum(succeeded) AS succeeded, sum(failed) AS failed,
    sum(retried) AS retried, sum(cancelled) AS cancelled, sum(lost) AS lost,
    round(sum(duration_sum)::numeric, 6) AS ran, round(sum(wait_sum)::numeric, 6) AS waited, ARRAY[{HISTOGRAM}] AS spans
FROM turno.metrics_minute GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
# Of the last two days: what a chart by the minute shows.
BY_MINUTE = """
SELECT minute, queue, type, sum(succeeded) AS succeeded, sum(failed) AS failed FROM turno.metrics_minute
WHERE minute >= now() - interval '48 hours' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


def put(age, **columns):
    """A row of the minute `age` seconds ago; nothing where there is one already."""
    row = {
        "minute": Sql(f"date_trunc('minute', now() - {float(age)} * interval '1 second')"),
        "queue": "q",
        "type": "t",
    }
    row |= {"worker_id": None, "durations": [0] * (len(BUCKETS) + 1)} | columns
    values = [str(value) if isinstance(value, Sql) else "%s" for value in row.values()]
    execute(
        f"INSERT INTO turno.metrics_minute ({', '.join(row)}) VALUES ({', '.join(values)}) ON CONFLICT DO NOTHING",
        *(value for value in row.values() if not isinstance(value, Sql)),
    )


def scatter(rng, many):
    spans = (HOUR, 3 * HOUR, 24 * HOUR, 50 * HOUR, 30 * 24 * HOUR)
    for _ in range(many):
        put(
            rng.choice([rng.random() * rng.choice(spans), 48 * HOUR + rng.randint(-2, 62) * 60, 2 * HOUR]),
            queue=rng.choice("ab"),
            type=rng.choice("xy"),
            worker_id=rng.choice([None, *WORKERS]),
            duration_sum=rng.random() * 100,
            wait_sum=rng.random(),
            durations=[rng.randint(0, 9) for _ in range(len(BUCKETS) + 1)],
            **{name: rng.randint(0, 9) for name in COUNTS},
        )


def figures():
    """Everything that is read from these rows, at the finest that it is shown."""
    past = queries.past()
    means = [
        (round(span.mean_duration or 0, 6), round(span.mean_wait or 0, 6))
        for span in (past.last_hour, past.last_24_hours)
    ]
    ended = [[getattr(span, name) for name in COUNTS] for span in (past.last_hour, past.last_24_hours)]
    return {
        "ended": ended,
        "means": means,
        "p95": (past.p95_duration, past.p95_beyond),
        "usual": (usual_duration(), queries.durations()),
        "chart": queries.rhythm(1440),
        "workers": queries.worker_figures(),
        "queues": [(row.queue, row.history, row.per_minute) for row in queries.queues(history=True)],
        "depths": {queue: [round(n, 6) for n in line] for queue, line in depth_history({"a": 3}).items()},
        "hours": select(BY_HOUR),
        "minutes": select(BY_MINUTE),
    }


@pytest.mark.parametrize("seed", range(2))
def test_every_figure_is_the_same_before_and_after_whatever_was_folded_when(seed):
    rng = Random(seed)
    for _ in range(2):  # what is folded already is met by rows that come late
        scatter(rng, 150)
        before = figures()
        for _ in range(4):
            limit = rng.choice([1, 3, 20, 500])
            rng.choice([upkeep.fold_workers, upkeep.fold_hours])(limit=limit)
            assert figures() == before
    while upkeep.fold_workers(limit=100) + upkeep.fold_hours(limit=100):
        pass
    assert figures() == before


def test_after_it_no_worker_is_told_from_another_and_the_old_ones_are_hours():
    scatter(Random(7), 300)
    while upkeep.fold_workers(limit=50) + upkeep.fold_hours(limit=50):
        pass
    [now] = select("SELECT now() AS now, date_trunc('hour', now() - interval '48 hours', 'UTC') AS hours")
    for row in rows.metrics():
        if row["minute"] < now["hours"]:
            assert (row["minute"].minute, row["worker_id"]) == (0, None)
        elif now["hours"] + timedelta(hours=1) <= row["minute"] < now["now"] - timedelta(hours=2):
            assert row["worker_id"] is None
    assert any(row["worker_id"] for row in rows.metrics())


def test_what_is_young_is_left_alone():
    put(1.9 * HOUR, worker_id=WORKERS[0])
    put(47 * HOUR, worker_id=None)
    assert (upkeep.fold_workers(limit=9), upkeep.fold_hours(limit=9)) == (0, 0)


def test_only_so_many_are_folded_at_once_and_the_oldest_first():
    for minutes in range(5):
        put(3 * HOUR + minutes * 60, worker_id=WORKERS[0], succeeded=1)
    assert [upkeep.fold_workers(limit=3), upkeep.fold_workers(limit=3), upkeep.fold_workers(limit=3)] == [3, 2, 0]
    assert [row["succeeded"] for row in rows.metrics()] == [1] * 5


def test_a_count_beyond_what_a_row_holds_stops_no_other():
    for worker in WORKERS:
        put(3 * HOUR, worker_id=worker, succeeded=2**31 - 1, durations=[2**31 - 1] * (len(BUCKETS) + 1))
        put(60 * HOUR, worker_id=worker, failed=1)
    assert upkeep.fold_workers(limit=9) == upkeep.fold_hours(limit=9) == 3
    assert sorted((row["succeeded"], row["failed"]) for row in rows.metrics()) == [(0, 3), (2**31 - 1, 0)]


def test_rows_of_another_histogram_are_added_up_as_far_as_they_go():
    """The buckets may become more with a version."""
    put(3 * HOUR, worker_id=WORKERS[0], durations=[1, 2])
    put(3 * HOUR, worker_id=WORKERS[1], durations=[1] * (len(BUCKETS) + 1))
    assert upkeep.fold_workers(limit=9) == 2
    assert rows.metrics()[0]["durations"] == [2, 3] + [1] * (len(BUCKETS) - 1)


@pytest.mark.parametrize("look", [plan_with_values, plan_without_values], ids=["with its values", "prepared"])
@pytest.mark.parametrize(
    ("statement", "indexes"),
    [
        (upkeep.folding.FOLD_WORKERS, {"metrics_of_workers"}),
        (upkeep.folding.FOLD_HOURS, {"metrics_of_workers", "metrics_by_minute"}),
    ],
)
def test_what_is_left_to_fold_is_found_without_a_look_at_what_is_folded(statement, indexes, look):
    execute(
        "INSERT INTO turno.metrics_minute (minute, queue, type, durations) SELECT date_trunc('hour', now(), 'UTC') "
        "- n * interval '1 hour', 'q', t::text, '{}' FROM generate_series(1, 600) AS n, generate_series(1, 10) AS t"
    )
    execute("ANALYZE turno.metrics_minute")  # rolled back with the test
    with connections["default"].cursor() as cursor:
        plan = look(cursor, statement, {"from": 2 * HOUR, "after": 48 * HOUR, "limit": 500})
    assert indexes <= indexes_used(plan)
    assert tables_scanned(plan) == set()
