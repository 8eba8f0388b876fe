"""The one-shot release after a worker's end in order: what it asks for as a proof, and what it does first."""

import pytest
from django.core.management import CommandError, call_command

from jobs import leadership
from jobs.ids import new_id
from jobs.models import Worker
from jobs.states import State
from tests.kit.processes import eventually
from tests.neighbours.stand_ins import register
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import make_job
from workers import release, runfiles, tree
from workers.release import NotProvenDead, release_everything

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed"), pytest.mark.crash]


def running(standing, **columns):
    return make_job(State.PROCESSING, worker=standing.worker_id, **columns)


def test_the_jobs_of_an_ended_worker_return_uncharged_and_its_row_and_file_are_settled(processes):
    standing = processes.worker()
    register(standing)
    leadership.lead(leadership.HOUSEKEEPING, standing.worker_id, lease=60)
    job, once = running(standing), running(standing, at_most_once=True)
    standing.kill()
    assert release_everything(standing.worker_id) == 2
    assert rows.edges(job.id) == [("Processing", "Enqueued", "released")]
    assert rows.edges(once.id) == [("Processing", "Failed", "never_repeated")]
    [attempt], [only] = rows.attempts(job.id), rows.attempts(once.id)
    assert (attempt["outcome"], attempt["counted"], only["outcome"]) == ("Interrupted", False, "Interrupted")
    assert (Worker.objects.get().state, processes.lock_file(standing).exists()) == ("Offline", False)
    assert leadership.lead(leadership.HOUSEKEEPING, new_id(), lease=1)


def test_what_the_worker_left_is_killed_before_its_jobs_return(processes):
    standing = processes.worker("program()\nif fork(): program(); stop()")
    register(standing)
    job = running(standing)
    left = eventually(lambda: len(found := processes.left_by(standing)) == 4 and found, "its processes are there")
    standing.kill()
    assert release_everything(standing.worker_id) == 1
    assert not any(tree.alive(pid) for pid in left)
    assert rows.state(job.id) == State.ENQUEUED


def test_a_worker_without_a_lock_file_is_released_on_the_word_of_its_process_s_end(processes):
    standing = processes.worker()
    register(standing)
    job = running(standing)
    processes.lock_file(standing).unlink()
    with pytest.raises(NotProvenDead):
        release_everything(standing.worker_id)
    standing.kill()
    assert release_everything(standing.worker_id) == 1
    assert rows.state(job.id) == State.ENQUEUED


def test_a_worker_whose_process_runs_is_not_released_nor_touched(processes):
    standing = processes.worker("program()")
    register(standing)
    job = running(standing)
    with pytest.raises(CommandError):
        call_command("turno", "release", str(standing.worker_id))
    assert len(processes.left_by(standing)) == 2
    assert rows.state(job.id) == State.PROCESSING


@pytest.mark.parametrize("elsewhere", [{"pid_namespace": "pid:[1]"}, {"boot_id": "another"}, {"pid_started": ""}])
def test_a_worker_of_another_place_is_not_released(processes, elsewhere):
    standing = processes.worker()
    register(standing, **elsewhere)
    job = running(standing)
    standing.kill()
    with pytest.raises(NotProvenDead):
        release_everything(standing.worker_id)
    assert rows.state(job.id) == State.PROCESSING


def test_a_lock_that_can_not_be_had_keeps_the_jobs_where_they_are(processes, monkeypatch):
    standing = processes.worker()
    register(standing)
    job = running(standing)
    standing.kill()
    processes.lock_file(standing).unlink()
    lock = runfiles.hold(standing.worker_id)  # in the hands of this very process, which kills all but itself
    monkeypatch.setattr(release, "PATIENCE", 0.5)
    with pytest.raises(NotProvenDead, match="still runs"):
        release_everything(standing.worker_id)
    assert rows.state(job.id) == State.PROCESSING
    lock.release()
    assert release_everything(standing.worker_id) == 1


def test_of_a_worker_that_nobody_knows_nothing_is_proven():
    job = make_job(State.PROCESSING)
    with pytest.raises(NotProvenDead):
        release_everything(job.worker)
    with pytest.raises(CommandError):
        call_command("turno", "release", str(job.worker))
    assert rows.state(job.id) == State.PROCESSING
