"""SIGKILL of each process of a worker: what it ran comes back at once, and nothing of it is left alive."""

import os
import signal

import pytest

import tests.kit.beats
import tests.kit.handlers  # noqa: F401
from jobs.models import JobAttempt
from tests.crash.beside import ISOLATIONS, QUICK, assert_nothing_beside, begin
from tests.kit.look import attempts, job, started, steps
from tests.kit.processes import eventually
from workers import tree

pytestmark = pytest.mark.crash
TYPES = [f"beats.{isolation}" for isolation in ISOLATIONS]
# No lease ends in a test of a minute: what comes back was taken back.
PATIENT = {"TURNO_WORKER__LEASE_DURATION": "60s"}


@pytest.fixture
def fleet(fleet):
    fleet.env |= QUICK | PATIENT
    return fleet


def process_of(fleet, key, execution=1):
    """The pid that the handler told."""
    [pid] = {int(parts[3]) for parts in fleet.starts(key) if parts[2] == str(execution)}
    return pid


def assert_taken_back(fleet, id_, type_):
    started(fleet, type_, times=2)
    assert [step for step in steps(id_) if step[0] == "Processing"] == [("Processing", "Enqueued", "taken_back")]
    assert attempts(id_) == [(1, "WorkerLost", True)]
    assert job(id_).lost_count == 1
    assert_nothing_beside(fleet, type_)


def test_a_killed_workers_jobs_are_taken_back_at_once_and_nothing_of_it_is_left(fleet):
    worker = fleet.start("a").wait_ready()
    jobs = {type_: begin(fleet, type_, deaf=True) for type_ in TYPES}
    left = worker.tree()
    worker.kill_worker()
    for type_, id_ in jobs.items():
        assert_taken_back(fleet, id_, type_)  # by the one that the supervisor started in its place
    assert not [pid for pid in left if tree.alive(pid)]


def test_a_killed_supervisors_worker_dies_with_it_and_a_neighbour_takes_its_jobs_back(fleet):
    worker = fleet.start("a").wait_ready()
    jobs = {type_: begin(fleet, type_, deaf=True) for type_ in TYPES}
    other = fleet.start("b").wait_ready()
    worker.signal(signal.SIGKILL)
    for type_, id_ in jobs.items():
        assert_taken_back(fleet, id_, type_)
    eventually(lambda: other.events("worker.taken_back"), "it says worker.taken_back")
    eventually(lambda: not fleet.living("a"), "nothing of it is left")


def orphaned(fleet, **env):
    """All of a worker's tree is killed at once but the program that its handler started; a neighbour takes over."""
    worker = fleet.start("a").wait_ready()
    id_ = begin(fleet, "beats.offspring")
    fleet.start("b", **env).wait_ready()
    eventually(lambda: fleet.lines("beat"), "it beats")
    orphan = int(fleet.lines("beat")[0][3])
    doomed = [worker.supervisor_pid, *worker.tree()]
    doomed.remove(orphan)
    for number in (signal.SIGSTOP, signal.SIGKILL):  # nobody sees another one's death
        for pid in doomed:
            os.kill(pid, number)
    assert tree.alive(orphan)
    started(fleet, "beats.offspring", times=2)
    eventually(lambda: [parts[2] for parts in fleet.lines("beat")].count("2") >= 10, "the successor's beats")
    assert_nothing_beside(fleet, "beats.offspring")
    assert ("Processing", "Enqueued", "taken_back") in steps(id_)


def test_what_a_dead_workers_handler_left_running_is_killed_before_its_job_runs_again(fleet):
    orphaned(fleet)
    eventually(lambda: not fleet.living("a"), "nothing of it is left")


def test_a_killed_child_costs_one_execution_of_its_own_job_and_nobody_elses(fleet):
    worker = fleet.start("a").wait_ready()
    jobs = {type_: begin(fleet, type_) for type_ in TYPES}
    os.kill(process_of(fleet, "beats.process"), signal.SIGKILL)
    started(fleet, "beats.process", times=2)
    assert_nothing_beside(fleet, "beats.process")
    assert ("Processing", "Enqueued", "worker_lost") in steps(jobs["beats.process"])
    [lost] = JobAttempt.objects.all()  # the others' executions go on
    assert (lost.outcome, lost.signal, lost.counted) == ("WorkerLost", signal.SIGKILL, True)
    assert "SIGKILL" in lost.error_message
    assert lost.peak_memory > 1_000_000
    assert not worker.events("forkserver.lost")
    assert {type_: len(fleet.starts(type_)) for type_ in TYPES} == {t: 1 + (t == "beats.process") for t in TYPES}


def test_a_killed_forkserver_costs_what_ran_in_its_children_and_is_replaced(fleet):
    worker = fleet.start("a").wait_ready()
    jobs = {type_: begin(fleet, type_) for type_ in TYPES}
    server, child = worker.forkserver(), process_of(fleet, "beats.process")
    os.kill(server, signal.SIGKILL)
    started(fleet, "beats.process", times=2)
    assert_nothing_beside(fleet, "beats.process")
    assert not tree.alive(child)
    eventually(lambda: worker.events("forkserver.lost"), "it says forkserver.lost")
    assert worker.forkserver() != server
    assert attempts(jobs["beats.process"]) == [(1, "WorkerLost", True)]
    assert [attempts(jobs[type_]) for type_ in TYPES[:2]] == [[], []]
    assert len(worker.events("worker.ready")) == 1
