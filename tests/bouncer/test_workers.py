"""Workers whose engine goes through a PgBouncer: small pools, cut and paused connections, no room, no name."""

from collections import Counter

import psycopg
import pytest
from django.db import connections

import tests.kit.handlers  # noqa: F401
from jobs import transitions
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import Job
from tests.crash.test_connections import lease_end, terminate
from tests.crash.test_database_away import AWAY, alias, manage
from tests.doubt.test_workers import CLAIM, END
from tests.kit.look import attempts, started, wait_state
from tests.kit.pgbouncer import running_pgbouncer
from tests.kit.processes import database_url, eventually
from tests.kit.proxy import Proxy

pytestmark = pytest.mark.crash
LONG_LEASE = {"TURNO_WORKER__LEASE_DURATION": "30s", "TURNO_WORKER__LEASE_RENEWAL_INTERVAL": "500ms"}


def join(fleet, bouncer):
    fleet.env |= {"TURNO_DATABASE__URL": bouncer.url, "TURNO_DATABASE__DIRECT_URL": database_url()}


def assert_calm(bouncer, *workers):
    """Nobody waits for a session any more, and nobody was told of a statement that its session does not know."""
    eventually(lambda: bouncer.pool()["cl_waiting"] == 0, "no client waits for a session")
    for said in (bouncer.log, *(worker.log.read_text() for worker in workers)):
        assert "prepared statement" not in said
    for worker in workers:
        assert not [event for event in worker.events() if event["level"] == "error"]
        assert worker.process.poll() is None


@pytest.mark.both
def test_twenty_slots_live_on_two_sessions(fleet, bouncer_of):
    bouncer = bouncer_of(default_pool_size="2")
    join(fleet, bouncer)
    worker = fleet.start("a", "default:20").wait_ready()
    types = ["probe.async"] * 120 + ["probe.orm_async", "probe.orm_thread", "probe.talk", "probe.transaction"] * 20
    enqueue_many([JobRequest(type_, {"key": f"{n}", "hold": 0.2}) for n, type_ in enumerate(types)])
    eventually(lambda: not Job.objects.exclude(state="Succeeded").exists(), "all have succeeded", 120)
    assert Counter(parts[1] for parts in fleet.starts()) == {f"{n}": 1 for n in range(200)}
    assert_calm(bouncer, worker)
    assert len([server for server in bouncer.show("SERVERS") if server["database"] == "turno"]) <= 2


def test_jobs_go_on_while_the_bouncer_is_restarted_paused_and_loses_its_sessions(fleet, bouncer):
    join(fleet, bouncer)
    fleet.env |= LONG_LEASE
    worker = fleet.start("a").wait_ready()
    long = enqueue("probe.async", {"key": "long", "hold": 600}).id
    started(fleet, "long")

    def goes_on(what):
        before = lease_end(long)
        eventually(lambda: lease_end(long) > before, f"leases are renewed after {what}")
        wait_state(enqueue("probe.orm_thread", {"key": what}).id, "Succeeded", 60)

    terminate()
    goes_on("its sessions were ended")
    bouncer.stop()
    bouncer.start()
    goes_on("a restart")
    bouncer.kill()
    eventually(lambda: worker.events("database.away"), "the worker says that it is away")
    bouncer.start()
    goes_on("its death")
    bouncer.tell("PAUSE")
    waiting = enqueue("probe.async", {"key": "paused"}).id
    eventually(lambda: bouncer.pool()["cl_waiting"] > 0, "clients wait at the door")
    bouncer.tell("RESUME")
    wait_state(waiting, "Succeeded", 60)
    goes_on("a pause")
    transitions.cancel([long])
    wait_state(long, "Cancelled", 60)
    assert len(fleet.starts("long")) == 1
    assert attempts(long)[0][0] == 1
    assert_calm(bouncer, worker)


