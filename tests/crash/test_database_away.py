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
from django.db import DEFAULT_DB_ALIAS, connection, connections

import tests.kit.handlers  # noqa: F401
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import Job, JobAttempt, JobLog
from tests.crash.test_connections import terminate
from tests.kit.look import attempts, started, wait_state
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


@pytest.mark.parametrize("mode", [pytest.param("fast", marks=pytest.mark.longo), "immediate"])
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


def assert_said_once(worker):
    """Each part of the worker says that its database is away when it finds out, and no part goes on saying so."""
    warnings = [event for event in worker.events() if event["level"] == "warning"]
    said = Counter((e["event"], e["logger"], e.get("service", e.get("ledger"))) for e in warnings)
    assert max(said.values()) <= 2, said  # twice: while the server went down, and again while it came up


def test_lines_said_while_the_database_is_away_are_kept_and_its_absence_is_said_once(
    own_server, fleet, django_db_blocker
):
    own_server.start()
    fleet.env |= {"TURNO_DATABASE__URL": own_server.url, "TURNO_WORKER__LEASE_DURATION": "30s"}
    manage(fleet, "migrate")
    worker = fleet.start("a").wait_ready()
    with django_db_blocker.unblock(), alias(own_server.url):
        [made] = enqueue_many([JobRequest("probe.lines", {"key": "talks", "hold": 8})], using=AWAY)
        eventually(lambda: JobLog.objects.using(AWAY).count() > 5, "its first lines are stored")
        connections[AWAY].close()
        own_server.stop("fast")
        time.sleep(3)  # the outage itself: what is said meanwhile is what counts
        own_server.start()
        done = eventually(lambda: Job.objects.using(AWAY).filter(pk=made.id, state="Succeeded").first(), "it ended")
        stored = JobLog.objects.using(AWAY).filter(job_id=made.id).count()
        assert stored == done.result["said"]
    assert_said_once(worker)


def test_an_end_is_written_by_a_stopping_worker_when_the_database_comes_back_in_time(
    own_server, fleet, django_db_blocker
):
    own_server.start()
    fleet.env |= {"TURNO_DATABASE__URL": own_server.url, "TURNO_WORKER__LEASE_DURATION": "30s"}
    manage(fleet, "migrate")
    worker = fleet.start("a", "default:1", "--shutdown-timeout", "100ms").wait_ready()
    with django_db_blocker.unblock(), alias(own_server.url):
        [made] = enqueue_many([JobRequest("probe.async", {"key": "k", "hold": 1})], using=AWAY)
        started(fleet, "k")
        connections[AWAY].close()
        own_server.stop("fast")
        eventually(lambda: fleet.lines("end"), "its handler has ended")
        worker.signal(signal.SIGTERM)
        eventually(lambda: worker.events("worker.stopping"), "it is stopping")
        time.sleep(3)  # the outage goes on for longer than the grace
        own_server.start()
        assert worker.wait() == 0
        ended = Job.objects.using(AWAY).get(pk=made.id)
        assert (ended.state, ended.executions) == ("Succeeded", 1)


def test_a_database_that_takes_no_writes_for_a_while_loses_and_repeats_nothing(fleet):
    """A full disk, or a standby that has not been promoted yet: it answers, and refuses to write."""
    worker = fleet.start("a", TURNO_WORKER__LEASE_DURATION="30s").wait_ready()
    id_ = enqueue("probe.async", {"key": "k", "hold": 1}).id
    started(fleet, "k")
    name = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        try:
            terminate()
            eventually(lambda: fleet.lines("end"), "its handler has ended")
            eventually(lambda: worker.events("database.away"), "the worker says what is the matter")
            time.sleep(2)  # some more tries in vain
        finally:
            cursor.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    terminate()
    wait_state(id_, "Succeeded")
    assert attempts(id_) == [(1, "Succeeded", True)]
    assert len(fleet.starts("k")) == 1
    assert not [e for e in worker.events() if e["level"] == "error"]
