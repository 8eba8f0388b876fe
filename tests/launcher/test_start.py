"""The whole launcher, with stand-ins for the web process and the workers."""

import os
import re
import shutil
import signal
import socket
import stat

import psycopg
import pytest

from tests.launcher.stand_in import StandIn, until
from turno.launcher import envfile
from turno.launcher.postgres import PrivatePostgres
from turno.launcher.processes import alive, identity_of

pytestmark = pytest.mark.launcher_slow


def _url(stand_in: StandIn) -> str:
    return envfile.read(stand_in.root / ".env")["TURNO_DATABASE__URL"]


def _starts(stand_in: StandIn) -> int:
    with psycopg.connect(_url(stand_in)) as connection:
        row = connection.execute("SELECT count(*) FROM starts").fetchone()
    assert row is not None
    return int(row[0])


def test_a_start_shows_address_and_key_and_ctrl_c_stops_web_then_workers_then_the_database(stand_in):
    launcher = stand_in.start()
    running = dict(stand_in.state.processes)
    launcher.send_signal(signal.SIGINT)
    told = launcher.communicate()[0]
    assert launcher.returncode == 0
    assert f"http://127.0.0.1:{stand_in.port}" in told
    assert envfile.read(stand_in.root / ".env")["TURNO_API__KEY"] in told
    assert stand_in.events[0] == "web"
    assert sorted(stand_in.events[1:]) == ["worker-1", "worker-2", "worker-3"]
    assert "database system is shut down" in (stand_in.project.postgres() / "postgres.log").read_text()
    assert sorted(running) == ["postgres", "web", "worker-1", "worker-2", "worker-3"]
    assert not [identity for identity in running.values() if alive(identity)]


def test_a_second_start_finds_its_data_its_secrets_and_its_port_again(stand_in):
    stand_in.start().send_signal(signal.SIGTERM)
    stand_in.launchers[0].communicate()
    first = (stand_in.root / ".env").read_text()
    stand_in.start()
    assert (stand_in.root / ".env").read_text() == first
    assert _starts(stand_in) == 2


def test_the_login_is_shown_by_the_start_that_made_its_user_and_by_no_other(stand_in):
    stand_in.start().send_signal(signal.SIGTERM)
    password = envfile.read(stand_in.root / ".env")["DJANGO_SUPERUSER_PASSWORD"]
    assert f"admin, password {password}" in stand_in.launchers[0].communicate()[0]
    stand_in.start().send_signal(signal.SIGTERM)
    assert password not in stand_in.launchers[1].communicate()[0]


def test_a_start_that_does_not_find_its_data_again_says_so(stand_in):
    stand_in.start().send_signal(signal.SIGTERM)
    assert "empty tables" not in stand_in.launchers[0].communicate()[0]
    shutil.rmtree(stand_in.project.postgres() / "data")
    stand_in.start().send_signal(signal.SIGTERM)
    told = stand_in.launchers[1].communicate()[0]
    assert "empty tables" in told
    assert str(stand_in.project.postgres()) in told


def test_a_killed_launcher_takes_its_processes_along_and_the_next_start_works(stand_in):
    launcher = stand_in.start()
    left = dict(stand_in.state.processes)
    launcher.kill()
    launcher.communicate()
    stand_in.start()
    assert not [name for name, identity in left.items() if alive(identity)]
    assert _starts(stand_in) == 2


def test_processes_that_survived_a_killed_launcher_are_ended_before_the_next_start(stand_in):
    launcher = stand_in.start()
    left = dict(stand_in.state.processes)
    for name in ("worker-1", "postgres"):  # frozen, they can't follow the launcher
        os.kill(left[name].pid, signal.SIGSTOP)
    launcher.kill()
    launcher.communicate()
    for name in ("worker-1", "postgres"):
        os.kill(left[name].pid, signal.SIGCONT)
    stand_in.start()
    assert not [name for name, identity in left.items() if alive(identity)]


def test_a_second_start_beside_a_running_one_says_so_and_changes_nothing(stand_in):
    stand_in.start()
    before = dict(stand_in.state.processes)
    second = stand_in.run()
    assert second.returncode == 0
    assert f"Turno is already running here: http://127.0.0.1:{stand_in.port}" in second.stdout
    assert stand_in.state.processes == before


