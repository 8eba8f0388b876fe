"""The private PostgreSQL: its own data, port and password; killed, restarted, refused with a sentence."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.launcher.stand_in import until
from turno.launcher import binaries, cluster
from turno.launcher.binaries import Binaries
from turno.launcher.errors import LauncherError
from turno.launcher.paths import ROOT
from turno.launcher.postgres import QUICK, PrivatePostgres
from turno.launcher.processes import alive, identity_of

pytestmark = pytest.mark.launcher_slow

STARTER = """
import sys, signal, pathlib
from turno.launcher.postgres import QUICK, PrivatePostgres
server = PrivatePostgres(pathlib.Path(sys.argv[1]), options=QUICK)
server.start()
print(server.process.pid, flush=True)
signal.pause()
"""


def _rows(server: PrivatePostgres) -> int:
    with psycopg.connect(server.url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (x int)")
        connection.execute("INSERT INTO kept VALUES (1)")
        row = connection.execute("SELECT count(*) FROM kept").fetchone()
    assert row is not None
    return int(row[0])


def test_a_restart_keeps_data_port_and_password(server):
    server.start()
    first = server.url
    assert _rows(server) == 1
    server.restart()
    assert server.url == first
    assert _rows(server) == 2


def test_another_object_on_the_same_folder_finds_everything_again(server):
    server.start()
    first = server.url
    server.stop()
    again = PrivatePostgres(server.folder, options=QUICK)
    again.start()
    try:
        assert again.url == first
    finally:
        again.stop()


@pytest.mark.parametrize("mode", ["immediate", "kill"])
def test_committed_rows_survive_a_crash(server, mode):
    server.start()
    _rows(server)
    server.restart(mode)
    assert _rows(server) == 2


def test_a_killed_server_ends_the_sessions_of_its_clients(server):
    server.start()
    with psycopg.connect(server.url) as connection:
        server.kill()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_nobody_gets_in_without_the_password(server):
    server.start()
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(server.url.replace(server.password, "guessed"))
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(host=str(server.folder), port=server.port, user="turno_private", dbname="postgres")


def test_it_listens_on_loopback_alone(server):
    server.start()
    with psycopg.connect(server.url) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("127.0.0.1",)


def test_data_and_password_are_for_the_service_user_alone(server):
    server.start()
    assert server.folder.stat().st_mode & 0o077 == 0
    assert (server.folder / "password").stat().st_mode & 0o077 == 0


def test_a_server_whose_starter_is_killed_goes_by_itself_and_the_next_start_works(open_folder):
    folder = open_folder / "postgres"
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert starter.stdout is not None
    found = identity_of(int(starter.stdout.readline()))
    assert found is not None
    starter.kill()
    starter.communicate()
    if sys.platform == "linux":
        until(lambda: not alive(found), "the server follows its starter")
    again = PrivatePostgres(folder, options=QUICK)
    again.start()
    again.stop()
    assert not alive(found)


def test_a_server_left_on_the_same_data_is_ended_by_the_next_start(server):
    server.start()
    assert server.process is not None
    again = PrivatePostgres(server.folder, options=QUICK)
    again.start()
    try:
        assert server.process.poll() is not None
        assert again.running
    finally:
        again.stop()


def test_the_pid_of_a_stranger_in_the_lock_file_is_not_touched(server):
    server.start()
    server.stop()
    with subprocess.Popen(["sleep", "60"]) as stranger:
        (server.data / "postmaster.pid").write_text(f"{stranger.pid}\n")
        assert cluster.end_leftover(server.data) is False
        assert stranger.poll() is None
        stranger.kill()


def test_a_remembered_port_that_is_taken_is_replaced(server):
    server.start()
    first = server.port
    server.stop()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", first))
        taken.listen()
        server.start()
    assert server.port != first
    assert _rows(server) == 1


def test_a_fixed_port_that_is_taken_gives_a_sentence(open_folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = PrivatePostgres(open_folder / "postgres", port=taken.getsockname()[1], options=QUICK)
        with pytest.raises(LauncherError, match="is taken by another program"):
            server.start()


def test_an_interrupted_initdb_blocks_nothing(server):
    (server.folder / "data.new" / "base").mkdir(parents=True)
    (server.folder / "data").mkdir()
    server.start()
    assert _rows(server) == 1


def test_data_of_another_major_is_refused_with_a_sentence(server):
    server.start()
    server.stop()
    (server.data / "PG_VERSION").write_text("12\n")
    with pytest.raises(LauncherError, match=r"was made by PostgreSQL 12, and this machine has \d+"):
        server.start()


def test_without_any_server_binaries_the_sentence_names_the_way_out(open_folder):
    server = PrivatePostgres(open_folder / "postgres", options=QUICK, available=[])
    with pytest.raises(LauncherError, match="TURNO_DATABASE__URL"):
        server.start()


def test_among_several_servers_the_one_that_made_the_data_is_chosen(open_folder):
    found = binaries.all_binaries()[0]
    newer = Binaries(Path("/nowhere"), found.major + 1, "99.1")
    first = PrivatePostgres(open_folder / "postgres", options=QUICK, available=[found])
    first.start()
    first.stop()
    again = PrivatePostgres(open_folder / "postgres", options=QUICK, available=[newer, found])
    again.start()
    again.stop()


def test_a_long_path_costs_the_socket_and_nothing_else(open_folder):
    folder = open_folder / ("long" * 20) / "postgres"
    server = PrivatePostgres(folder, options=QUICK)
    server.start()
    try:
        assert _rows(server) == 1
    finally:
        server.stop()


def test_a_path_with_a_comma_a_quote_and_spaces_is_one_path(open_folder):
    server = PrivatePostgres(open_folder / 'jobs é, "ação"' / "postgres", options=QUICK)
    server.start()
    try:
        assert _rows(server) == 1
        assert list(server.folder.glob(".s.PGSQL.*"))
    finally:
        server.stop()


def test_a_zombie_that_holds_the_lock_file_is_waited_for(server):
    server.start()
    assert server.process is not None
    zombie = server.process
    os.kill(zombie.pid, signal.SIGKILL)
    server.process = None  # nobody reaps it
    until(lambda: identity_of(zombie.pid) is None, "the server is a zombie")
    reaped = []

    def launch(*arguments: object) -> bool:
        if not reaped:
            reaped.append(server._spawn_of_old(*arguments))
            zombie.wait()
        else:
            server._spawn_of_old(*arguments)

    server._spawn_of_old, server._spawn = server._spawn, launch
    server.start()
    assert server.running


def test_the_servers_of_the_machine_are_found_newest_first(tmp_path):
    for major in (14, 15, 17):
        folder = tmp_path / f"usr/lib/postgresql/{major}/bin"
        folder.mkdir(parents=True)
        (folder / "initdb").touch()
        (folder / "postgres").write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {major}.4'\n")
        (folder / "postgres").chmod(0o755)
    found = [item for item in binaries.system_binaries(tmp_path) if item.folder.is_relative_to(tmp_path)]
    assert [(item.major, item.version) for item in found] == [(17, "17.4"), (15, "15.4")]
