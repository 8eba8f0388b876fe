"""The supervisor over the real worker."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tests.kit.handlers  # noqa: F401
from jobs.enqueue import enqueue
from jobs.models import Worker
from tests.kit.look import attempts, started, wait_state
from tests.kit.processes import LAPSING, PROJECT, Fleet, WorkerProcess, eventually
from turno.launcher import processes
from workers import tree

pytestmark = pytest.mark.crash


def _row(name: str = "a") -> Worker | None:
    return Worker.objects.filter(name=name, state="Online").order_by("-started_at").first()


def _of(process: WorkerProcess) -> int:
    """The pid of the worker below its supervisor."""
    row = eventually(_row, "the worker is online")
    assert tree.children(process.supervisor_pid) == [row.pid]
    return row.pid


def _run(fleet: Fleet, *command: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *command],
        cwd=PROJECT,
        env=fleet.env | {"TURNO_LANG": "en"} | env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_runworker_is_a_small_supervisor_over_the_process_that_registers(fleet: Fleet):
    process = fleet.start().wait_ready()
    assert _of(process) != process.supervisor_pid
    status = Path(f"/proc/{process.supervisor_pid}/status").read_text()
    memory = int(status.partition("VmRSS:")[2].split()[0])
    assert "Threads:\t1\n" in status
    assert memory < 20 * 1024
    process.signal(signal.SIGTERM)
    assert process.wait() == 0
    assert process.events("supervisor.ended")[0]["code"] == 0
    assert Worker.objects.get(name="a").state == "Offline"


def test_the_interrupt_of_a_service_manager_to_all_processes_lets_a_job_finish(fleet: Fleet):
    process = fleet.start("a", "default:4", "--shutdown-timeout", "20s").wait_ready()
    id_ = enqueue("probe.async", {"key": "short", "hold": 1.5}).id
    started(fleet, "short")
    for pid in (process.supervisor_pid, _of(process)):
        os.kill(pid, signal.SIGTERM)
    assert process.wait() == 0
    wait_state(id_, "Succeeded")
    assert attempts(id_) == [(1, "Succeeded", True)]


def test_a_second_request_gives_everything_back_at_once(fleet: Fleet):
    process = fleet.start("a", "default:4", "--shutdown-timeout", "10 min").wait_ready()
    id_ = enqueue("probe.async", {"key": "long", "hold": 600}).id
    started(fleet, "long")
    process.signal(signal.SIGTERM)
    eventually(lambda: process.events("worker.stopping"), "it stops")
    process.signal(signal.SIGTERM)
    assert process.wait(60) == 0
    wait_state(id_, "Enqueued")


def test_a_thread_that_will_not_stop_is_killed_and_its_job_returned_uncharged(fleet: Fleet):
    process = fleet.start("a", "default:4", "--shutdown-timeout", "200ms").wait_ready()
    id_ = enqueue("probe.thread", {"key": "deaf", "spin": 600}).id
    started(fleet, "deaf")
    process.signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert process.events("supervisor.released")[0]["code"] == 0
    wait_state(id_, "Enqueued")
    assert [counted for _ordinal, _outcome, counted in attempts(id_)] == [False]
    assert not fleet.lines("end")


def test_a_stopped_worker_is_dead_before_its_successor_runs_the_job(fleet: Fleet):
    process = fleet.start(**LAPSING).wait_ready()
    id_ = enqueue("probe.async", {"key": "frozen", "hold": 600}).id
    started(fleet, "frozen")
    worker = _of(process)
    os.kill(worker, signal.SIGSTOP)
    eventually(lambda: process.events("supervisor.deadline_passed"), "its deadline has passed")
    eventually(lambda: len(fleet.starts("frozen")) == 2, "the job runs again")
    assert not tree.alive(worker)
    assert attempts(id_)[0][1] == "WorkerLost"


def test_a_killed_worker_is_started_again_with_the_same_arguments(fleet: Fleet):
    process = fleet.start().wait_ready()
    first = _of(process)
    os.kill(first, signal.SIGKILL)
    eventually(lambda: len(process.events("worker.ready")) == 2, "another is ready")
    assert _of(process) != first
    wait_state(enqueue("probe.async", {"key": "next"}).id, "Succeeded")


def test_several_processes_have_names_of_their_own(fleet: Fleet):
    process = fleet.start("a", "default:1", "--processes", "2")
    eventually(lambda: len(process.events("worker.ready")) == 2, "both are ready")
    assert sorted(event["worker"] for event in process.events("worker.ready")) == ["a-1", "a-2"]
    process.signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert set(Worker.objects.values_list("state", flat=True)) == {"Offline"}


def _last_words(done: "subprocess.CompletedProcess[str]") -> str:
    """The last line that is no event of the supervisor's."""
    return [line for line in done.stderr.splitlines() if '"logger":"workers.supervision"' not in line][-1]


@pytest.mark.parametrize("arguments", [["--processes", "0"], ["--queues", "x"], ["--no-such-option"]])
def test_wrong_arguments_end_it_with_2_and_a_sentence(fleet: Fleet, arguments: list[str]):
    done = _run(fleet, "manage.py", "runworker", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not _last_words(done).startswith("{")


def test_a_configuration_that_can_not_be_used_ends_it_and_is_the_last_that_is_said(fleet: Fleet):
    done = _run(fleet, "manage.py", "runworker", TURNO_WORKER__LEASE_DURATION="soon")
    assert done.returncode == 1
    assert "TURNO_WORKER__LEASE_DURATION" in _last_words(done)
    assert '"event":"supervisor.worker_failed"' in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_a_question_is_answered_without_a_worker(fleet: Fleet, option: str):
    done = _run(fleet, "manage.py", "runworker", option)
    assert done.returncode == 0
    assert "supervisor." not in done.stderr
    assert ("--processes" in done.stdout) == (option == "--help")


def test_who_calls_the_command_without_a_supervisor_gets_one(fleet: Fleet):
    code = "from django.core.management import call_command; import django; django.setup(); "
    code += "call_command('runworker', queues={'default': 2}, name='called', shutdown_timeout=1.5)"
    env = fleet.env | {"DJANGO_SETTINGS_MODULE": "turno.settings"}
    with (fleet.folder / "called.log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-c", code], cwd=PROJECT, env=env, stderr=log, stdout=log)
    try:
        row = eventually(lambda: _row("called"), "the worker is online")
        assert tree.children(process.pid) == [row.pid]
        assert row.queues == {"default": 2}
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait(60)


def test_a_killed_launcher_stops_its_workers_in_order(fleet: Fleet, tmp_path: Path):
    code = (
        "import signal, sys, time; from pathlib import Path; from turno.launcher.processes import spawn\n"
        "spawn([sys.executable, 'manage.py', 'runworker', '--name', 'a'], log=Path(sys.argv[1]), "
        "death_signal=signal.SIGTERM, cwd=Path.cwd())\ntime.sleep(600)"
    )
    log = tmp_path / "spawned.log"
    launcher = subprocess.Popen([sys.executable, "-c", code, str(log)], cwd=PROJECT, env=fleet.env)
    try:
        row = eventually(_row, "the worker is online")
        (supervisor,) = processes.children(launcher.pid)
        assert tree.children(supervisor.pid) == [row.pid]
    finally:
        launcher.kill()
        launcher.wait(60)
    eventually(lambda: not tree.alive(supervisor.pid), "its supervisor has ended")
    assert '"event":"supervisor.ended","logger":"workers.supervision","code":0' in log.read_text()
    assert Worker.objects.get(name="a").state == "Offline"
