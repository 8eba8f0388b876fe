"""`--docker`, with a stand-in for Docker: what it needs, what it writes, what it waits for and what it says."""

import json
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docker.composed import COMPOSE
from tests.launcher.stand_in import until
from turno.launcher import envfile
from turno.launcher.paths import ROOT

pytestmark = pytest.mark.slow
FAKE = Path(__file__).with_name("fake_docker.py")
SECRETS = (
    "TURNO_API__KEY", "TURNO_WEB__SECRET_KEY", "DJANGO_SUPERUSER_PASSWORD",
    "POSTGRES_PASSWORD", "REDIS_PASSWORD", "RABBITMQ_PASSWORD",
)  # fmt: skip
PORTS = ("POSTGRES_PORT", "REDIS_PORT", "RABBITMQ_PORT", "RABBITMQ_PANEL_PORT")


class Machine:
    """A copy of the launcher and the Compose file, beside a `docker` that does as it is told."""

    def __init__(self, folder: Path) -> None:
        self.root, self.docker = folder / "project", folder / "docker"
        shutil.copytree(ROOT / "turno/launcher", self.root / "turno/launcher")
        (self.root / "turno/__init__.py").touch()
        for name in ("docker-compose.yml", "Dockerfile"):
            shutil.copy2(ROOT / name, self.root / name)
        self.docker.mkdir()
        shutil.copy2(FAKE, self.docker / "fake_docker.py")
        (self.docker / "real-compose").write_text(str(COMPOSE))
        program = self.docker / "docker"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {self.docker}/fake_docker.py "$@"\n')
        program.chmod(0o755)

    def command(self, *options: str) -> list[str]:
        # Nothing is installed when it begins, and nothing needs to be: -S knows the standard library alone.
        return [sys.executable, "-S", "-m", "turno.launcher", "--no-browser", *options]

    def environment(self, path: str = "", **changes: str) -> dict[str, str]:
        found = path or f"{self.docker}:/usr/bin:/bin"
        return {"PATH": found, "HOME": str(self.root), "TURNO_LANG": "en", **changes}

    def run(self, *options: str, path: str = "", **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*options), cwd=self.root, env=self.environment(path, **changes), capture_output=True,
            text=True, timeout=120, check=False,
        )  # fmt: skip

    def told(self, *options: str, **changes: str) -> str:
        """What a start that fails says, in one sentence."""
        done = self.run("--docker", *options, **changes)
        assert done.returncode == 1, done.stdout + done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        return done.stderr

    def make(self, name: str, text: str = "") -> None:
        (self.docker / name).write_text(text)

    @property
    def env(self) -> dict[str, str]:
        return envfile.as_written(self.root / ".env")

    @property
    def calls(self) -> list[str]:
        path = self.docker / "calls"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def services(self) -> set[str]:
        return {one["Service"] for one in json.loads((self.docker / "containers.json").read_text())}


@pytest.fixture
def machine(tmp_path):
    found = Machine(tmp_path)
    with _free_ports(5) as ports:  # 5432 and the others may be taken where the tests run
        (found.root / ".env").write_text("".join(f"{name}={port}\n" for name, port in zip(PORTS, ports, strict=False)))
        found.web_port = ports[4]
    return found


class _free_ports:  # noqa: N801  (used like a function)
    def __init__(self, count):
        self._sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]

    def __enter__(self):
        return [one.getsockname()[1] for one in self._sockets]

    def __exit__(self, *_):
        for one in self._sockets:
            one.close()


def _start(machine, *options, **changes):
    return machine.run("--docker", "--port", str(machine.web_port), *options, **changes)


def test_a_machine_without_docker_gets_a_sentence(machine):
    nothing = machine.root / "nothing"
    nothing.mkdir()
    done = machine.run("--docker", path=str(nothing))
    assert done.returncode == 1
    assert "needs Docker, and this machine has no command docker" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("no-compose", "", "its Compose plugin is not: install version 2.24"),
        ("old-compose", "2.20.2", "Docker Compose 2.20.2 is too old: version 2.24 or newer"),
        ("old-compose", "v1.29.2", "Docker Compose v1.29.2 is too old"),
        ("no-daemon", "Cannot connect to the Docker daemon.\nIs it running?", "daemon does not answer: start it"),
        ("no-permission", "permission denied while trying to connect", "add it to the group docker"),
    ],
)
def test_what_docker_lacks_is_said_in_one_sentence(machine, name, text, words):
    machine.make(name, text)
    assert words in machine.told()
    assert machine.env.keys() == set(PORTS)  # nothing was written for a start that can't be


def test_a_start_writes_secrets_builds_starts_waits_and_says_where_everything_is(machine):
    done = _start(machine)
    assert done.returncode == 0, done.stdout + done.stderr
    assert stat.S_IMODE((machine.root / ".env").stat().st_mode) == 0o600
    assert all(len(machine.env[name]) >= 20 for name in SECRETS)
    assert len({machine.env[name] for name in SECRETS}) == len(SECRETS)
    assert [call for call in machine.calls if " build" in call or " up" in call] == [
        "compose --ansi never build",
        "compose --ansi never up --detach",
    ]
    assert f"http://127.0.0.1:{machine.web_port}" in done.stdout
    assert machine.env["TURNO_API__KEY"] in done.stdout
    assert f"admin, password {machine.env['DJANGO_SUPERUSER_PASSWORD']}" in done.stdout
    assert f"http://127.0.0.1:{machine.env['RABBITMQ_PANEL_PORT']}  (user turno" in done.stdout
    assert machine.env["RABBITMQ_PASSWORD"] not in done.stdout
    assert "Web and 3 workers are ready" in done.stdout
    assert machine.services == {"postgres", "redis", "rabbitmq", "migrate", "web", "worker"}
    assert not (machine.root / ".venv").exists()


