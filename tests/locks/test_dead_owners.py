"""What a dead worker had locked is free as soon as its jobs are: nobody who gets them again waits for a TTL."""

import subprocess
import sys
import time
from uuid import uuid4

import pytest

from jobs.conf import conf, overridden
from jobs.states import State
from tests.kit.processes import PROJECT
from tests.locks.house import PREFIX, key, values
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import ago, empty_tables, make_job
from workers import estate, routines
from workers.locks.base import NoLocks
from workers.locks.joblocks import RedisJobLocks
from workers.locks.made import give_back, leader_key, locks
from workers.policies import retry_policy

pytestmark = [COMMITTED]


@pytest.fixture
def configured(transactional_db, three):
    with overridden(redis={"urls": tuple(server.url for server in three), "locks": "on", "node_timeout": 0.25}):
        yield
    empty_tables()


def lock(servers, name, value):
    for server in servers:
        server.ask("SET", name, str(value), "PX", "30000")


def lost_job():
    return make_job(State.PROCESSING, worker=uuid4(), lease_expires_at=ago(3600))


def test_recovery_gives_back_the_lock_of_the_execution_it_ended_and_no_other(configured, three):
    job, later = lost_job(), lost_job()
    lock(three, key(job.id), job.token)
    lock(three, key(later.id), other := uuid4())
    assert routines.Recovery().recover() == 2
    assert rows.state(job.id) == State.ENQUEUED
    assert values(three, job.id) == [None] * 3
    assert values(three, later.id) == [str(other)] * 3


@pytest.mark.parametrize("charged", [True, False])
def test_what_is_taken_back_from_a_dead_worker_is_unlocked_and_so_is_the_leadership(configured, three, charged):
    dead = uuid4()
    job = make_job(State.PROCESSING, worker=dead)
    lock(three, key(job.id), job.token)
    lock(three, leader_key(PREFIX), dead)
    wound = estate.wind_up(dead, policy_of=retry_policy if charged else None, settled=False)
    assert wound == ([str(job.id)], True)
    assert values(three, job.id) == [None] * 3
    assert [server.ask("GET", leader_key(PREFIX)) for server in three] == [None] * 3


@pytest.mark.parametrize("fault", ["kill", "freeze"])
def test_servers_that_are_away_hold_nobody_up(configured, three, fault):
    job = lost_job()
    lock(three, key(job.id), job.token)
    getattr(three[0], fault)()
    began = time.monotonic()
    assert routines.Recovery().recover() == 1
    assert time.monotonic() - began < 20
    assert values(three[1:], job.id) == [None] * 2


def test_a_dead_leaders_key_is_not_anothers(configured, three):
    lock(three, leader_key(PREFIX), other := uuid4())
    give_back([], leader=uuid4())
    assert [server.ask("GET", leader_key(PREFIX)) for server in three] == [str(other)] * 3


def test_the_settings_choose_the_locks(configured):
    made = locks()
    assert isinstance(made.jobs, RedisJobLocks)
    assert made.leader is not None
    with overridden(redis={"locks": "off"}):
        assert isinstance(locks().jobs, NoLocks)
        assert locks().leader is None
        give_back([(uuid4(), uuid4())])
    with overridden(redis={"locks": "auto"}):
        assert not conf().redlock  # no broker


@pytest.mark.slow
def test_a_worker_without_locks_in_redis_does_not_load_its_client():
    program = (
        "import django, sys; django.setup(); import workers.worker, workers.leadership, workers.locks.made as made; "
        "made.locks(); made.give_back([(None, None)]); sys.exit('redis' in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    env = {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "PATH": "",
        "TURNO_DATABASE__URL": "postgresql://x@127.0.0.1:1/x",
    }
    assert subprocess.run(command, cwd=PROJECT, env=env, timeout=60, check=False).returncode == 0
