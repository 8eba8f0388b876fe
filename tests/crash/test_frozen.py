"""Stopped processes: whoever was frozen beyond its lease runs nothing beside its successor, and writes nothing."""

import signal

import pytest
from django.db import connection
from django.db.models.functions import Now

import tests.kit.beats
import tests.kit.handlers  # noqa: F401
from jobs.enqueue import enqueue
from jobs.models import Job, Worker
from tests.crash.beside import (
    ISOLATIONS,
    QUICK,
    assert_nothing_beside,
    assert_wrote_nothing_late,
    begin,
    last_line,
    words,
)
from tests.kit.look import attempts, job, started, steps, wait_state
from tests.kit.processes import eventually, thaw
from tests.transitions.rows import ago, make_job
from workers import tree

pytestmark = pytest.mark.crash
TYPES = [f"beats.{isolation}" for isolation in ISOLATIONS]
LEADER = "SELECT w.name FROM turno.leases AS l JOIN turno.workers AS w ON w.id = l.holder WHERE l.until > now()"


@pytest.fixture
def fleet(fleet):
    fleet.env |= QUICK
    return fleet


@pytest.mark.parametrize("types", [TYPES[:2], TYPES[2:]], ids=["async and thread", "process"])
def test_beside_the_successor_of_a_frozen_workers_job_nothing_runs(fleet, types):
    first = fleet.start("a").wait_ready()
    jobs = {type_: begin(fleet, type_, deaf=True) for type_ in types}
    frozen = first.freeze_worker()
    fleet.start("b").wait_ready()
    said = {type_: words(id_, 1) for type_, id_ in jobs.items()}
    for type_ in types:
        started(fleet, type_, times=2)
    thaw(frozen)
    eventually(lambda: not tree.alive(frozen), "the frozen worker was killed")
    first.wait_ready(2)  # its supervisor has started another
    for type_, id_ in jobs.items():
        eventually(lambda id_=id_: words(id_, 2) > 5, "the successor goes on")
        assert_nothing_beside(fleet, type_)
        assert_wrote_nothing_late(id_, said[type_])
        assert len(attempts(id_)) == 1
    eventually(lambda: first.events("supervisor.deadline_passed"), "it says supervisor.deadline_passed")


def test_a_worker_that_wakes_when_its_leases_have_just_ended_runs_nothing_beside_their_successors(fleet):
    first = fleet.start("a").wait_ready()
    jobs = {type_: begin(fleet, type_, deaf=True) for type_ in TYPES}
    frozen = first.freeze_worker()
    eventually(lambda: Job.objects.filter(lease_expires_at__lt=Now()).count() == len(jobs), "the leases are over")
    thaw(frozen)
    for type_ in jobs:
        started(fleet, type_, times=2)
    for type_, id_ in jobs.items():
        eventually(lambda id_=id_: words(id_, job(id_).executions) > 5, "a successor goes on")
        assert_nothing_beside(fleet, type_)
        assert {outcome for _, outcome, _ in attempts(id_)} <= {"WorkerLost", "Interrupted"}


def test_what_runs_in_a_worker_that_wakes_before_its_supervisor_ends_within_a_second_and_writes_nothing(fleet):
    first = fleet.start("a").wait_ready()
    jobs = {type_: begin(fleet, type_, deaf=True) for type_ in TYPES[:2]}
    frozen = first.freeze()
    fleet.start("b").wait_ready()
    said = {type_: words(id_, 1) for type_, id_ in jobs.items()}
    for type_, id_ in jobs.items():
        started(fleet, type_, times=2)
        assert ("Processing", "Enqueued", "worker_lost") in steps(id_)  # nobody could prove that it was dead
    thawed = thaw(frozen)
    eventually(lambda: not tree.alive(frozen), "the worker has ended itself")
    first.signal(signal.SIGCONT)
    first.wait_ready(2)
    for type_, id_ in jobs.items():
        assert last_line(fleet, type_, 1) < thawed + 1.0
        eventually(lambda id_=id_: words(id_, 2) > 5, "the successor goes on")
        assert_wrote_nothing_late(id_, said[type_])
        assert len(attempts(id_)) == 1


def test_a_child_keeps_its_deadline_while_its_worker_and_its_supervisor_are_frozen(fleet):
    type_ = "beats.process"
    first = fleet.start("a", "default:4,of-a:1").wait_ready()
    id_ = begin(fleet, type_, deaf=True)
    frozen = first.freeze()
    fleet.start("b").wait_ready()
    said = words(id_, 1)
    started(fleet, type_, times=2)
    assert_nothing_beside(fleet, type_)
    thaw(frozen)
    next_ = enqueue("probe.async", {"key": "next"}, queue="of-a").id
    wait_state(next_, "Succeeded")  # nothing runs in the worker that would have to end with it
    first.signal(signal.SIGCONT)
    eventually(lambda: words(id_, 2) > 5, "the successor goes on")
    assert_nothing_beside(fleet, type_)
    assert_wrote_nothing_late(id_, said)
    assert len(attempts(id_)) == 1


@pytest.mark.both
def test_a_frozen_leader_is_replaced_and_leads_no_more_until_it_has_won_again(fleet):
    workers = {name: fleet.start(name).wait_ready() for name in ("a", "b")}

    def leader():
        with connection.cursor() as cursor:
            cursor.execute(LEADER)
            row = cursor.fetchone()
        return row and row[0]

    first = eventually(leader, "one of them leads")
    second = "b" if first == "a" else "a"
    frozen = workers[first].freeze()
    eventually(lambda: leader() == second, "the other one leads")
    lost = make_job("Processing", type="probe.async", queue="nobody-serves-it", lease_expires_at=ago(600))
    eventually(lambda: job(lost.id).state != "Processing", "the other one recovers what is lost")
    workers[first].signal(signal.SIGCONT)
    thaw(frozen)
    eventually(lambda: Worker.objects.get(name=first).state == "Online", "the thawed one is back")
    for _ in range(5):
        lost = make_job("Processing", type="probe.async", queue="nobody-serves-it", lease_expires_at=ago(600))
        eventually(lambda lost=lost: job(lost.id).state != "Processing", "what is lost is recovered")
        assert leader() == second
    assert len(workers[second].events("job.worker_lost")) == 6
    assert not workers[first].events("job.worker_lost")
    workers[second].freeze()
    eventually(lambda: leader() == first, "the thawed one has won again")
    Job.objects.filter(queue="nobody-serves-it").delete()  # made by hand: they have no history
