"""The server cuts the workers' connections, idle and busy: everything goes on by itself, nothing is repeated."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest
from django.db import connections

import tests.kit.handlers  # noqa: F401
from jobs import transitions
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import Job
from tests.api.served import serving
from tests.kit.look import attempts, job, started, wait_state
from tests.kit.people import signed_in
from tests.kit.processes import eventually
from tests.transitions.rows import empty_tables

pytestmark = pytest.mark.crash
TERMINATE = """
SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def terminate(using="default"):
    """End every connection to the test database but this one; how many there were. Returns when they are over."""
    with connections[using].cursor() as cursor:
        cursor.execute(TERMINATE)
        return cursor.fetchone()[0]


def servers_of(fleet):
    """The pool and the servers besides PostgreSQL that the fleet's workers have, for a web process."""
    shared = ("TURNO_DATABASE__POOL_SIZE", "TURNO_MESSAGING", "TURNO_REDIS")
    return {name: value for name, value in fleet.env.items() if name.startswith(shared)}


def lease_end(id_):
    return Job.objects.values_list("lease_expires_at", flat=True).get(pk=id_)


def test_leases_are_renewed_and_cancels_heard_after_every_connection_was_cut(fleet):
    worker = fleet.start("a").wait_ready()
    id_ = enqueue("probe.async", {"key": "long", "hold": 120}).id
    started(fleet, "long")
    for _ in range(2):
        assert terminate() >= 1
        before = lease_end(id_)
        eventually(lambda before=before: (now := lease_end(id_)) and now > before, "the lease is renewed again")
    other = enqueue("probe.thread", {"key": "after"}).id
    wait_state(other, "Succeeded")
    transitions.cancel([id_])
    wait_state(id_, "Cancelled")
    assert len(fleet.starts("long")) == 1
    assert worker.process.poll() is None


def test_a_handlers_own_broken_connection_harms_no_later_handler(fleet):
    fleet.start("a").wait_ready()
    for type_ in ("probe.orm_async", "probe.orm_thread"):
        first = enqueue(type_, {"key": f"{type_}-1"}).id
        wait_state(first, "Succeeded")
        terminate()
        for n in (2, 3):
            id_ = enqueue(type_, {"key": f"{type_}-{n}"}).id
            wait_state(id_, "Succeeded")
            assert job(id_).attempts_used <= 2
        assert attempts(id_) == [(1, "Succeeded", True)]


def test_idle_and_busy_connections_are_cut_and_no_process_is_restarted(fleet, tmp_path):
    worker = fleet.start("a").wait_ready()
    pid = worker.pid
    body = {"type": "probe.async", "payload": {"hold": 0.05}}
    with serving(tmp_path, TURNO_HANDLERS='["tests.kit.handlers"]', **servers_of(fleet)) as served:
        assert terminate() >= 1
        status, _, made = served.post("/api/jobs", body)
        assert status == 201
        wait_state(made["id"], "Succeeded")

        answers, stop = [], Event()

        def post():
            while not stop.is_set():
                answers.append(served.post("/api/jobs", body)[0])

        busy = Thread(target=post)
        busy.start()
        times = 4
        try:
            for _ in range(times):
                before = len(answers)
                terminate()
                eventually(lambda before=before: len(answers) > before + 5, "requests are answered again")
        finally:
            stop.set()
            busy.join(60)
        told = Counter(answers)
        assert set(told) <= {201, 503}
        assert told[503] <= times, "one request at most is in the way of each cut"
        eventually(lambda: not Job.objects.exclude(state="Succeeded").exists(), "all have succeeded")
        assert Job.objects.count() >= 1 + told[201]
        assert set(Counter(parts[1] for parts in fleet.starts()).values()) == {1}
        assert served.process.poll() is None
    assert (worker.process.poll(), worker.pid) == (None, pid)


def test_twenty_slots_and_twenty_clients_live_on_pools_of_two(fleet, tmp_path):
    fleet.env["TURNO_DATABASE__POOL_SIZE"] = "2"
    worker = fleet.start("a", "default:20").wait_ready()
    with (
        serving(tmp_path, TURNO_HANDLERS='["tests.kit.handlers"]', **servers_of(fleet)) as served,
        ThreadPoolExecutor(20) as clients,
    ):
        bodies = [{"type": "probe.orm_async", "payload": {"key": str(n), "hold": 0.2}} for n in range(100)]
        bodies += [{"type": "probe.transaction", "payload": {"key": str(n), "hold": 0.2}} for n in range(100, 200)]
        answers = clients.map(lambda body: served.post("/api/jobs", body)[0], bodies)
        assert set(answers) == {201}
    eventually(lambda: not Job.objects.exclude(state="Succeeded").exists(), "all have succeeded", 120)
    assert Counter(parts[1] for parts in fleet.starts()) == {str(n): 1 for n in range(200)}
    assert worker.process.poll() is None


@pytest.fixture
def committed(transactional_db):
    """Rows are committed, and this process's other connections can be used too."""
    yield
    empty_tables()


@pytest.mark.django_db(databases=["default", "engine"], transaction=True)
def test_a_script_that_rested_for_long_goes_on_after_its_connection_was_cut(committed):
    ids = [enqueue("probe.async").id]
    for cut in range(2):
        assert terminate("engine") >= 1
        ids.append(enqueue("probe.async").id)
        assert terminate("engine") >= 1
        requests = [JobRequest("probe.async"), JobRequest("probe.async")]
        ids += [made.id for made in enqueue_many(requests, idempotency_key=f"batch {cut}")]
        assert terminate("engine") >= 1
        assert transitions.cancel(ids[-1:])
    assert Job.objects.filter(pk__in=ids).count() == 7


@pytest.mark.django_db(databases=["default", "engine"], transaction=True)
def test_an_act_in_the_admin_after_its_connection_was_cut(committed):
    browser = signed_in("raiz", is_staff=True, is_superuser=True)
    made = enqueue("probe.async")
    assert terminate("engine") >= 1
    form = {"action": "cancel", "_selected_action": [str(made.id)], "index": "0"}
    assert browser.post("/admin/jobs/job/", form).status_code == 302
    assert job(made.id).state == "Cancelled"
