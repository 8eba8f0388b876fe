"""A copy of the launcher in a project whose web process and workers are a few lines each."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from turno.launcher import install
from turno.launcher.paths import ROOT, Project
from turno.launcher.ports import free_port
from turno.launcher.state import State, state_path

MANAGE = """
import os, pathlib, signal, sys, time, psycopg
command, *rest = sys.argv[1:]
with psycopg.connect(os.environ["TURNO_DATABASE__URL"], autocommit=True) as connection:
    if command == "migrate":
        connection.execute("CREATE TABLE IF NOT EXISTS starts (at timestamptz DEFAULT now())")
        connection.execute("INSERT INTO starts DEFAULT VALUES")
        print(pathlib.Path("broken").read_text() if pathlib.Path("broken").exists() else "migrated")
        if pathlib.Path("broken").exists():
            sys.exit(1)
        if "--first-user" in rest and connection.execute("SELECT count(*) FROM starts").fetchone()[0] == 1:
            print("first user made: admin")
        sys.exit()
name = rest[rest.index("--name") + 1]
if pathlib.Path("sick").exists():
    sys.exit("the worker feels sick")
mark = pathlib.Path("online") / name
mark.write_text(str(os.getpid()))
def stop(*_):
    mark.unlink()
    with open("events", "a") as events:
        events.write(name + "\\n")
    os._exit(0)
signal.signal(signal.SIGTERM, stop)
while True:
    time.sleep(0.1)  # in naps: a signal just before pause() begins would leave its handler waiting for another
"""

DAPHNE = """
import http.server, json, os, pathlib, signal, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        workers = [
            {"name": path.name, "state": "Online", "pid": int(path.read_text() or 0)}
            for path in pathlib.Path("online").iterdir()
        ]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"items": workers}).encode())
    def log_message(self, *_):
        pass
def stop(*_):
    with open("events", "a") as events:
        events.write("web\\n")
    os._exit(0)
signal.signal(signal.SIGTERM, stop)
http.server.ThreadingHTTPServer((sys.argv[2], int(sys.argv[4])), Handler).serve_forever()
"""

PATIENCE = 180.0  # seconds: a start takes ten on an idle machine


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.02)


@dataclass
class StandIn:
    """The project in a folder, and the launchers that were started in it."""

    root: Path
    port: int = field(default_factory=free_port)
    launchers: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        shutil.copytree(ROOT / "turno/launcher", self.root / "turno/launcher")
        (self.root / "turno/__init__.py").touch()
        (self.root / "manage.py").write_text(MANAGE)
        (self.root / "daphne").mkdir()
        (self.root / "daphne/__init__.py").touch()
        (self.root / "daphne/__main__.py").write_text(DAPHNE)
        (self.root / "online").mkdir()
        (self.root / "requirements").mkdir()
        requirements = self.root / "requirements/base.txt"
        requirements.write_text("# installed already\n")
        venv = self.root / ".venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        (site,) = venv.glob("lib/python*/site-packages")
        (site / "beside.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
        (venv / "installed-base").write_text(install._checksum([requirements]))

    @property
    def project(self) -> Project:
        return Project(self.root)

    @property
    def environment(self) -> dict[str, str]:
        ours = ("TURNO_", "DJANGO_", "DATABASE_URL", "JOBS_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        return {**kept, "TURNO_LANG": "en", "CI": "true"}

    def run(self, *options: str, **changes: str) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "turno.launcher", *options],
            cwd=self.root,
            env={**self.environment, **changes},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def launch(self, *options: str, **changes: str) -> subprocess.Popen[str]:
        """Start it without waiting."""
        launcher = subprocess.Popen(
            [sys.executable, "-m", "turno.launcher", "--port", str(self.port), *options],
            cwd=self.root,
            env={**self.environment, **changes},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.launchers.append(launcher)
        return launcher

    def start(self, *options: str, **changes: str) -> subprocess.Popen[str]:
        """Start it and wait until everything is ready."""
        before = self.state.since  # a killed start leaves its note

        def ready() -> bool:
            state = self.state
            return state.ready and state.since != before

        launcher = self.launch(*options, **changes)
        until(lambda: ready() or launcher.poll() is not None, "the stand-in gets ready")
        assert launcher.poll() is None, launcher.communicate()[0]
        return launcher

    @property
    def state(self) -> State:
        return State.read(state_path(self.project))

    @property
    def events(self) -> list[str]:
        """Which processes stopped in order, the first one first."""
        path = self.root / "events"
        return path.read_text().split() if path.exists() else []

    def close(self) -> None:
        """End everything and remove what stands outside the folder."""
        for launcher in self.launchers:
            if launcher.poll() is None:
                launcher.send_signal(signal.SIGTERM)
            if launcher.stdout and not launcher.stdout.closed:
                launcher.communicate()
        self.run("--stop")
        if os.geteuid() == 0:
            shutil.rmtree(self.project.postgres(), ignore_errors=True)
            with contextlib.suppress(OSError):  # another copy keeps its data there, or it is gone
                self.project.system_data.rmdir()
