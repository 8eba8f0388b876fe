"""/health/live, /health/ready and the registry of probes behind it."""

import threading
import time
from datetime import UTC, datetime

import pytest
from django.db import connections

from jobs import health
from tests.api.client import Api


@pytest.fixture
def probes(monkeypatch):
    """A registry of the test's own."""
    monkeypatch.setattr(health, "_probes", {})
    return health


def test_a_process_that_lives_says_so_without_the_database():
    assert Api(None).get("/health/live").json == {"status": "live"}


@pytest.mark.django_db
def test_ready_names_what_answers(stranger):
    answer = stranger.get("/health/ready")
    assert answer.status == 200
    assert answer.json["status"] == "ready"
    (probe,) = answer.json["probes"]
    assert (probe["name"], probe["ok"], probe["detail"]) == ("postgresql", True, "")


@pytest.mark.django_db
def test_ready_says_which_is_down_and_since_when(stranger, probes):
    def broken():
        raise ConnectionError("password=hunter2 host=10.0.0.9")

    probes.register("postgresql", broken)
    answer = stranger.get("/health/ready")
    problem = answer.problem(503)
    (probe,) = problem["probes"]
    assert (probe["name"], probe["ok"]) == ("postgresql", False)
    assert probe["since"][:19] in problem["detail"].replace("+00:00", "")
    assert "hunter2" not in str(problem)
    assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.django_db
def test_what_one_can_do_without_leaves_the_house_degraded_and_open(stranger, probes):
    def away():
        raise probes.Down("does not answer on %(down)s of 3", where=["10.0.0.9:6379"], down=2)

    probes.register("postgresql", lambda: None)
    probes.register("redis", away, needed=False)
    answer = stranger.get("/health/ready")
    assert (answer.status, answer.json["status"]) == (200, "degraded")
    postgresql, redis = answer.json["probes"]
    assert (postgresql["ok"], postgresql["needed"]) == (True, True)
    assert (redis["ok"], redis["needed"], redis["detail"]) == (False, False, "does not answer on 2 of 3")
    assert datetime.fromisoformat(redis["since"]) <= datetime.now(UTC)
    assert "10.0.0.9" not in str(answer.json)

    def broken():
        raise ConnectionError

    probes.register("postgresql", broken)
    problem = stranger.get("/health/ready").problem(503)
    assert problem["detail"].startswith("postgresql ")
    assert "redis does not answer on 2 of 3" in problem["detail"]


def test_who_needs_postgresql_alone_waits_for_nothing_else(probes):
    probes.register("postgresql", lambda: None)
    asked = []
    probes.register("broker", lambda: asked.append(True), needed=False)
    assert [report.name for report in probes.check_all(only_needed=True)] == ["postgresql"]
    assert not asked


def test_the_latest_is_known_without_waiting_and_asked_anew_behind(probes):
    release = threading.Event()
    probes.register("postgresql", lambda: None)
    probes.register("broker", lambda: release.wait(30) and None, needed=False)
    assert probes.latest() == []  # under way, never answered
    release.set()
    (report,) = [one for one in probes.check_all() if one.name == "broker"]
    assert probes.latest() == [report]


def test_a_report_is_asked_for_again_when_it_is_no_longer_fresh(probes):
    runs = []
    probes.register("broker", lambda: runs.append(1), needed=False, fresh_for=60)
    probes.check_all()
    probes.check_all()
    assert len(runs) == 1
    probes.register("redis", lambda: runs.append(2), needed=False, fresh_for=0)
    probes.check_all()
    probes.check_all()
    assert runs.count(2) == 2


def test_a_probe_that_hangs_counts_as_down_by_the_deadline(probes):
    release = threading.Event()
    probes.register("slow", lambda: release.wait(30) and None)
    before = time.monotonic()
    (report,) = probes.check_all(deadline=0.05)
    assert not report.ok
    assert time.monotonic() - before < 10
    release.set()


def test_a_hanging_probe_runs_once_however_often_one_asks(probes):
    release, runs = threading.Event(), []

    def hang():
        runs.append(1)
        release.wait(30)

    probes.register("slow", hang)
    for _ in range(5):
        probes.check_all(deadline=0.01)
    assert len(runs) == 1
    release.set()


def test_since_is_kept_while_nothing_changes(probes):
    state = {"ok": False}

    def probe():
        if not state["ok"]:
            raise probes.Down("gone")

    probes.register("it", probe)
    (first,) = probes.check_all()
    probes._probes["it"].reported_at = -1e9
    (second,) = probes.check_all()
    assert first.since == second.since
    assert second.detail == "gone"
    state["ok"] = True
    probes._probes["it"].reported_at = -1e9
    (third,) = probes.check_all()
    assert third.ok
    assert third.since > second.since


@pytest.mark.django_db
def test_tables_that_are_missing_are_not_ready(monkeypatch):
    monkeypatch.setitem(connections["default"].settings_dict, "NAME", "postgres")
    with pytest.raises(health.Down, match="migrate"):
        health.postgresql()
