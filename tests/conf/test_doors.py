"""The doors of the processes: a person who mistyped a key reads one clear message, never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from turno import environment

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).resolve().parents[2]
MANAGE = [sys.executable, "manage.py"]
DAPHNE = [sys.executable, "-m", "daphne", "-p", "0", "turno.asgi:application"]


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TURNO_")}
    mine = {"TURNO_CONFIG": os.devnull, "TURNO_LANG": "en", **variables}
    return subprocess.run(
        command, env={**inherited, **mine}, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("command", [[*MANAGE, "check"], [*MANAGE, "migrate"], [*MANAGE, "help"], DAPHNE], ids=str)
def test_a_wrong_key_is_one_clear_message_at_every_door(command):
    refused = run(*command, TURNO_WORKER__LEASE_DURATIN="60s", TURNO_WEB__PORT="http")

    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.splitlines() == [
        "Turno's configuration can't be used:",
        "TURNO_WORKER__LEASE_DURATIN: there is no such key; did you mean TURNO_WORKER__LEASE_DURATION?",
        "TURNO_WEB__PORT: expected a whole number; got 'http'",
    ]


def test_a_valid_configuration_lets_the_command_run():
    accepted = run(*MANAGE, "check", TURNO_WORKER__LEASE_DURATION="90s")

    assert accepted.returncode == 0, accepted.stderr


def test_a_file_of_variables_that_may_not_be_read_is_named(monkeypatch):
    def refuse(path, override):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setenv("TURNO_LANG", "en")
    monkeypatch.setattr(environment, "load_dotenv", refuse)

    with pytest.raises(SystemExit) as ended:
        environment.load_env_file()
    assert ended.value.code == f"{environment.ENV_FILE} can't be read: Permission denied"


def test_a_file_of_variables_that_is_no_text_is_named(tmp_path):
    file = tmp_path / ".env"
    file.write_bytes(b"TURNO_LANG=\xe9\xff")
    script = (
        "from pathlib import Path; from turno import environment; "
        f"environment.ENV_FILE = Path({str(file)!r}); environment.prepare()"
    )

    refused = run(sys.executable, "-c", script)

    assert refused.returncode == 1
    assert refused.stderr == f"{file} is not UTF-8 text\n"


def test_the_file_of_variables_never_beats_the_environment(tmp_path):
    file = tmp_path / ".env"
    file.write_text("TURNO_WEB__PORT=9001\nTURNO_WEB__BIND=::1\n")
    script = (
        "from pathlib import Path; from turno import environment; from jobs.conf import conf; "
        f"environment.ENV_FILE = Path({str(file)!r}); environment.prepare(); print(conf().web.port, conf().web.bind)"
    )

    assert run(sys.executable, "-c", script, TURNO_WEB__PORT="9002").stdout == "9002 ::1\n"