def test_a_second_start_changes_no_secret(machine):
    _start(machine)
    before = machine.env
    assert _start(machine).returncode == 0
    assert machine.env == before


def test_an_empty_secret_is_filled_and_a_chosen_one_stays(machine):
    with (machine.root / ".env").open("a") as stream:
        stream.write("TURNO_API__KEY=\nPOSTGRES_PASSWORD='chosen'\n")
    assert _start(machine).returncode == 0
    assert machine.env["TURNO_API__KEY"]
    assert machine.env["POSTGRES_PASSWORD"] == "chosen"


def test_two_copies_of_the_project_have_names_of_their_own(machine, tmp_path):
    other = Machine(tmp_path / "other")
    shutil.copy2(machine.root / ".env", other.root / ".env")
    other.web_port = machine.web_port
    assert _start(machine).returncode == _start(other).returncode == 0
    assert machine.env["COMPOSE_PROJECT_NAME"] != other.env["COMPOSE_PROJECT_NAME"]


def test_data_whose_password_is_lost_are_not_started_upon(machine):
    _start(machine)
    name = machine.env["COMPOSE_PROJECT_NAME"]
    ports = "".join(f"{key}={machine.env[key]}\n" for key in PORTS)
    (machine.root / ".env").write_text(ports)
    machine.make("volume", f"{name}_postgres")
    (machine.docker / "containers.json").unlink()
    assert f"docker volume rm {name}_postgres {name}_rabbitmq" in machine.told()
    assert (machine.root / ".env").read_text() == ports


def test_a_port_that_another_program_has_is_given_way_to_and_the_web_port_is_asked_for(machine):
    with socket.create_server(("127.0.0.1", machine.web_port)):
        assert f"Port {machine.web_port} is taken" in machine.told("--port", str(machine.web_port))
    with socket.create_server(("127.0.0.1", int(machine.env["REDIS_PORT"]))):
        told = machine.told("--port", str(machine.web_port))
    assert f"REDIS_PORT: port {machine.env['REDIS_PORT']} is taken by another program" in told


def test_a_port_that_nobody_chose_and_another_program_has_becomes_a_free_one(machine):
    kept = {name: port for name, port in machine.env.items() if name != "REDIS_PORT"}
    (machine.root / ".env").write_text("".join(f"{name}={port}\n" for name, port in kept.items()))
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 6379))
            taken.listen()
        except OSError:
            pass  # a Redis of this machine has it: as good
        done = _start(machine)
    assert done.returncode == 0, done.stderr
    assert "Port 6379 is taken by another program: redis gets" in done.stdout
    assert machine.env["REDIS_PORT"] != "6379"


def test_a_migration_that_fails_ends_the_start_with_its_last_words(machine):
    machine.make("broken", "migrate")
    assert "migrate does not start: last words of migrate" in machine.told("--port", str(machine.web_port))


def test_what_is_not_in_the_containers_is_said(machine):
    (machine.root / "turno.toml").write_text("[worker]\n")
    assert "turno.toml is not read in the containers" in _start(machine).stdout


def test_status_and_stop_know_the_containers(machine):
    assert machine.run("--status").returncode == 3
    _start(machine)
    shown = machine.run("--status")
    assert shown.returncode == 0
    assert "Turno is running in Docker and ready: http://127.0.0.1:" in shown.stdout
    assert re.search(r"x-worker-3\s+running\s+healthy", shown.stdout)
    stopped = machine.run("--stop")
    assert (stopped.returncode, "Turno has stopped." in stopped.stdout) == (0, True)
    assert "compose --ansi never stop" in machine.calls
    assert machine.run("--status").returncode == 3
    assert "Turno is not running here" in machine.run("--stop").stdout


def test_a_container_that_is_not_well_is_told(machine):
    _start(machine)
    machine.make("containers.json", (machine.docker / "containers.json").read_text().replace("healthy", "unhealthy", 1))
    shown = machine.run("--status")
    assert (shown.returncode, "but not ready at the moment" in shown.stdout) == (0, True)


def test_without_docker_status_and_stop_answer_all_the_same(machine):
    _start(machine)
    machine.make("no-daemon", "gone")
    assert machine.run("--status").returncode == 3
    assert machine.run("--stop").returncode == 0


def test_ctrl_c_during_the_start_ends_the_launcher_and_what_it_runs(machine):
    machine.make("slow")
    launcher = subprocess.Popen(
        machine.command("--docker", "--port", str(machine.web_port)), cwd=machine.root, env=machine.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    until(lambda: any(" up" in call for call in machine.calls), "the containers are being started")
    launcher.send_signal(signal.SIGINT)
    told = launcher.communicate(timeout=120)[0]
    assert launcher.returncode == 130
    assert "Interrupted" in told
    assert "Traceback" not in told


def test_the_docker_option_and_the_cluster_option_exclude_each_other(machine):
    done = machine.run("--docker", "--cluster")
    assert (done.returncode, "choose one of them" in done.stderr) == (1, True)


def test_a_start_without_docker_is_not_started_upon(machine):
    from turno.launcher.paths import Project
    from turno.launcher.state import lock_of

    project = Project(machine.root)
    project.prepare()
    lock = lock_of(project)
    assert lock.take()
    try:
        assert "Another ./iniciar.sh is starting" in machine.run("--docker").stdout
        assert not any(" up" in call for call in machine.calls)
    finally:
        lock.release()