def test_postgresql_is_restarted_behind_the_bouncer(own_server, fleet, django_db_blocker):
    own_server.start()
    with running_pgbouncer(own_server.url) as bouncer:
        fleet.env |= LONG_LEASE | {"TURNO_DATABASE__URL": bouncer.url, "TURNO_DATABASE__DIRECT_URL": own_server.url}
        manage(fleet, "migrate")
        workers = [fleet.start(f"w{n}", "default:4").wait_ready() for n in range(2)]
        with django_db_blocker.unblock(), alias(own_server.url):
            requests = [JobRequest("probe.async", {"key": f"{n}", "hold": 0.1}) for n in range(120)]
            enqueue_many(requests, using=AWAY)
            for mode, most in (("fast", 100), ("immediate", 50)):
                jobs = Job.objects.using(AWAY).exclude(state="Succeeded")
                eventually(lambda most=most, jobs=jobs: jobs.count() < most, "the load is under way")
                connections[AWAY].close()
                said = {w: len(w.events("database.away")) for w in workers}
                own_server.stop(mode)
                for w, times in said.items():
                    eventually(lambda w=w, times=times: len(w.events("database.away")) > times, f"{w.name} says so")
                own_server.start()
            eventually(lambda: not jobs.exists(), "all have succeeded", 120)
        assert Counter(parts[1] for parts in fleet.starts()) == {f"{n}": 1 for n in range(120)}
        assert_calm(bouncer, *workers)


def test_answers_that_are_lost_on_the_way_from_the_bouncer_repeat_nothing(fleet, bouncer):
    with Proxy(bouncer.url) as proxy:
        join(fleet, bouncer)
        fleet.env["TURNO_DATABASE__URL"] = proxy.url
        worker = fleet.start("a").wait_ready()
        traps = [proxy.swallow_commit(CLAIM, times=2), proxy.swallow_commit(END, times=2)]
        id_ = enqueue("probe.once", {"key": "k"}).id
        wait_state(id_, "Succeeded", 60)
        assert [trap.caught for trap in traps] == [2, 2]
        assert attempts(id_)[-1] == (3, "Succeeded", True)
        assert set(attempts(id_)[:-1]) == {(1, "Interrupted", False), (2, "Interrupted", False)}
        assert len(fleet.starts("k")) == 1
        assert_calm(bouncer, worker)


def test_a_worker_that_rests_longer_than_the_bouncer_likes_starts_the_next_job_without_a_word(fleet, bouncer_of):
    bouncer = bouncer_of(client_idle_timeout="1", server_idle_timeout="1", server_lifetime="1")
    join(fleet, bouncer)
    worker = fleet.start("a").wait_ready()
    for n in range(2):
        said = bouncer.log.count("client_idle_timeout")
        wait_state(enqueue("probe.talk", {"key": f"{n}"}).id, "Succeeded", 60)
        eventually(lambda said=said: bouncer.log.count("client_idle_timeout") > said, "an idle client was sent away")
    assert len(fleet.starts()) == 2
    assert_calm(bouncer, worker)
    assert not [event for event in worker.events() if event["level"] == "warning"]


def test_a_bouncer_without_room_is_said_and_the_worker_comes_in_when_there_is_some(fleet, bouncer_of):
    bouncer = bouncer_of(max_client_conn="16")
    join(fleet, bouncer)
    id_ = enqueue("probe.async", {"key": "k"}).id
    crowd = [psycopg.connect(bouncer.url) for _ in range(16)]
    worker = fleet.start("a")
    eventually(lambda: "no more connections allowed" in str(worker.events("worker.waiting")), "it says why it waits")
    for one in crowd:
        one.close()
    worker.wait_ready()
    wait_state(id_, "Succeeded", 60)
    assert len(fleet.starts("k")) == 1


def test_where_every_way_goes_through_the_bouncer_all_is_polled_for(fleet, bouncer):
    fleet.env |= {"TURNO_DATABASE__URL": bouncer.url, "TURNO_DATABASE__POOLER": "true"}
    worker = fleet.start("a").wait_ready()
    for n in range(20):  # more often than anything is said before it is prepared
        wait_state(enqueue("probe.talk", {"key": f"{n}"}).id, "Succeeded", 60)
    id_ = enqueue("probe.async", {"key": "held", "hold": 600}).id
    started(fleet, "held")
    transitions.cancel([id_])
    wait_state(id_, "Cancelled", 60)
    assert len(fleet.starts()) == 21
    assert not worker.events("listen.lost")
    assert_calm(bouncer, worker)


@pytest.mark.parametrize("ignored", ["", "options"], ids=["refuses", "ignores what it does not know"])
def test_a_bouncer_that_nobody_named_is_found_out_before_any_work(fleet, bouncer_of, ignored):
    bouncer = bouncer_of(ignore_startup_parameters=ignored)
    fleet.env |= {"TURNO_DATABASE__URL": bouncer.url}
    worker = fleet.start("a")
    eventually(lambda: "database.direct_url" in str(worker.events("worker.waiting")), "it says what to name")
    assert not worker.events("worker.ready")
