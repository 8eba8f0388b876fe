"""Handler modules are imported in a throw-away process first: what an import does to that one, it can't do to ours.

An import can end its process, crash it, hang, close what is not its own. A process that others rely on (a worker, its
fork server, the web process) imports only what came through.
"""

import json
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connections

from jobs.loading import TRACE_LENGTH, LoadProblem
from jobs.speech import _
from jobs.text import clean, signal_name
from jobs.tryout_child import EXIT_CLOSED, closed_descriptors
from jobs.tryout_process import Trial

logger = logging.getLogger(__name__)

SAY_AFTER = 5.0  # seconds of one import until the log says what is waited for
LOGGED = 4000  # characters, in the log, of what an import printed
BEGIN = 60.0  # seconds for a process to come to its first import
LINGER = 1.0  # seconds for a process that is done, and for one that is asked where it hangs


def try_modules(modules: Sequence[str], limit: float) -> dict[str, LoadProblem | None]:
    """Import the modules in a throw-away process, at most `limit` seconds each; what is wrong with each, or None.

    After one that fails, or ends or hangs the process, the rest goes on in a new one. Where no such process can be
    started, the log says so and no module counts as broken.
    """
    found: dict[str, LoadProblem | None] = {}
    while left := [module for module in modules if module not in found]:
        tried = _Round(left, limit)
        try:
            found |= tried.run()
        except OSError as error:
            tried.reason = str(error)
        if not any(module in found for module in left):
            logger.error("handler modules can't be tried in a process of their own: %s", tried.reason)
            found |= dict.fromkeys(left)
    return found


class _Round:
    """One process, and what it told of the modules until it was through or had to be ended."""

    def __init__(self, modules: Sequence[str], limit: float) -> None:
        self.reason = ""
        self._modules = modules
        self._limit = limit
        self._found: dict[str, LoadProblem | None] = {}
        self._trying: str | None = None
        self._through = False
        self._since = time.monotonic()
        self._said = False

    def run(self) -> dict[str, LoadProblem | None]:
        """What was found: nothing where not even the first import was begun. Raises OSError."""
        trial = Trial(self._modules, self._on_line)
        try:
            hung = not self._follow(trial)
            if hung:
                trial.ask_where(LINGER)
        finally:
            code = trial.end()
        printed = clean(trial.printed(), TRACE_LENGTH)
        if self._trying is not None:
            self._found[self._trying] = LoadProblem(self._trying, self._ending(hung, code), printed)
            if printed:
                logger.warning("handler module %s: its import printed last:\n%s", self._trying, printed[-LOGGED:])
        elif not self._found:
            self.reason = f"it ended with code {code}: {printed}" if not hung else "it did not begin in time"
        return self._found

    def _follow(self, trial: Trial) -> bool:
        """Listen until the process has ended or told of every module; False when one took too long."""
        lingering: float | None = None
        while not (trial.ended and trial.told_all):
            now = time.monotonic()
            through = trial.ended or self._through
            if through:  # but for a copy of it that still has the pipe
                lingering = lingering or now + LINGER
            until = lingering or self._since + (self._limit if self._trying else BEGIN)
            if now >= until:
                return through
            trial.listen(min(until, self._say_what_is_waited_for(now)))
        return True

    def _say_what_is_waited_for(self, now: float) -> float:
        """In the log, once a module; gives the instant at which it is due."""
        due = self._since + SAY_AFTER
        if self._said or self._trying is None:
            return float("inf")
        if now >= due:
            self._said = True
            logger.warning(
                "handler module %s: its import has taken %.0f s; it is given up after %.0f s",
                self._trying,
                now - self._since,
                self._limit,
            )
        return due

    def _on_line(self, line: bytes) -> None:
        said = _read(line)
        self._since, self._said = time.monotonic(), False
        trying, module = str(said.get("trying")), str(said.get("module"))
        if trying in self._modules:
            self._trying = trying
        elif module in self._modules:
            self._trying = None
            if said.get("error"):
                self._found[module] = LoadProblem(module, said["error"], said.get("trace", ""))
            else:
                self._found.setdefault(module, None)  # a copy of the process may have told what is wrong before
            self._through = bool(said.get("error")) or len(self._found) == len(self._modules)
            if said.get("threads"):
                names = clean(", ".join(said["threads"]), 200, one_line=True)
                logger.warning("handler module %s: its import leaves threads running: %s", module, names)

    def _ending(self, hung: bool, code: int) -> str:
        if hung:
            return _("the import did not end within {seconds} s").format(seconds=f"{self._limit:g}")
        if code == EXIT_CLOSED:
            return closed_descriptors()
        if code >= 0:
            return _("the import ended the process (exit code {code})").format(code=code)
        return _("the import was killed by signal {number} ({name})").format(
            number=-code, name=signal_name(-code) or "?"
        )


def _read(line: bytes) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:  # a module wrote where it should not
        return {}
    return said if isinstance(said, dict) else {}


@contextmanager
def no_connections_left() -> Iterator[None]:
    """What is opened inside, of this thread's database connections, is closed at the end: a fork must inherit none."""
    before = {id(c) for c in connections.all(initialized_only=True) if c.connection is not None}
    try:
        yield
    finally:
        for connection in connections.all(initialized_only=True):
            if connection.connection is not None and id(connection) not in before:
                connection.close()