def test_status_and_stop_work_from_another_terminal(stand_in):
    assert stand_in.run("--status").returncode == 3
    launcher = stand_in.start()
    shown = stand_in.run("--estado")
    assert shown.returncode == 0
    assert f"Turno is running and ready: http://127.0.0.1:{stand_in.port}" in shown.stdout
    assert "worker-3" in shown.stdout
    stopped = stand_in.run("--parar")
    assert stopped.returncode == 0
    assert "Turno has stopped." in stopped.stdout
    assert launcher.communicate()[0].endswith("Turno has stopped.\n")
    assert stand_in.run("--status").returncode == 3


@pytest.mark.parametrize("name", ["web", "worker-2", "postgres"])
def test_a_process_that_dies_is_started_again_and_that_is_said(stand_in, name):
    launcher = stand_in.start()
    first = stand_in.state.processes[name]
    os.kill(first.pid, signal.SIGKILL)
    until(lambda: stand_in.state.processes.get(name, first) != first, f"{name} runs again")
    second = stand_in.state.processes[name]
    assert alive(second)
    launcher.send_signal(signal.SIGINT)
    told = launcher.communicate()[0]
    if name == "postgres":
        assert "PostgreSQL ended, starting it again" in told
    else:  # and the last line of its log, which has nothing to do with it, is left out
        assert re.search(rf"{name} ended \(SIGKILL\), starting it again in \d\.\d s$", told, re.MULTILINE)


def test_a_taken_port_gives_one_sentence_and_starts_nothing(stand_in):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # whoever had it before may linger
        taken.bind(("127.0.0.1", stand_in.port))
        taken.listen()
        told = stand_in.launch().communicate()[0]
    assert stand_in.launchers[0].returncode == 1
    assert f"Port {stand_in.port} is taken by another program" in told
    assert "Traceback" not in told
    assert not stand_in.project.postgres().exists()


def test_a_worker_that_never_starts_ends_the_start_with_its_last_words_and_leaves_nothing(stand_in):
    (stand_in.root / "sick").touch()
    launcher = stand_in.launch()
    told = launcher.communicate()[0]
    assert launcher.returncode == 1
    assert "does not start: the worker feels sick" in told
    assert not stand_in.state.processes


def test_a_failed_migration_ends_the_start_with_its_last_line(stand_in):
    (stand_in.root / "broken").write_text("Traceback …\nworker.lease: there is no such key")
    launcher = stand_in.launch()
    told = launcher.communicate()[0]
    assert launcher.returncode == 1
    assert "could not be updated: worker.lease: there is no such key" in told
    assert "Traceback" not in told


def test_the_secrets_file_is_for_its_owner_alone_and_keeps_what_stood_in_it(stand_in):
    (stand_in.root / ".env").write_text("# mine\nTURNO_API__KEY=chosen\n")
    stand_in.start()
    text = (stand_in.root / ".env").read_text()
    assert text.startswith("# mine\nTURNO_API__KEY=chosen\n")
    assert "TURNO_WEB__SECRET_KEY=" in text
    assert stat.S_IMODE((stand_in.root / ".env").stat().st_mode) == 0o600


def test_a_configured_database_is_used_and_no_private_one_is_started(stand_in, server: PrivatePostgres):
    server.start()
    url = server.url.replace("turno_private", "somebody")
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE somebody SUPERUSER LOGIN PASSWORD '{server.password}'")
    stand_in.start(TURNO_DATABASE__URL=url)
    assert "postgres" not in stand_in.state.processes
    assert not stand_in.project.postgres().exists()
    assert "TURNO_DATABASE__URL" not in envfile.read(stand_in.root / ".env")


def test_a_stop_during_the_start_ends_it_and_leaves_nothing(stand_in):
    (stand_in.root / "online").rmdir()  # the workers never get ready
    launcher = stand_in.launch()
    until(lambda: "web" in stand_in.state.processes, "the processes are started")
    left = dict(stand_in.state.processes)
    launcher.send_signal(signal.SIGINT)
    launcher.communicate()
    assert launcher.returncode == 0
    assert not [name for name, identity in left.items() if alive(identity)]


def test_the_launcher_is_the_lock_holder_that_stop_addresses(stand_in):
    launcher = stand_in.start()
    assert identity_of(launcher.pid) is not None
    assert str(launcher.pid) in stand_in.run("--status").stdout
