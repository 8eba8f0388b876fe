"""GET /api/stats, /api/workers, /api/job-types, /api/info."""

from datetime import datetime

import pytest

from jobs.queries import stats
from jobs.version import VERSION
from tests.outbox.rows import with_broker
from tests.queries.house import message
from tests.transitions import rows

pytestmark = pytest.mark.django_db


def worker(name, seen=1, state="Online", queues='{"default": 4, "critical": 2}', pid=1):
    rows.execute(
        "INSERT INTO turno.workers (id, name, host, boot_id, pid_namespace, pid, pid_started, version, queues, state,"
        " seen_at) VALUES (gen_random_uuid(), %s, 'h', %s, 'n', %s, '1', '1.2.3', %s::jsonb, %s,"
        " now() - make_interval(secs => %s))", name, name, pid, queues, state, seen,
    )  # fmt: skip


def minute(ago, **columns):
    row = {"queue": "default", "type": "test.any", **columns}
    rows.execute(
        f"INSERT INTO turno.metrics_minute (minute, durations, {', '.join(row)}) VALUES (date_trunc('minute', now()) -"
        f" make_interval(mins => %s), array_fill(0, ARRAY[16]), {', '.join(['%s'] * len(row))})", ago, *row.values(),
    )  # fmt: skip


def test_stats_of_an_empty_house_are_zeros(api):
    found = api.get("/api/stats").json
    assert found["active"] == {"Scheduled": 0, "Enqueued": 0, "Processing": 0}
    assert (found["oldest_enqueued_at"], found["next_run_at"], found["estimated"]) == (None, None, [])
    assert found["last_24_hours"]["mean_duration"] is None
    assert found["outbox"] == {"waiting": 0, "at_least": False, "oldest_age": None, "failing": 0}


def test_stats_tell_of_the_messages_that_wait_for_the_broker(api):
    message(rows.make_job(), age=90)
    message(rows.make_job(), age=5, failures=2, last_error="no such queue")
    with with_broker():
        found = api.get("/api/stats").json["outbox"]
    assert (found["waiting"], found["failing"]) == (2, 1)
    assert 90 <= found["oldest_age"] < 120


def test_stats_count_what_has_not_ended(api):
    rows.make_jobs(3)
    rows.make_jobs(2, "Scheduled", run_at=rows.ahead(60))
    rows.make_jobs(1, "Scheduled", waiting_for="pause", gate="x")
    rows.make_jobs(4, "Processing")
    rows.make_jobs(5, "Succeeded")
    rows.make_letter(rows.make_job("Failed"))
    found = api.get("/api/stats").json
    assert found["active"] == {"Scheduled": 3, "Enqueued": 3, "Processing": 4}
    assert (found["parked"], found["dead_letters"]) == (1, 1)
    assert found["next_run_at"] > found["as_of"]


def test_the_oldest_waiting_job_is_found_over_queues_and_priorities(api):
    for queue in ("a", "b"):
        for priority in (-10, 0, 10):
            rows.make_job(queue=queue, priority=priority, enqueued_at=rows.ago(50))
    oldest = rows.make_job(queue="b", priority=-3, enqueued_at=rows.ago(500))
    rows.make_job("Succeeded", enqueued_at=rows.ago(9000))
    found = datetime.fromisoformat(api.get("/api/stats").json["oldest_enqueued_at"])
    assert found == rows.job(oldest.id)["enqueued_at"]


def test_the_past_is_read_from_the_minutes(api):
    minute(5, succeeded=8, failed=2, duration_sum=30, wait_sum=5)
    minute(120, succeeded=10, retried=1, cancelled=1, lost=1)
    minute(3 * 24 * 60, succeeded=1000)
    found = api.get("/api/stats").json
    assert found["last_hour"] | {"mean_duration": 3, "mean_wait": 0.5} == found["last_hour"]
    assert (found["last_hour"]["succeeded"], found["last_hour"]["failed"]) == (8, 2)
    day = found["last_24_hours"]
    assert (day["succeeded"], day["retried"], day["cancelled"], day["lost"]) == (18, 1, 1, 1)


def test_a_count_beyond_the_limit_is_an_estimate_and_says_so(api, monkeypatch):
    monkeypatch.setattr("jobs.queries.figures.COUNTED", 10)
    rows.make_jobs(25)
    found = stats()
    assert found.estimated == ["enqueued"]
    assert found.enqueued >= 11


