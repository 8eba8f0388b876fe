"""PostgreSQL goes away under load, or is not there yet when a worker starts: nothing is lost, nothing runs twice."""

import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import DEFAULT_DB_ALIAS, connections

import tests.kit.handlers  # noqa: F401
from jobs.enqueue import JobRequest, enqueue_many
from jobs.models import Job, JobAttempt
from tests.kit.processes import PROJECT, eventually
from turno.launcher.postgres import QUICK, PrivatePostgres

pytestmark = pytest.mark.crash
AWAY = "away"


@contextmanager
def alias(url, like=DEFAULT_DB_ALIAS):
    """A connection alias to the server of this test, with the default one's options."""
    from jobs.sections import Database
    from turno.databases import databases

    connections.databases[AWAY] = (
        connections[like].settings_dict | databases(Database(url=url), pooled=False)["default"]
    )
    try:
        yield
    finally:
        connections[AWAY].close()
        del connections.databases[AWAY], connections[AWAY]


@pytest.fixture
def own_server():
    """A server that this test may stop: nobody else uses it."""
    with tempfile.TemporaryDirectory(prefix="turno-test-") as folder:
        Path(folder).chmod(0o755)  # the server's user passes through it
        server = PrivatePostgres(Path(folder) / "postgres", options=QUICK)
        try:
            yield server
        finally:
            server.stop("immediate")


def manage(fleet, *arguments):
    command = [sys.executable, "manage.py", *arguments]
    subprocess.run(command, cwd=PROJECT, env=fleet.env, check=True, capture_output=True, timeout=120)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_ten_seconds_without_postgresql_under_load_lose_and_repeat_nothing(own_server, fleet, mode, django_db_blocker):
    own_server.start()
    # The lease outlives the outage: what runs may end, and its end is written when the server is back.
    long = {"TURNO_WORKER__LEASE_DURATION": "30s", "TURNO_WORKER__LEASE_RENEWAL_INTERVAL": "1s"}
    fleet.env |= {"TURNO_DATABASE__URL": own_server.url, **long}
    manage(fleet, "migrate")
    workers = [fleet.start(f"w{n}", "default:8").wait_ready() for n in range(2)]
    with django_db_blocker.unblock(), alias(own_server.url):
        for batch in range(2):
            requests = [JobRequest("probe.async", {"key": f"{batch}-{n}", "hold": 0.05}) for n in range(500)]
            enqueue_many(requests, using=AWAY)
        eventually(lambda: len(fleet.starts()) > 100, "the load is under way")
        own_server.stop(mode)
        time.sleep(10)  # the outage itself: what is tested is that it lasts
        assert all(w.process.poll() is None for w in workers)
        connections[AWAY].close()
        own_server.start()
        jobs = Job.objects.using(AWAY)
        eventually(lambda: not jobs.exclude(state="Succeeded").exists(), "all have succeeded", 120)
        assert jobs.count() == 1000
        counts = Counter(parts[1] for parts in fleet.starts())
        assert len(counts) == 1000
        assert set(counts.values()) == {1}, "an end whose answer was lost was run again"
        outcomes = Counter(JobAttempt.objects.using(AWAY).values_list("outcome", "counted"))
        assert outcomes[("Succeeded", True)] == 1000
        # A claim whose answer was lost was never started: it may be Interrupted, and is charged to nobody.
        assert set(outcomes) <= {("Succeeded", True), ("Interrupted", False)}
    assert all(w.process.poll() is None for w in workers)


def test_a_worker_that_starts_without_a_database_waits_says_so_and_goes_on_by_itself(own_server, fleet):
    own_server.start()
    url = own_server.url
    fleet.env |= {"TURNO_DATABASE__URL": url}
    manage(fleet, "migrate")
    own_server.stop()
    worker = fleet.start("early")
    eventually(lambda: worker.events("worker.waiting"), "it says what it waits for")
    own_server.start()
    worker.wait_ready()
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


def test_a_worker_that_waits_for_its_database_ends_at_sigterm(own_server, fleet):
    own_server.start()
    fleet.env |= {"TURNO_DATABASE__URL": own_server.url}
    own_server.stop()
    worker = fleet.start("early")
    eventually(lambda: worker.events("worker.waiting"), "it says what it waits for")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


def test_a_worker_waits_for_missing_migrations(own_server, fleet):
    own_server.start()
    fleet.env |= {"TURNO_DATABASE__URL": own_server.url}
    worker = fleet.start("early")
    eventually(lambda: "migrate" in str(worker.events("worker.waiting")), "it names the command")
    manage(fleet, "migrate")
    worker.wait_ready()
