"""The last step of a worker process, and the release that its supervisor starts when something was left."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command

from jobs import presence
from tests.transitions.rows import make_job, state
from tests.workers.test_service import who
from workers import identity, protocol
from workers.release import NotProvenDead, release_everything
from workers.worker import End, Worker


class Over(BaseException):
    """Stands where the process would have ended."""


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (End(clean=True), 0),
        (End(clean=True, failed=True), protocol.EXIT_FAILED),
        (End(clean=False), protocol.EXIT_LEFT),
        (End(clean=False, failed=True), protocol.EXIT_LEFT),
    ],
)
def test_a_worker_leaves_by_the_code_that_its_supervisor_goes_by_and_keeps_its_lock_while_something_runs(
    end, code, monkeypatch
):
    left, released = [], []

    def over(number):
        left.append(number)
        raise Over

    monkeypatch.setattr(os, "_exit", over)
    monkeypatch.setattr("logging.shutdown", lambda: None)
    worker = SimpleNamespace(_lock=SimpleNamespace(release=lambda: released.append(True)))
    with pytest.raises(Over):
        Worker.leave(worker, end)
    assert left == [code]
    assert bool(released) == end.clean


@pytest.fixture
def dead_worker(clean_tables):
    """A worker whose process has ended and was reaped, and one job that it left running."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = identity.start_time(process.pid)
    process.communicate(b"\n", 60)
    worker = who(
        boot_id=identity.boot_id(),
        pid_namespace=identity.pid_namespace(),
        pid=process.pid,
        pid_started=started,
    )
    presence.beat(worker)
    return worker, make_job("Processing", worker=worker.id)


@pytest.mark.django_db(transaction=True, databases=["default", "engine"])
def test_the_release_returns_the_jobs_of_a_worker_that_has_ended(dead_worker, capsys):
    worker, job = dead_worker
    call_command("turno", "release", "--reaped", str(worker.id))
    assert "1" in capsys.readouterr().out
    assert state(job.id) == "Enqueued"


@pytest.mark.django_db(transaction=True, databases=["default", "engine"])
def test_of_a_worker_that_nobody_knows_nothing_is_proven_and_nothing_released(clean_tables):
    job = make_job("Processing")
    with pytest.raises(NotProvenDead):
        release_everything(job.worker)
    with pytest.raises(CommandError):
        call_command("turno", "release", str(job.worker))
    assert state(job.id) == "Processing"
