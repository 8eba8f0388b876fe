"""The two commands behind `./testar.sh`: a throw-away server around a command, and an environment from a list."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launcher.stand_in import until
from turno.launcher import install
from turno.launcher.paths import ROOT
from turno.launcher.processes import alive, identity_of
from turno.launcher.say import Console

COMMAND = [sys.executable, "-m", "turno.launcher.with_postgres", "--"]
ASK = "import os, psycopg; psycopg.connect(os.environ['TURNO_TEST_POSTGRES']).execute('SELECT 1'); raise SystemExit(7)"
WAIT = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1]).write_text(os.environ["TURNO_TEST_POSTGRES"])
while True:
    time.sleep(0.1)  # in naps: SIGINT has a handler, which a signal just before pause() begins would leave waiting
"""
INSTALLER = """
import pathlib, sys
from turno.launcher import install
from turno.launcher.say import Console
folder = pathlib.Path(sys.argv[1])
install._install(folder / "python", [folder / "base.txt"], folder / "log", Console())
"""


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TURNO_")}
    return {**kept, "TMPDIR": str(folder)}


@pytest.mark.launcher_slow
def test_a_command_finds_its_server_gives_its_exit_code_and_leaves_nothing(open_folder):
    done = subprocess.run([*COMMAND, sys.executable, "-c", ASK], cwd=ROOT, env=_environment(open_folder), check=False)
    assert done.returncode == 7
    assert list(open_folder.iterdir()) == []


@pytest.mark.launcher_slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_leaves_no_server_and_no_folder(open_folder, sign):
    mark = open_folder / "mark"
    command = [*COMMAND, sys.executable, "-c", WAIT, str(mark)]
    with subprocess.Popen(command, cwd=ROOT, env=_environment(open_folder)) as wrapper:
        until(lambda: mark.exists() and mark.read_text(), "the command runs")
        (lock,) = open_folder.glob("turno-test-*/postgres/data/postmaster.pid")
        server = identity_of(int(lock.read_text().split()[0]))
        assert server is not None
        wrapper.send_signal(sign)
    assert wrapper.returncode != 0
    assert not alive(server)
    assert list(open_folder.glob("turno-test-*")) == []


@pytest.mark.launcher_slow
def test_an_exact_environment_is_made_anew_when_its_list_changes(tmp_path):
    requirements, venv = tmp_path / "test.txt", tmp_path / ".venv"
    requirements.write_text("# one\n")
    install.ensure(venv, [requirements], tmp_path / "log", Console(io.StringIO()), exact=True)
    (venv / "stray").touch()
    assert not install.ensure(venv, [requirements], tmp_path / "log", Console(io.StringIO()), exact=True)
    assert (venv / "stray").exists()
    requirements.write_text("# two\n")
    assert install.ensure(venv, [requirements], tmp_path / "log", Console(io.StringIO()), exact=True)
    assert not (venv / "stray").exists()


def test_a_killed_launcher_takes_its_pip_along(tmp_path):
    requirements, pip = tmp_path / "base.txt", tmp_path / "python"
    requirements.touch()
    pip.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 600\n")
    pip.chmod(0o755)
    installer = subprocess.Popen([sys.executable, "-c", INSTALLER, tmp_path], cwd=ROOT)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"), "pip runs")
    found = identity_of(int((tmp_path / "pid").read_text()))
    assert found is not None
    installer.kill()
    installer.wait()
    until(lambda: not alive(found), "pip is gone")
