"""Nudges for screens: folded, bounded, after the commit, never in anybody's way."""

import os
import subprocess
import sys
import threading

import pytest
from django.db import connection, connections, transaction

from jobs import events
from jobs.announcements import SCREENS
from jobs.ids import new_id
from jobs.nudge import MOST_JOBS, TOPICS, Nudge
from tests.kit.processes import PROJECT, database_url, eventually
from tests.kit.proxy import Proxy, through
from tests.kit.redis_server import over_redis
from tests.transitions.ear import raw_connection

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "direct"])


SENDERS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE '%pg_notify($1%' AND pid <> pg_backend_pid()
"""


class Ear:
    """What is announced for screens, from its creation on."""

    def __init__(self):
        self._connection = raw_connection()
        self._connection.execute(f"LISTEN {SCREENS}")

    def until(self, enough):
        """Nudges as they come, until `enough(nudges)`."""
        heard = []
        for notice in self._connection.notifies(timeout=60):
            heard.append(Nudge.read(notice.payload))
            assert len(notice.payload.encode()) < 8000
            if enough(heard):
                return heard
        raise AssertionError(f"not heard in time; only {[nudge.said() for nudge in heard]}")

    def close(self):
        self._connection.close()


@pytest.fixture
def ear(db):
    ear = Ear()
    yield ear
    ear.close()


@pytest.fixture
def speaking():
    events.silence(False)
    yield
    events.close(20)
    events.silence()
    assert not [thread for thread in threading.enumerate() if thread.name == "turno-screens"]


def topics(heard):
    return set().union(*(nudge.topics for nudge in heard))


def test_a_change_is_told_with_its_topics_and_ids(ear, speaking):
    job, worker = new_id(), new_id()

    events.changed(jobs=[job], workers=[worker], topics=["queues"])

    [nudge] = ear.until(len)
    assert nudge.said() == {"topics": ["jobs", "queues", "workers"], "jobs": [str(job)], "workers": [str(worker)]}


def test_a_burst_is_a_few_messages_that_name_everything(ear, speaking):
    jobs = {str(new_id()) for _ in range(MOST_JOBS)}

    for job in jobs:
        events.changed(jobs=[job])
    heard = ear.until(lambda heard: set().union(*(nudge.jobs for nudge in heard)) == jobs)

    assert len(heard) < 10


def test_too_many_ids_are_none(ear, speaking):
    events.changed(jobs=[new_id() for _ in range(MOST_JOBS + 1)], workers=[new_id() for _ in range(500)])

    [nudge] = ear.until(len)
    assert (nudge.jobs, nudge.workers) == (None, None)


def test_as_many_ids_as_may_be_named_fit_into_a_notification():
    full = Nudge(TOPICS, [str(new_id()) for _ in range(150)], [str(new_id()) for _ in range(40)])

    assert full.jobs is not None
    assert full.workers is not None
    assert len(full.text()) < 8000


@pytest.mark.parametrize(
    ("said", "jobs"), [({"topics": ["jobs"]}, None), ({"jobs": None}, None), ({"jobs": ["x"]}, {"x"})]
)
def test_a_topic_without_ids_means_any_of_them(ear, speaking, said, jobs):
    events.changed(**said)

    [nudge] = ear.until(len)
    assert nudge.jobs == jobs


def test_within_a_transaction_it_waits_for_the_commit_and_a_rollback_tells_nothing(ear, speaking):
    with transaction.atomic():
        events.changed(topics=["letters"])
        transaction.set_rollback(True)
    with transaction.atomic():
        events.changed(topics=["queues"])
        connection.cursor().execute("SELECT 1")

    assert topics(ear.until(len)) == {"queues"}


@pytest.mark.parametrize("bad", [{"jobs": 7}, {"topics": None}, {"workers": object()}])
def test_it_never_raises(speaking, bad):
    events.changed(**bad)


def test_nothing_changed_is_nothing_told(ear, speaking):
    events.changed()
    events.changed(jobs=[], workers=[])
    events.changed(topics=["letters"])

    assert [nudge.topics for nudge in ear.until(len)] == [{"letters"}]


def test_what_could_not_be_sent_is_told_when_the_database_is_back(ear, speaking):
    with Proxy(database_url()) as proxy, through(proxy, "direct"):
        events.changed(jobs=["a"])
        ear.until(len)
        proxy.cut(refuse=True)
        for letter in "bcd":
            events.changed(jobs=[letter])
        proxy.open()

        heard = ear.until(lambda heard: {"b", "c", "d"} <= set().union(*(nudge.jobs for nudge in heard)))
        events.close(20)

    assert heard


def test_the_connection_is_given_back_when_nothing_is_said(ear, speaking, monkeypatch):
    monkeypatch.setattr(events, "IDLE", 0.05)
    events.changed(topics=["letters"])
    ear.until(len)

    def gone():
        with connections["default"].cursor() as cursor:
            cursor.execute(SENDERS)
            return cursor.fetchone()[0] == 0

    eventually(gone, "the sender's connection is closed")
    events.changed(topics=["queues"])
    assert topics(ear.until(len)) == {"queues"}


def test_a_silent_process_says_nothing_and_starts_no_thread():
    events.changed(topics=["letters"])

    assert not [thread for thread in threading.enumerate() if thread.name == "turno-screens"]


FORK = """
import os, django
django.setup()
from jobs import events
events.changed(topics=["letters"])
child = os.fork()
if child == 0:
    events.changed(topics=["queues"])
    events.close(20)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
events.changed(workers=["w"])
"""


@pytest.mark.crash
def test_after_a_fork_both_processes_speak_for_themselves_and_the_end_of_one_flushes(ear):
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("TURNO_", "DJANGO_"))}
    settings = {"TURNO_DATABASE__URL": database_url(), "DJANGO_SETTINGS_MODULE": "turno.settings"}

    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK], check=True, cwd=PROJECT, env=ours | settings, timeout=60
    )

    ear.until(lambda heard: topics(heard) == {"letters", "queues", "workers"})


@pytest.mark.parametrize("text", ["", "x", "[]", "{}", '{"topics": 1}', '{"topics": ["other"]}', "[" * 5000, "\x00"])
def test_what_is_no_nudge_is_none(text):
    assert Nudge.read(text) is None


@pytest.mark.parametrize("ids", ['"abc"', "[1]", '["' + "x" * 37 + '"]', '{"a": 1}'])
def test_ids_that_are_none_mean_any(ids):
    nudge = Nudge.read(f'{{"topics": ["jobs", "other"], "jobs": {ids}, "workers": []}}')

    assert (nudge.topics, nudge.jobs, nudge.workers) == ({"jobs"}, None, set())


@pytest.mark.crash
def test_when_redis_is_away_the_database_carries_it(ear, speaking, redis_server, settings):
    settings.CHANNEL_LAYERS = over_redis(redis_server.url)
    redis_server.stop()

    events.changed(topics=["queues"])

    assert topics(ear.until(len)) == {"queues"}
