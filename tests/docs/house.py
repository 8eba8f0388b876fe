"""A whole Turno for the README's blocks: web process and worker on the test database, and a shell in the project.

The shell stands in a folder that looks like the project to whoever types what the README says: `.env` with the key,
`.venv`, `manage.py`, `turno.toml`. Only what a test can't have as it is differs: `./iniciar.sh` becomes a start of
these processes (it has tests of its own), and the address is the one on which this web process listens.
"""

import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from jobs import sections
from tests.docs.blocks import PROJECT
from tests.kit.processes import Fleet, WorkerProcess, eventually
from turno.launcher import options, ports

KEY = "key-of-the-readme-0123456789"
README_ADDRESS = "http://127.0.0.1:8080"
README_FOLDER = "/srv/my-jobs"
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class House:
    """`handlers` is the reader's own folder, `folder` what stands for the project's."""

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self.fleet = fleet
        self.folder, self.handlers = folder / "project", folder / "my-jobs"
        self.port = ports.free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.web: subprocess.Popen[bytes] | None = None
        self.workers: list[WorkerProcess] = []
        self._session = folder / "session"
        self._log = folder / "web.log"
        for made in (self.folder, self.handlers):
            made.mkdir()
        (self.folder / ".env").write_text(f"# as ./iniciar.sh writes it\nTURNO_API__KEY={KEY}\n")
        (self.folder / ".venv").symlink_to(sys.prefix)
        (self.folder / "manage.py").symlink_to(PROJECT / "manage.py")
        self._session.write_text("")
        self.env = {
            **fleet.env,
            "TURNO_API__KEY": KEY,
            "TURNO_CONFIG": str(self.folder / "turno.toml"),
            "TURNO_HANDLERS": "",  # an empty variable sets nothing: turno.toml says which
            "TURNO_SAMPLES__ENABLED": "true",
            "TURNO_LANG": "en",
        }
        self.configure("")

    def configure(self, toml: str) -> None:
        """Write turno.toml as the README has it, with the reader's folder where the test has it."""
        (self.folder / "turno.toml").write_text(toml.replace(README_FOLDER, str(self.handlers)))

    def start(self) -> None:
        """What `./iniciar.sh` does to the processes; a second call does nothing, as there."""
        if self.web is not None:
            return
        daphne = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(self.port), "turno.asgi:application"]
        with self._log.open("ab") as log:
            self.web = subprocess.Popen(daphne, cwd=PROJECT, env=self.env, stdout=log, stderr=log)
        number = len(self.workers) + 1
        self.workers.append(self.fleet.start(f"worker-{number}", sections.Worker().queues, **self.env).wait_ready())
        eventually(self._ready, "the web process is ready")

    def _ready(self) -> bool:
        assert self.web is not None
        assert self.web.poll() is None, self._log.read_text()[-3000:]
        try:
            with _direct.open(f"{self.address}/health/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def stop(self) -> None:
        """What `./iniciar.sh --parar` does to the processes: web, then workers, in order."""
        if self.web is None:
            return
        self.web.send_signal(signal.SIGTERM)
        self.web.wait(60)
        self.web = None
        self.workers[-1].signal(signal.SIGTERM)
        assert self.workers[-1].wait() == 0

    def launcher(self, block: str) -> None:
        """Do what a block of `./iniciar.sh` lines does, after the launcher's own parser has understood each line."""
        for line in block.splitlines():
            asked = options.parse(line.split()[1:])
            if asked.profile != "embedded":
                continue  # a test has no Docker, and `tests/launcher` starts the cluster
            if asked.command == "start":
                self.start()
            elif asked.command == "stop":
                self.stop()

    def shell(self, block: str) -> str:
        """Run a block in the reader's shell, which keeps its variables from block to block; what it printed."""
        script = (
            f'set -euo pipefail\n. "{self._session}"\nset -a\n'
            f'{block.replace(README_ADDRESS, self.address)}\nexport -p > "{self._session}"\n'
        )
        return self._run(["bash", "-c", script])

    def python(self, code: str) -> str:
        """Run code as typed into `manage.py shell`; what it printed."""
        return self._run([".venv/bin/python", "manage.py", "shell"], code)

    def _run(self, command: list[str], text: str = "") -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.env, input=text, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def background(self, block: str) -> WorkerProcess:
        """Run a block that does not end by itself: a worker in the reader's terminal."""
        return _Typed(self.folder, block, self.env)

    def close(self) -> None:
        """End the web process; the fleet ends its workers."""
        if self.web is not None:
            self.web.kill()
            self.web.wait(60)


class _Typed(WorkerProcess):
    """A worker that was started by a line of the README."""

    def __init__(self, folder: Path, block: str, env: dict[str, str]) -> None:
        self.name = "typed"
        self.log = folder / "typed.log"
        self._file = self.log.open("ab")
        self.process: subprocess.Popen[Any] = subprocess.Popen(
            ["bash", "-c", f"exec {block.strip()}"], cwd=folder, env=env, stdout=self._file, stderr=self._file
        )
