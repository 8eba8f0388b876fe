"""A real web process of the tests' own, on the test database: started once for many tests, checked after each."""

import http.client
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import connections

from tests.kit.processes import PROJECT, database_url, eventually
from turno.launcher import ports

FORGET, STATEMENTS = "/-/forget", "/-/statements"  # see tests.kit.site_app
# What a line of the process's log says of a fault: the level ERROR or CRITICAL, or a traceback.
FAULT = re.compile(r"^\S+ \S+ (ERROR|CRITICAL) |^Traceback \(most recent call last\)|^\S*Error: ", re.MULTILINE)
BUSY = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
      AND state IS DISTINCT FROM 'idle'
"""


class Site:
    """The process, its address, and what it has logged since the test began. `env` names its database, at the least."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.port = ports.free_port()
        self.host = f"127.0.0.1:{self.port}"
        self.address = f"http://{self.host}"
        self.key = env.get("TURNO_API__KEY", "")
        self._log = folder / f"web-{self.port}.log"
        (folder / "turno.toml").touch()
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("TURNO_", "DJANGO_"))}
        settings = {
            "TURNO_CONFIG": str(folder / "turno.toml"),  # an empty one: not the one that lies in the project
            "TURNO_HANDLERS": '["tests.kit.handlers", "tests.kit.beats"]',
            "TURNO_SAMPLES__ENABLED": "true",
            "TURNO_API__KEY": "",  # set and empty: the open house, whatever a .env says
            "PYTHONPATH": str(PROJECT),
        }
        command = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(self.port)]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "tests.kit.site_app:application"],
                cwd=PROJECT,
                env=ours | settings | env,
                stdout=log,
                stderr=log,
            )
        self._seen = 0

    def wait_ready(self) -> "Site":
        """Returns when it answers."""

        def answers() -> bool:
            assert self.process.poll() is None, f"the web process ended:\n{self.log()[-3000:]}"
            try:
                return self.get("/health/live") == 200
            except OSError:
                return False

        eventually(answers, "the web process answers", 120)
        return self

    def get(self, path: str) -> int:
        """The status of a plain GET, with the key when one is configured."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path, headers={"X-Turno-Key": self.key} if self.key else {})
            return connection.getresponse().status
        finally:
            connection.close()

    def log(self) -> str:
        """What the process has logged since the test began."""
        with self._log.open("rb") as file:
            file.seek(self._seen)
            return file.read().decode(errors="replace")

    def begin(self) -> None:
        """A test begins: what earlier ones left in memory is dropped, their log is behind us."""
        self.get(FORGET)
        self._seen = self._log.stat().st_size

    def end(self) -> None:
        """A test ends: waits until nothing asks the database any more; fails when the log tells of a fault."""
        eventually(_quiet, "no statement runs any more on the test database")
        if fault := FAULT.search(said := self.log()):
            raise AssertionError(f"the web process logged a fault:\n{said[max(0, fault.start() - 500) :][:4000]}")

    def close(self) -> None:
        """End the process."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)


def _quiet() -> bool:
    """Emptying tables next to a running statement may end in a deadlock."""
    with connections["default"].cursor() as cursor:
        cursor.execute(BUSY)
        return bool(cursor.fetchone()[0] == 0)


class Sites:
    """The web processes of a run, one for each set of variables."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sites: dict[tuple[Any, ...], Site] = {}
        self._used: list[Site] = []

    def get(self, env: dict[str, str]) -> Site:
        """The one with these variables, started when it is the first time; it is checked at the test's end."""
        name = tuple(sorted(env.items()))
        if name not in self._sites:
            folder = self._folder / str(len(self._sites))
            folder.mkdir(parents=True)
            self._sites[name] = Site(folder, {"TURNO_DATABASE__URL": database_url()} | env)
        site = self._sites[name].wait_ready()
        if site not in self._used:
            site.begin()
            self._used.append(site)
        return site

    @contextmanager
    def one_test(self) -> Iterator["Sites"]:
        """What one test uses is checked at its end."""
        self._used = []
        yield self
        for site in self._used:
            site.end()

    def close(self) -> None:
        """End all."""
        for site in self._sites.values():
            site.close()
