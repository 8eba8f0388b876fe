"""GET /metrics: what Prometheus scrapes, read back with its own parser."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from jobs import health, upkeep
from jobs.version import VERSION
from tests.api.client import KEY, Api
from tests.outbox.rows import with_broker
from tests.queries.house import letter, message, minute, pause, running, worker
from tests.transitions import rows

pytestmark = pytest.mark.django_db


def scraped(accept="text/plain"):
    """The samples by name and labels."""
    response = Api().client.get("/metrics", headers={"X-Turno-Key": KEY, "Accept": accept})
    assert response.status_code == 200, response.content
    families = list(text_string_to_metric_families(response.content.decode()))
    assert all(family.documentation for family in families)
    return {(s.name, tuple(s.labels.values())): s.value for family in families for s in family.samples}


def test_an_empty_house_has_zeros_and_no_means():
    found = scraped()
    assert found["turno_info", (VERSION,)] == 1
    assert found["turno_jobs", ("Enqueued",)] == found["turno_outbox_messages", ()] == 0
    assert found["turno_workers", ("Online",)] == found["turno_ended_last_hour", ("failed",)] == 0
    assert ("turno_mean_duration_last_hour_seconds", ()) not in found


def test_it_tells_what_waits_runs_and_has_ended():
    owner = worker("w1", {"default": 4})
    worker("w2", seen=20)
    running(owner)
    rows.make_jobs(3)
    rows.make_jobs(2, "Scheduled", waiting_for="pause", gate="x")
    pause("queue", "reports")
    letter()
    minute(5, succeeded=8, failed=2, duration_sum=20.0, wait_sum=5.0)
    found = scraped()
    assert (found["turno_jobs", ("Enqueued",)], found["turno_jobs", ("Processing",)]) == (3, 1)
    assert (found["turno_jobs_parked", ()], found["turno_dead_letters", ()]) == (2, 1)
    assert (found["turno_workers", ("Online",)], found["turno_workers", ("Silent",)]) == (1, 1)
    assert (found["turno_queue_waiting", ("default",)], found["turno_queue_busy", ("default",)]) == (3, 1)
    assert (found["turno_queue_paused", ("default",)], found["turno_queue_paused", ("reports",)]) == (0, 1)
    assert found["turno_ended_last_hour", ("succeeded",)] == 8
    assert found["turno_mean_duration_last_hour_seconds", ()] == 2.0
    assert found["turno_mean_wait_last_hour_seconds", ()] == 0.5


def test_it_tells_what_the_broker_has_not_taken():
    message(rows.make_job(), age=90)
    message(rows.make_job(queue="reports"), age=5, failures=2, last_error="no such queue")
    with with_broker():
        found = scraped()
    assert (found["turno_outbox_messages", ()], found["turno_outbox_failing", ()]) == (2, 1)
    assert 90 <= found["turno_outbox_oldest_age_seconds", ()] < 900
    assert found["turno_outbox_queue_messages", ("default",)] == 1
    assert found["turno_outbox_queue_failing", ("reports",)] == 1


def test_it_tells_what_is_down(monkeypatch):
    def away():
        raise health.Down("does not answer")

    monkeypatch.setattr(health, "_probes", {})
    health.register("postgresql", lambda: None)
    health.register("broker", away, needed=False)
    found = scraped()
    assert (found["turno_dependency_up", ("postgresql",)], found["turno_dependency_up", ("broker",)]) == (1, 0)


@pytest.mark.parametrize("accept", ["application/openmetrics-text; version=1.0.0", "*/*", "nonsense;;;q=x", ""])
def test_whatever_is_accepted_the_figures_come(accept):
    response = Api().client.get("/metrics", headers={"X-Turno-Key": KEY, "Accept": accept})
    assert response.status_code == 200
    assert b'turno_jobs{state="Enqueued"} 0.0' in response.content
    assert response.headers["Content-Type"].startswith(("text/plain", "application/openmetrics-text"))


def test_without_a_key_nothing_is_told(stranger):
    stranger.get("/metrics").problem(401)


def test_other_methods_are_refused(api):
    api.post("/metrics").problem(405)


def test_it_tells_of_breakers_that_are_not_closed():
    rows.execute(
        "INSERT INTO turno.circuits (type, state, opened_at, retry_at) VALUES"
        " ('a.type', 'open', now(), now()), ('b.type', 'closed', now(), NULL)"
    )
    rows.make_jobs(3, "Scheduled", waiting_for="circuit", gate="a.type")
    found = scraped()
    assert {key: value for key, value in found.items() if "circuit" in key[0]} == {
        ("turno_circuit_state", ("open", "a.type")): 1,
        ("turno_circuit_parked", ("a.type",)): 3,
    }


def test_it_counts_what_retention_has_done():
    upkeep.count("jobs_failed", 3)
    upkeep.count("jobs_failed", 4)
    found = scraped()
    assert found["turno_retention_rows_total", ("jobs_failed",)] == 7
