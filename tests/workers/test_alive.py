"""`manage.py turno alive`: a machine's workers live or not, said in bounded time whatever the database does."""

import os
import signal
import socket
import subprocess
import sys
import time
from uuid import uuid4

import pytest
from django.db import connection

from jobs import presence
from jobs.conf import overridden
from jobs.presence import Presence
from tests.kit.processes import PROJECT, database_url
from workers import alive, identity
from workers.alive import Sign, ask, judge

QUIET = {"TURNO_WORKER__SILENT_AFTER": "15s", "TURNO_WORKER__HEARTBEAT_INTERVAL": "5s"}


def _present(name="worker-1", pid=None, started=None, **other):
    pid = os.getpid() if pid is None else pid
    found = Presence(
        id=uuid4(),
        name=name,
        host="here",
        boot_id=identity.boot_id(),
        pid_namespace=other.get("namespace", identity.pid_namespace()),
        pid=pid,
        pid_started=identity.start_time(pid) if started is None else started,
        version="0",
        queues={"default": 1},
        types=[],
    )
    presence.beat(found)
    return found


def _age(worker, seconds):
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE turno.workers SET seen_at = now() - %s * interval '1 second' WHERE id = %s", [seconds, worker.id]
        )


@pytest.fixture
def table(clean_tables):
    """The answer is asked for on a connection of its own, as a health check does."""
    with overridden(database={"url": database_url()}):
        yield


def test_a_worker_that_gives_signs_of_life_is_alive(table):
    _present()
    assert ask() == (True, "Alive: worker-1")


def test_where_no_worker_is_none_is_alive(table):
    assert ask() == (False, "No worker runs here.")


def test_a_worker_that_is_silent_for_too_long_is_not_alive_though_its_process_is(table):
    _age(_present(), 16)
    well, words = ask()
    assert not well
    assert "worker-1 runs, and its last sign of life was 16 s ago" in words


def test_one_silent_worker_among_several_is_told(table):
    _present()
    # Two of one process do not exist: the other one is this process's parent.
    _age(_present("worker-2", os.getppid()), 60)
    assert not ask().well
    assert ask("worker-1").well
    assert not ask("worker-2").well


def test_what_died_is_nobody_to_wait_for(table):
    _present("crashed", started="1")  # this pid, another start
    assert not ask().well
    _present("successor")
    assert ask() == (True, "Alive: successor")


def test_workers_of_another_container_do_not_count(table):
    _present(namespace="pid:[1]")
    assert not ask().well


def test_a_worker_that_is_offline_does_not_count(table):
    presence.leave(_present().id)
    assert not ask().well


def test_a_draining_worker_is_alive(table):
    worker = _present()
    presence.beat(worker, state="Draining")
    assert ask().well


def test_a_name_that_nobody_has_is_said(table):
    _present()
    assert ask("worker-7") == (False, "No worker worker-7 runs here.")


def test_the_age_decides_by_the_setting():
    signs = [Sign("a", os.getpid(), identity.start_time(os.getpid()), 14.0)]
    assert judge(signs, None, 15.0).well
    assert not judge(signs, None, 14.0).well


def test_a_database_that_is_away_is_told_and_shows_no_password():
    with overridden(database={"url": "postgresql://turno:pass%20word@127.0.0.1:1/turno"}):
        well, words = ask()
    assert not well
    assert words.startswith("The database does not answer:")
    assert "word@" not in words
    assert "\n" not in words


@pytest.mark.parametrize("takes_connections", [True, False])
def test_a_database_that_hangs_is_not_waited_for(takes_connections):
    with socket.create_server(("127.0.0.1", 0), backlog=1 if takes_connections else 0) as frozen:
        port = frozen.getsockname()[1]
        with overridden(database={"url": f"postgresql://turno@127.0.0.1:{port}/turno"}):
            began = time.monotonic()
            well, words = ask(timeout=0.5)
        assert time.monotonic() - began < 5
    assert not well
    assert words == "The database did not answer within 0.5 s."


def _command(*arguments, **changes):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TURNO_", "DJANGO_"))}
    return subprocess.run(
        [sys.executable, "manage.py", "turno", "alive", *arguments],
        cwd=PROJECT,
        env={**env, **QUIET, "TURNO_LANG": "en", "TURNO_DATABASE__URL": database_url(), **changes},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_command_says_it_by_its_exit_code_and_one_line(table):
    missing = _command()
    assert (missing.returncode, missing.stdout, missing.stderr) == (1, "", "No worker runs here.\n")
    _present()
    found = _command("--name", "worker-1", "--timeout", "10s")
    assert (found.returncode, found.stdout, found.stderr) == (0, "Alive: worker-1\n", "")
    assert _command("--timeout", "never").returncode == 2


@pytest.mark.slow
def test_a_configuration_that_is_wrong_is_said_in_a_sentence(table):
    wrong = _command(TURNO_WORKER__SILENT_AFTR="1s")
    assert wrong.returncode == 1
    assert "TURNO_WORKER__SILENT_AFTR" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_it_loads_neither_django_nor_a_handler():
    code = "import sys, workers.alive; print([n for n in sys.modules if n.split('.')[0] in ('django', 'turno')])"
    env = {**os.environ, "TURNO_HANDLERS": "there.is.none"}
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, env=env, capture_output=True, text=True, check=True
    )
    assert told.stdout == "[]\n"


def test_django_s_own_door_leads_to_the_same_answer(table, monkeypatch, capsys):
    from django.core.management import call_command

    monkeypatch.setattr(alive, "ask", lambda name, timeout: alive.Answer(name == "a", f"{name} {timeout:g}"))
    for name, code in (("a", 0), ("b", 1)):
        with pytest.raises(SystemExit) as ended:
            call_command("turno", "alive", "--name", name, "--timeout", "3s")
        assert ended.value.code == code
    assert capsys.readouterr() == ("a 3\n", "b 3\n")


@pytest.mark.crash
def test_a_real_worker_is_alive_and_not_when_it_is_frozen_or_gone(fleet):
    env = {name: value for name, value in fleet.env.items() if name.startswith("TURNO_")}
    worker = fleet.start("a").wait_ready()
    assert _command(**env).returncode == 0
    worker.freeze()
    time.sleep(1.2)  # longer than worker.silent_after of these tests, shorter than the lease
    silent = _command(**env)
    assert (silent.returncode, "last sign of life" in silent.stderr) == (1, True)
    os.kill(worker.supervisor_pid, signal.SIGKILL)
    os.kill(worker.pid, signal.SIGKILL)
    worker.process.wait(60)
    assert _command(**env).stderr == "No worker runs here.\n"
