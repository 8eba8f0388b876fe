"""`./iniciar.sh --cluster` with the whole product: a job goes through RabbitMQ, also after the launcher was killed."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.docker.composed import in_image
from tests.docker.containers import consumers
from tests.kit.rabbitmq_server import raw
from tests.launcher.stand_in import until
from turno.launcher import envfile, install, probe
from turno.launcher.paths import ROOT, Project
from turno.launcher.ports import free_port
from turno.launcher.processes import alive
from turno.launcher.state import State, state_path

pytestmark = pytest.mark.launcher_slow
JOB = {"type": "report.generate", "payload": {"rows": 5, "duration": 1}}


class Copy:
    """A copy of the project whose packages are those of the tests."""

    def __init__(self, folder: Path) -> None:
        self.root, self.port = folder, free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.launchers: list[subprocess.Popen[str]] = []
        in_image(folder)
        shutil.copy2(ROOT / "iniciar.sh", folder / "iniciar.sh")
        shutil.copytree(ROOT / "scripts", folder / "scripts")
        venv = folder / ".venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        (site,) = venv.glob("lib/python*/site-packages")
        (site / "beside.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
        (venv / "installed-base").write_text(install._checksum([folder / "requirements/base.txt"]))

    def command(self, *options: str) -> subprocess.Popen[str]:
        """`./iniciar.sh` with these options."""
        ours = ("TURNO_", "DJANGO_", "DATABASE_URL", "JOBS_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        return subprocess.Popen(
            ["./iniciar.sh", "--porta", str(self.port), "--sem-navegador", *options],
            cwd=self.root,
            env={**kept, "TURNO_LANG": "en"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def start(self) -> subprocess.Popen[str]:
        """Start it with `--cluster` and wait until all is ready."""
        before = self.state.since
        launcher = self.command("--cluster")
        self.launchers.append(launcher)

        def ready() -> bool:
            assert launcher.poll() is None, launcher.communicate()[0]
            return self.state.ready and self.state.since != before

        until(ready, "Turno is ready")
        return launcher

    @property
    def state(self) -> State:
        return State.read(state_path(Project(self.root)))

    def do_a_job(self) -> None:
        """Send one and wait for its end; RabbitMQ's queue, which the workers consume, is its only way to one."""
        key = envfile.read(self.root / ".env")["TURNO_API__KEY"]
        status, sent = probe.request(self.address, "/api/jobs", key=key, body=JOB)
        assert status == 201, sent
        found = {}

        def ended() -> bool:
            found.update(probe.request(self.address, f"/api/jobs/{sent['id']}", key=key)[1])
            return found["finished_at"] is not None

        until(ended, "the job ends")
        assert found["state"] == "Succeeded", json.dumps(found)
        with raw(envfile.read(self.root / ".env")["TURNO_MESSAGING__URLS"]) as channel:
            until(lambda: consumers(channel, "turno-default") == 3, "all three workers consume the queue")

    def close(self) -> None:
        """End everything and remove what stands outside the folder."""
        self.command("--parar").communicate()
        for launcher in self.launchers:
            if launcher.stdout and not launcher.stdout.closed:
                launcher.communicate()
        if os.geteuid() == 0:
            shutil.rmtree(Project(self.root).postgres(), ignore_errors=True)


@pytest.fixture
def copy(open_folder):
    found = Copy(open_folder)
    yield found
    found.close()


def test_a_job_goes_through_rabbitmq_also_after_the_launcher_was_killed(copy):
    launcher = copy.start()
    copy.do_a_job()
    assert probe.ready(copy.address)
    left = copy.state.processes
    launcher.kill()
    launcher.communicate()
    copy.start()
    assert not [name for name, identity in left.items() if alive(identity)]
    copy.do_a_job()
    running = copy.state.processes
    stopped = copy.command("--parar")
    assert "Turno has stopped." in stopped.communicate()[0]
    assert stopped.returncode == 0
    assert not [name for name, identity in running.items() if alive(identity)]
