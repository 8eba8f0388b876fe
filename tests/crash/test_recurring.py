"""Recurring jobs under real workers of which one leads: killed, frozen, thawed, each instant has one job."""

import signal
from datetime import timedelta

import pytest
from django.db import connection

import tests.kit.handlers  # noqa: F401  (declares the types)
from jobs.models import Job, RecurringJob, Worker
from jobs.schedules import Wanted, create
from tests.crash.test_frozen import LEADER
from tests.kit.look import wait_state
from tests.kit.processes import eventually, thaw
from tests.transitions.recurring import instants, make_recurring, recurring

pytestmark = pytest.mark.crash
EACH_SECOND = "* * * * * *"


def leader():
    with connection.cursor() as cursor:
        cursor.execute(LEADER)
        row = cursor.fetchone()
    return row and row[0]


def fires(id_, more=2):
    """Returns when it has fired so many times more."""
    before = len(instants(id_))
    eventually(lambda: len(instants(id_)) >= before + more, f"it fires {more} times more")


def test_a_leader_that_is_killed_or_frozen_leaves_no_instant_out_and_none_is_fired_twice(fleet):
    workers = {name: fleet.start(name).wait_ready() for name in ("a", "b")}
    id_ = create(Wanted("each-second", "probe.async", EACH_SECOND, overlap="allow", misfire="all"), actor="ana")
    fires(id_)
    killed = eventually(leader, "one leads")
    workers[killed].kill_worker()
    fires(id_)
    first = eventually(leader, "one leads")
    frozen = workers[first].freeze()
    eventually(lambda: leader() not in (None, first), "another one leads")
    fires(id_)
    workers[first].signal(signal.SIGCONT)
    thaw(frozen)
    eventually(lambda: Worker.objects.filter(name=first, state="Online").exists(), "the thawed one is back")
    fires(id_)
    RecurringJob.objects.filter(id=id_).update(enabled=False)
    found = instants(id_)
    assert found == [found[0] + timedelta(seconds=n) for n in range(len(found))]
    assert recurring(id_)["skipped"] == 0
    eventually(lambda: not Job.objects.exclude(state="Succeeded").exists(), "each has run")
    starts = [(line[1], line[2]) for line in fleet.starts()]
    assert len(starts) == len(set(starts))
    assert len({key for key, _execution in starts}) == len(found)  # what a killed worker had begun, begins again


def test_a_bad_one_stops_nothing_and_is_told_once(fleet):
    worker = fleet.start("a").wait_ready()
    bad = [make_recurring(type="probe.async", timezone="Mars/Olympus"), make_recurring(type="probe.async", cron="x y")]
    good = create(Wanted("good", "probe.async", EACH_SECOND, overlap="allow"), actor="ana")
    fires(good)
    assert [bool(recurring(id_)["error"]) for id_ in bad] == [True, True]
    assert len(worker.events("recurring.error")) == 2


def test_a_slow_one_without_overlap_runs_alone_and_what_it_lost_is_counted(fleet):
    fleet.start("a").wait_ready()
    slow = Wanted("slow", "probe.async", EACH_SECOND, payload={"key": "slow", "hold": 1.5})
    id_ = create(slow, actor="ana")
    eventually(lambda: recurring(id_)["skipped"] >= 2, "instants were left out")
    fires(id_, 1)
    active = Job.objects.filter(recurring_job_id=id_).exclude(state__in=["Succeeded", "Failed", "Cancelled"])
    assert active.count() <= 1
    assert recurring(id_)["last_skipped_why"] == "overlap"


def test_what_becomes_nearer_wakes_who_sleeps_until_the_next(fleet):
    """And the file's own are there when a worker has started."""
    fleet.env |= {
        "TURNO_SCHEDULER__INTERVAL": "1h",
        "TURNO_RECURRING_JOBS__DECLARED__TYPE": "probe.async",
        "TURNO_RECURRING_JOBS__DECLARED__CRON": "0 0 1 1 *",
        "TURNO_RECURRING_JOBS__BAD__TYPE": "probe.async",
        "TURNO_RECURRING_JOBS__BAD__CRON": "x",
    }
    fleet.start("a").wait_ready()
    eventually(lambda: RecurringJob.objects.filter(name="declared", source="declared").exists(), "it is there")
    told = Worker.objects.filter(name="a", problems__contains=[{"part": "recurring_jobs"}])
    eventually(told.exists, "the bad one is told")
    eventually(leader, "it leads")
    id_ = create(Wanted("soon", "probe.async", EACH_SECOND), actor="ana")
    eventually(lambda: instants(id_), "it has fired")
    wait_state(Job.objects.filter(recurring_job_id=id_).first().id, "Succeeded")