def test_stats_know_the_causes_and_the_usual_duration(api):
    rows.make_letter(rows.make_job("Failed"), fingerprint="a")
    rows.make_letter(rows.make_job("Failed"), fingerprint="a")
    found = api.get("/api/stats").json
    assert (found["dead_letters"], found["causes"], found["p95_duration"]) == (2, 1, None)


def test_queues_say_what_waits_where_there_is_room_and_what_is_paused(api):
    worker("a")
    rows.make_jobs(3, queue="critical", enqueued_at=rows.ago(100))
    rows.execute("INSERT INTO turno.pauses (scope, value, reason) VALUES ('queue', 'reports', 'deploy')")
    critical, default, reports = api.get("/api/queues").json["items"]
    assert (critical["queue"], critical["waiting"], critical["free"], critical["workers"]) == ("critical", 3, 2, 1)
    assert critical["oldest_for"] >= 100
    assert (default["capacity"], default["busy"], default["oldest_for"], default["paused"]) == (4, 0, None, None)
    assert (reports["paused"]["reason"], reports["paused"]["who"], reports["capacity"]) == ("deploy", None, 0)


def test_workers_are_judged_by_the_database_clock(api):
    worker("a", seen=1)
    worker("b", seen=20)
    worker("c", seen=100)
    worker("d", seen=1, state="Draining")
    worker("e", seen=1, state="Offline")
    states = {item["name"]: item["state"] for item in api.get("/api/workers").json["items"]}
    assert states == {"a": "Online", "b": "Silent", "c": "Offline", "d": "Draining", "e": "Offline"}


def test_a_worker_shows_its_slots_and_how_many_are_busy(api):
    worker("a")
    id_ = rows.select("SELECT id FROM turno.workers")[0]["id"]
    rows.make_job("Processing", worker=id_)
    rows.make_job("Processing", worker=id_)
    (item,) = api.get("/api/workers").json["items"]
    assert (item["queues"], item["slots"], item["busy"]) == ({"default": 4, "critical": 2}, 6, 2)
    assert item["version"] == "1.2.3"
    assert 0 <= item["seen_ago"] < 15


def test_workers_cost_one_query(api, django_assert_num_queries):
    for number in range(20):
        worker(f"w{number}", pid=number)
    with django_assert_num_queries(1):
        assert len(api.get("/api/workers").json["items"]) == 20


def test_types_are_those_registered_and_those_seen(api):
    rows.execute("INSERT INTO turno.job_types (name, last_served_at) VALUES ('old.one', now()), ('test.urgent', now())")
    types = {item["name"]: item for item in api.get("/api/job-types").json["items"]}
    urgent = types["test.urgent"]
    assert (urgent["queue"], urgent["priority"], urgent["timeout"], urgent["max_attempts"]) == ("critical", 7, 9, 3)
    assert urgent["registered"]
    assert urgent["last_served_at"]
    assert not types["old.one"]["registered"]
    assert types["test.report"]["payload_schema"]["properties"]["rows"]["maximum"] == 1000
    assert list(types) == sorted(types)


def test_a_type_whose_breaker_is_not_closed_says_so_whether_it_is_registered_or_not(api):
    rows.execute(
        "INSERT INTO turno.circuits (type, state, opened_at, retry_at, executions, failures) VALUES"
        " ('test.urgent', 'open', now(), now() + interval '9 s', 20, 12), ('old.one', 'open', now(), now(), 10, 10),"
        " ('test.report', 'closed', now(), NULL, 10, 10)"
    )
    rows.make_jobs(2, "Scheduled", waiting_for="circuit", gate="test.urgent")
    types = {item["name"]: item for item in api.get("/api/job-types").json["items"]}
    circuit = types["test.urgent"]["circuit"]
    assert (circuit["state"], circuit["failures"], circuit["executions"], circuit["span"]) == ("open", 12, 20, 30)
    assert (circuit["parked"], circuit["at_least"], circuit["probe"]) == (2, False, None)
    assert 0 < circuit["retry_in"] <= 9
    assert types["old.one"]["circuit"]["retry_in"] == 0
    assert types["test.report"]["circuit"] is None


def test_info_names_the_product_its_version_and_how_to_come_in(stranger):
    expected = {"name": "Turno", "version": VERSION, "access": "key", "key_required": True}
    assert stranger.get("/api/info").json == expected


def test_reads_of_figures_take_no_row_lock(api, django_assert_max_num_queries):
    with django_assert_max_num_queries(12) as seen:
        for path in ("stats", "workers", "job-types"):
            api.get(f"/api/{path}")
    assert not [query for query in seen.captured_queries if "FOR " in query["sql"] and "UPDATE" in query["sql"]]
