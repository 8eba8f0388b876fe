"""Three workers that all believe they lead delete two hundred thousand old jobs while they run new ones."""

import threading
from collections import Counter

import pytest

import tests.kit.handlers  # noqa: F401
from jobs.enqueue import JobRequest, enqueue_many
from jobs.models import Job
from tests.kit import finished
from tests.kit.processes import eventually
from tests.transitions.rows import select

pytestmark = pytest.mark.longo
MANY = 200_000
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
STILL = "SELECT id FROM turno.jobs WHERE type = 'old.type' LIMIT 1"
HANGING = " UNION ALL ".join(
    f"SELECT '{table}' AS name, count(*) AS rows FROM turno.{table} AS h WHERE NOT EXISTS "
    "(SELECT FROM turno.jobs AS j WHERE j.id = h.job_id)"
    for table in ("job_attempts", "job_state_changes", "job_logs", "dead_letters", "outbox_messages")
)
WORKERS = ("a", "b", "c")
PATIENCE = 3600.0  # seconds


def test_nothing_old_stays_nothing_young_goes_and_nobody_waits_for_each_other_for_ever(fleet):
    finished.make(MANY)
    [before] = select(DEADLOCKS)
    fleet.env |= {"TURNO_HANDLERS": '["tests.kit.handlers", "tests.laws.mutants"]', "MUTANT": "everybody_leads"}
    fleet.env |= {"TURNO_RETENTION__INTERVAL": "1s", "TURNO_RESILIENCE__BREAKER": "false"}
    workers = [fleet.start(name, "default:8").wait_ready() for name in WORKERS]
    made = 0

    def gone():
        """Goes on enqueuing, also children of what came before, until the old ones are gone."""
        nonlocal made
        first, *_rest = enqueue_many([JobRequest("probe.async", {"key": f"young-{made}-{n}"}) for n in range(10)])
        bad = JobRequest("probe.async", {"key": f"bad-{made}", "fail": "error"}, max_attempts=2)
        enqueue_many([bad, JobRequest("probe.async", {"key": f"child-{made}"}, after=[first.id])])
        made += 12
        threading.Event().wait(0.2)
        return not select(STILL)

    eventually(gone, "no old job is left", PATIENCE)
    eventually(lambda: not Job.objects.exclude(state__in=["Succeeded", "Failed"]).exists(), "the young have ended", 600)
    assert Job.objects.count() == made
    assert select(DEADLOCKS) == [before]
    assert all(row["rows"] == 0 for row in select(HANGING))
    starts = Counter((parts[1], parts[2]) for parts in fleet.starts())
    assert starts.most_common(1)[0][1] == 1
    told = [event for worker in workers for event in worker.events()]
    assert [event for event in told if event["event"] in ("retention.failed", "retention.too_slow")] == []
    deleted = sum(rows for event in told if event["event"] == "retention" for rows in event["rows"].values())
    assert deleted > 0
