"""Keeps the processes of one run: starts them, starts again what ends, says so, and stops them in order."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

from turno.launcher import probe
from turno.launcher.children import FIRST_PAUSE, LONGEST_PAUSE, Child, cause
from turno.launcher.cleanup import POSTGRES
from turno.launcher.errors import LauncherError, sentence
from turno.launcher.postgres import PrivatePostgres
from turno.launcher.processes import children, identity_of
from turno.launcher.say import Console, _, decimal
from turno.launcher.signals import Signals
from turno.launcher.state import State

READY_PATIENCE = 120.0  # seconds from the start of the processes until they must be ready
TRIES_AT_START = 3  # ends of one process before the first readiness, after which the start has failed
LOOK = 0.25  # seconds between two looks while something is awaited
REST = 5.0  # seconds between two looks when nothing is due: a child's end wakes earlier


class Keeper:
    """The processes: `children` in the order of start and stop; below them `servers` of ours, last our database."""

    def __init__(self, console: Console, signals: Signals, state: State, note: Path) -> None:
        self.console, self.signals, self.state, self.note_path = console, signals, state, note
        self.postgres: PrivatePostgres | None = None
        self.children: list[Child] = []
        self.servers: list[Child] = []
        self._pause = FIRST_PAUSE
        self._database_due = 0.0
        self._forced = 0
        self._unwritten = False  # whether the note on disk is older than what runs

    def note(self) -> None:
        """Write down who runs, so that the next start recognises what this one may leave."""
        found = {child.name: child.identity for child in self._everything if child.identity}
        if self.postgres and self.postgres.process and (server := identity_of(self.postgres.process.pid)):
            found[POSTGRES] = server
        self.state.processes = found
        self.state.seconds = {child.name: child.grace for child in self._everything}
        self.state.write(self.note_path)

    @property
    def _everything(self) -> list[Child]:
        return [*self.servers, *self.children]

    def start_all(self) -> None:
        """Start every child. Raises OSError."""
        for child in self.children:
            child.start()
        self.note()

    def wait_until_ready(self, address: str, key: str) -> None:
        """Wait until web and every worker are ready. Raises LauncherError when that does not happen."""
        deadline = time.monotonic() + READY_PATIENCE
        workers = [child for child in self.children if child.name != "web"]
        while True:
            self.tend()
            self._refuse_what_does_not_start(self._everything)
            web = probe.ready(address)
            online = self._online(workers, address, key) if web else 0
            if web and online == len(workers):
                self.signals.raising = False  # from here on the start is complete
                self.state.ready = True
                self.note()
                return
            self.console.progress(
                _("Web ready, workers: {online} of {all}").format(online=online, all=len(workers))
                if web
                else _("Starting the web process and {all} workers").format(all=len(workers))
            )
            self._next_look(deadline)

    def wait_for(self, servers: list[Child], ready: Callable[[], bool], text: str) -> None:
        """Wait until servers of ours that were started are ready. Raises LauncherError when that does not happen."""
        deadline = time.monotonic() + READY_PATIENCE
        while True:
            self.tend()
            self._refuse_what_does_not_start(servers)
            if ready():
                return
            self.console.progress(text)
            self._next_look(deadline)

    @staticmethod
    def _refuse_what_does_not_start(children: list[Child]) -> None:
        for child in children:
            if child.failures >= TRIES_AT_START:
                raise LauncherError(
                    _("{name} does not start: {reason} (log: {log})").format(
                        name=child.name, reason=child.last_words() or "?", log=child.log
                    )
                )

    def _next_look(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise LauncherError(
                _("Turno was not ready within {seconds:.0f} s; the logs in {folder} say why.").format(
                    seconds=READY_PATIENCE, folder=self.note_path.parent / "logs"
                )
            )
        self.signals.wait(LOOK)

    @staticmethod
    def _online(workers: list[Child], address: str, key: str) -> int:
        """How many of these are online; one of the same name that ran before has another process."""
        told = probe.online_workers(address, key)
        pids = {
            worker.name: {worker.identity.pid, *(child.pid for child in children(worker.identity.pid))}
            for worker in workers
            if worker.identity
        }
        return len({name for name, pid in told if pid in pids.get(name, ())})

    def serve(self) -> None:
        """Keep everything up until somebody asks to stop."""
        while not self.signals.count:
            self.tend()
            due = [child.due_at for child in self._everything if child.process is None]
            if self.postgres and not self.postgres.running:
                due.append(self._database_due)
            self.signals.wait(min([REST, *(moment - time.monotonic() for moment in due)]))

    def tend(self) -> None:
        """One look at everything: say what ended, start what is due."""
        changed = self._tend_database() or self._unwritten
        for child in self._everything:
            code = child.ended()
            if code is not None:
                changed = True
                told = _("{name} ended ({cause}), starting it again in {pause} s: {words}").format(
                    name=child.name,
                    cause=cause(code),
                    pause=decimal(max(0.0, child.due_at - time.monotonic())),
                    # Those of who was killed from outside say nothing of why.
                    words="" if code == -signal.SIGKILL else child.last_words()[:200],
                )
                self.console.failed(told.removesuffix(": "))
            elif self._started_again(child):
                changed = True
                self.console.done(_("{name} started again").format(name=child.name))
        if changed:
            self._note_if_possible()

    def _started_again(self, child: Child) -> bool:
        try:
            return child.start_if_due()
        except OSError as error:  # its log can't be opened, or the system has no room for a process
            child.put_off()
            self.console.failed(sentence(error))
            return False

    def _note_if_possible(self) -> None:
        """Write the note; a full disk must not end what runs, so it is tried again at the next look."""
        try:
            self.note()
        except OSError as error:
            if not self._unwritten:
                self.console.failed(sentence(error, self.note_path))
            self._unwritten = True
        else:
            self._unwritten = False

    def _tend_database(self) -> bool:
        server = self.postgres
        if server is None or server.running or time.monotonic() < self._database_due:
            return False
        self.console.failed(_("PostgreSQL ended, starting it again"))
        try:
            server.start()
        except (LauncherError, OSError) as error:
            self.console.failed(str(error))
            self._database_due = time.monotonic() + self._pause
            self._pause = min(LONGEST_PAUSE, self._pause * 2)
            return False
        self._pause = FIRST_PAUSE
        self.console.done(_("PostgreSQL started again"))
        return True

    def stop_all(self) -> None:
        """Stop web, then the workers together, then the servers. Asked again it hurries, then it kills."""
        self._forced = self.signals.count
        web = [child for child in self.children if child.name == "web"]
        workers = [child for child in self.children if child.name != "web"]
        self._stop(web, _("Stopping the web process"))
        self._stop(workers, _("Stopping the workers: running jobs get time to finish (Ctrl-C again hurries them)"))
        for server in reversed(self.servers):
            self._stop([server], _("Stopping {name}").format(name=server.name))
        if self.postgres and self.postgres.running:
            self.console.progress(_("Stopping PostgreSQL"))
            self.postgres.stop("fast")
        self.note_path.unlink(missing_ok=True)

    def _stop(self, group: list[Child], text: str) -> None:
        began, hurried = time.monotonic(), 0
        for child in group:
            child.signal(signal.SIGTERM)
        while running := [child for child in group if child.running]:
            self.console.progress(text)
            asked, waited = self.signals.count - self._forced, time.monotonic() - began
            hurry = asked > hurried and waited > LOOK  # two signals at once would arrive as one
            for child in running:
                if asked >= 2 or waited > child.grace:
                    child.signal(signal.SIGKILL)
                elif hurry:
                    child.signal(signal.SIGTERM)
            hurried = asked if hurry else hurried
            self.signals.wait(LOOK)
