"""One process that the launcher keeps up: started, watched, started again after a growing pause."""

import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from turno.launcher.account import Account
from turno.launcher.processes import Identity, identity_of, spawn

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds before a process that ended is started again
STEADY = 60.0  # seconds after which a process counts as well again
LOG_LIMIT = 10 * 2**20  # bytes from which a log is put aside at the next start
COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # RabbitMQ's log has them on no terminal too
OF_SUPERVISORS = '"logger":"workers.supervision"'  # in a line of a worker's log: how it ended, and not why


@dataclass
class Child:
    """One process of the installation. `grace`: seconds it may take to stop; `account`: whom it runs as under root;
    `before`: what makes room for it, called before each start."""

    name: str
    argv: Sequence[str | Path]
    log: Path
    env: Mapping[str, str]
    cwd: Path
    grace: float
    account: Account | None = None
    before: Callable[[], None] | None = None
    process: subprocess.Popen[bytes] | None = None
    identity: Identity | None = None
    failures: int = 0
    started_at: float = 0.0
    due_at: float = field(default=0.0)

    def start(self) -> None:
        """Start it. Raises OSError."""
        if self.before is not None:
            self.before()
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".log.1"))
        switch = self.account.popen() if self.account else {}
        self.process = spawn(self.argv, log=self.log, death_signal=signal.SIGTERM, env=self.env, cwd=self.cwd, **switch)
        self.identity = identity_of(self.process.pid)
        self.started_at = time.monotonic()

    @property
    def running(self) -> bool:
        """Whether it lives."""
        return self.process is not None and self.process.poll() is None

    def ended(self) -> int | None:
        """The exit code, once, when it has ended by itself; then it is due again after a pause."""
        if self.process is None or (code := self.process.poll()) is None:
            return None
        self.failures = 0 if time.monotonic() - self.started_at > STEADY else self.failures
        self.put_off()
        self.process = self.identity = None
        return code

    def put_off(self) -> None:
        """Count a failure; the next start is due after a pause that grows with them."""
        self.failures += 1
        self.due_at = time.monotonic() + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self.failures - 1))

    def start_if_due(self) -> bool:
        """Start it again when its pause is over. Raises OSError."""
        if self.process is not None or time.monotonic() < self.due_at:
            return False
        self.start()
        return True

    def signal(self, sign: signal.Signals) -> None:
        """Send it a signal, when it lives."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(sign)

    def last_words(self) -> str:
        """The last line of its log that says something, a supervisor's only where there is no other; "" for none."""
        try:
            with self.log.open("rb") as stream:
                stream.seek(max(0, self.log.stat().st_size - 4096))
                lines = COLOURS.sub("", stream.read().decode(errors="replace")).splitlines()
        except FileNotFoundError:
            return ""
        said = [stripped for line in lines if (stripped := line.strip())]
        return ([line for line in said if OF_SUPERVISORS not in line] or said or [""])[-1]


def cause(code: int) -> str:
    """How a process ended, for a message: the signal's name or the exit code."""
    if code < 0:
        try:
            return signal.Signals(-code).name
        except ValueError:
            return str(code)
    return str(code)
