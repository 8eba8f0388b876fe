"""The one-shot release after a worker's end in order: what it asks for as a proof, and what it does first."""

import os
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command

from jobs import leadership
from jobs.conf import overridden
from jobs.ids import new_id
from jobs.models import Worker
from jobs.states import State
from tests.kit.processes import PROJECT, eventually
from tests.neighbours.stand_ins import register
from tests.races.two import lock, rival
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import make_job
from workers import release, runfiles, tree
from workers.management.commands.turno import Command
from workers.release import NotProvenDead, NotReleased, release_everything

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed"), pytest.mark.crash]


def running(standing, **columns):
    return make_job(State.PROCESSING, worker=standing.worker_id, **columns)


def test_the_jobs_of_an_ended_worker_return_uncharged_and_its_row_is_settled(processes):
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
    assert (Worker.objects.get().state, Worker.objects.get().settled_at is None) == ("Offline", False)
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


def test_of_a_worker_that_was_lost_the_jobs_are_charged_as_a_neighbour_charges_them(processes, capsys):
    standing = processes.worker()
    register(standing)
    job, once = running(standing), running(standing, at_most_once=True)
    standing.kill()
    call_command(Command(), "release", str(standing.worker_id), "--lost")
    assert "2" in capsys.readouterr().out
    assert rows.edges(job.id) == [("Processing", "Enqueued", "taken_back")]
    assert rows.edges(once.id) == [("Processing", "Failed", "never_repeated")]
    for made in (job, once):
        [attempt] = rows.attempts(made.id)
        assert (attempt["outcome"], attempt["counted"]) == ("WorkerLost", True)


@pytest.mark.parametrize("missing", ["file", "folder"])
def test_a_worker_without_a_lock_file_is_released_on_the_word_of_its_supervisor_alone(processes, tmp_path, missing):
    standing = processes.worker("program()")
    register(standing)
    job = running(standing)
    with pytest.raises(NotProvenDead):
        release_everything(standing.worker_id, reaped=True)
    standing.kill()
    [left] = eventually(lambda: list(processes.left_by(standing)), "something is left")
    folder = processes.run_dir
    if missing == "file":
        processes.lock_file(standing).unlink()
    else:
        (folder := tmp_path / "in the way").write_text("")
    with overridden(worker={"run_dir": str(folder)}):
        with pytest.raises(CommandError, match="supervisor"):
            call_command(Command(), "release", str(standing.worker_id))
        assert rows.state(job.id) == State.PROCESSING
        call_command(Command(), "release", str(standing.worker_id), "--reaped")
    assert not tree.alive(left)
    assert rows.state(job.id) == State.ENQUEUED


def test_the_word_of_the_supervisor_is_not_offered_to_people(capsys):
    with pytest.raises(SystemExit):
        call_command(Command(), "release", "--help")
    said = capsys.readouterr().out
    assert "--lost" in said
    assert "--reaped" not in said


AWAY = """
import sys
from turno.environment import prepare
prepare()
import django
django.setup()
from workers import release
release.PATIENCE = 0.5
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "turno", "release", sys.argv[1]])
"""


def test_a_database_that_stays_away_is_said_and_is_a_failure():
    environment = {**os.environ, "TURNO_DATABASE__URL": "postgresql://turno@127.0.0.1:9/turno"}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    command = [sys.executable, "-c", AWAY, str(new_id())]
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Not released: the database does not answer" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_job_whose_row_somebody_has_locked_is_waited_for_and_then_it_is_a_failure(processes, monkeypatch):
    standing = processes.worker()
    register(standing)
    jobs = [running(standing) for _ in range(2)]
    standing.kill()
    monkeypatch.setattr(release, "PATIENCE", 0.5)
    with rival() as other:
        lock(other, jobs[0].id)
        with pytest.raises(NotReleased, match="locked"):
            release_everything(standing.worker_id, lost=True)
        assert Worker.objects.get().settled_at is None
    assert release_everything(standing.worker_id, lost=True) == 1


def test_a_worker_whose_process_runs_is_not_released_nor_touched(processes):
    standing = processes.worker("program()")
    register(standing)
    job = running(standing)
    with pytest.raises(CommandError):
        call_command(Command(), "release", str(standing.worker_id))
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
    held = runfiles.hold(standing.worker_id)  # in the hands of this very process, which kills all but itself
    monkeypatch.setattr(release, "PATIENCE", 0.5)
    with pytest.raises(NotProvenDead, match="still runs"):
        release_everything(standing.worker_id)
    assert rows.state(job.id) == State.PROCESSING
    held.release()
    with pytest.raises(NotProvenDead, match="no lock file"):
        release_everything(standing.worker_id)
    assert release_everything(standing.worker_id, reaped=True) == 1


def test_of_a_worker_that_nobody_knows_nothing_is_proven():
    job = make_job(State.PROCESSING)
    with pytest.raises(NotProvenDead):
        release_everything(job.worker)
    with pytest.raises(CommandError):
        call_command(Command(), "release", str(job.worker))
    assert rows.state(job.id) == State.PROCESSING
