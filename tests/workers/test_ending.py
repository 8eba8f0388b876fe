"""The last step of a worker process, and the proof that a release asks for."""

import os
import sys

import pytest
from django.core.management import CommandError, call_command

from jobs import presence
from jobs.ids import new_id
from tests.transitions.rows import make_job, state
from tests.workers.test_service import who
from workers import identity
from workers.release import NotProvenDead, release_everything
from workers.worker import EXIT_FAILED, End, end_process


class Replaced(BaseException):
    """Stands where the process would be another program, or would have ended."""


@pytest.fixture
def last_step(monkeypatch):
    """What `end_process` did in the end, without doing it; the signals stay as they are."""
    done = []

    def said(*arguments):
        done.append(arguments)
        raise Replaced

    monkeypatch.setattr(os, "_exit", said)
    monkeypatch.setattr(os, "execve", said)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("logging.shutdown", lambda: None)
    return done


def test_a_worker_that_failed_says_so_by_its_exit_code_clean_or_not(last_step):
    worker = new_id()
    with pytest.raises(Replaced):
        end_process(worker, End(clean=True, code=EXIT_FAILED))
    assert last_step == [(EXIT_FAILED,)]
    last_step.clear()
    with pytest.raises(Replaced):
        end_process(worker, End(clean=False, code=EXIT_FAILED))
    command = last_step[0][1]
    assert command[-4:] == ["release", str(worker), "--exit-code", str(EXIT_FAILED)]


def test_a_worker_whose_program_is_gone_ends_all_the_same(last_step, monkeypatch):
    def missing(*_):
        raise FileNotFoundError(sys.executable)

    monkeypatch.setattr(os, "execve", missing)
    with pytest.raises(Replaced):
        end_process(new_id(), End(clean=False, code=0))
    assert last_step == [(EXIT_FAILED,)]


@pytest.fixture
def dead_worker(clean_tables):
    """A worker that was this very process, and one job that it left running."""
    pid = identity.this_pid()
    worker = who(boot_id=identity.boot_id(), pid_namespace=identity.pid_namespace(), pid=pid)
    presence.beat(worker)
    return worker, make_job("Processing", worker=worker.id)


@pytest.mark.django_db(transaction=True, databases=["default", "engine"])
def test_the_release_returns_the_jobs_and_ends_as_the_worker_would_have(dead_worker):
    worker, job = dead_worker
    with pytest.raises(SystemExit) as ended:
        call_command("turno", "release", str(worker.id), exit_code=EXIT_FAILED)
    assert ended.value.code == EXIT_FAILED
    assert state(job.id) == "Enqueued"


@pytest.mark.django_db(transaction=True, databases=["default", "engine"])
def test_of_a_worker_that_nobody_knows_nothing_is_proven_and_nothing_released(clean_tables):
    job = make_job("Processing")
    with pytest.raises(NotProvenDead):
        release_everything(job.worker)
    with pytest.raises(CommandError):
        call_command("turno", "release", str(job.worker))
    assert state(job.id) == "Processing"
