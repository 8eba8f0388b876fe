"""Workers in pid namespaces of their own, with one host name, as containers from one image have."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from jobs.models import Worker
from tests.kit.processes import PROJECT, eventually
from workers import tree

UNSHARE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts"]
# Where nobody may make namespaces: a worker that believes to be in one.
BELIEVE = """
import sys
from workers import identity
identity.pid_namespace = lambda: {namespace!r}
identity.host = lambda: "app"
from turno.environment import prepare
prepare()
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""
SUPERVISE = """
import sys
from workers.supervision.door import supervise
sys.exit(supervise([sys.executable, "-c", sys.argv[1]], sys.argv[2:]))
"""
RUN = 'hostname app && exec "$0" manage.py runworker --queues default:2 --name "$1"'


@cache
def possible() -> bool:
    """Whether this user may make namespaces here."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*UNSHARE, "hostname", "app"], check=False, capture_output=True).returncode == 0


class Contained:
    """A `manage.py runworker` that is the first process of its pid namespace; not `real`: that believes so."""

    def __init__(self, name: str, folder: Path, env: Mapping[str, str], *, real: bool = True) -> None:
        self.name = name
        if real and possible():
            command = [*UNSHARE, "sh", "-c", RUN, sys.executable, name]
        else:
            worker = BELIEVE.format(namespace=f"of {name}")
            command = [sys.executable, "-c", SUPERVISE, worker, "--queues", "default:2", "--name", name]
        with (folder / f"{name}.log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=PROJECT, env=dict(env), stdout=log, stderr=log)

    def row(self) -> Worker | None:
        """The worker that runs in it now."""
        return Worker.objects.filter(name=self.name, state="Online").order_by("-started_at").first()

    def wait_ready(self) -> Worker:
        return eventually(self.row, f"{self.name} is online")

    def kill_worker(self) -> None:
        """SIGKILL to the worker process alone: its supervisor starts another in the same namespace."""
        inside = self.wait_ready().pid
        [pid] = [pid for pid in tree.descendants(self.process.pid) if _innermost(pid) == inside]
        os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """SIGKILL to everything in it, as when a container is removed."""
        self.process.kill()
        self.process.wait(60)


def _innermost(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return 0
