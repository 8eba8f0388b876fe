"""One worker process put together: identity, threads, routines, signals, and an end in order."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from jobs import leadership, presence
from jobs.conf import conf
from jobs.ids import new_id
from jobs.registry import catalogue
from workers import identity, routines
from workers.clock import boottime
from workers.connections import DATABASE_ERRORS, ENGINE, drop_connection
from workers.consumer import Consumer
from workers.heartbeat import Heartbeat
from workers.leases import Interrupt, LeaseBook
from workers.ledger import ClaimLedger, EndLedger
from workers.listener import Listener
from workers.service import guarded
from workers.slots import Slots
from workers.transports.postgres import PostgresTransport

log = logging.getLogger(__name__)
# Asked to stop, Ctrl-C, the terminal is closed (which nohup says to ignore).
STOP_SIGNALS = tuple(
    number
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
)
EXIT_FAILED = 1
EXIT_LATE = 70  # a handler outlived its lease and could not be stopped: the process ends with it


@dataclass(frozen=True, slots=True)
class Options:
    """What `runworker` was asked: slots by queue, a name (None: host and pid), seconds of grace at the end."""

    queues: Mapping[str, int]
    name: str | None
    shutdown_timeout: float


@dataclass(frozen=True, slots=True)
class End:
    """How a worker ended: `clean` when no handler is left running, and the exit code of its process."""

    clean: bool
    code: int


class Worker:
    """A worker process. `main` runs until a signal and says how it ended; `end_process` does the rest."""

    def __init__(self, options: Options) -> None:
        settings = conf()
        self._settings = settings.worker
        self._options = options
        problems = [{"module": p.module, "error": p.error} for p in catalogue.load()]
        self.who = _presence(options)
        self._book = LeaseBook()
        self._claims = ClaimLedger(
            self.who, self._book, self._settings.lease_duration, self._settings.batch_size, self._settings.reconnect_max
        )
        self._ends = EndLedger(self.who.id, self._settings.batch_size, self._settings.reconnect_max)
        self._services = routines.services()
        self._heartbeat = Heartbeat(self.who, self._book, self._settings, problems)
        self._failed = False
        self._hurry = asyncio.Event()
        self._stopping = asyncio.Event()
        self._routines = ThreadPoolExecutor(2, thread_name_prefix="turno-routine")
        self._listener = Listener(
            on_work=self._on_work,
            on_due=self._services["promoter"].wake,
            on_cancel=self._on_cancel,
            on_connect=self._on_connect,
            reconnect_max=self._settings.reconnect_max,
        )

    async def main(self, stopped: Callable[[], bool] = lambda: False) -> "End":
        """Work until a signal of STOP_SIGNALS; a second one returns everything at once. `stopped`: one came already."""
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._on_signal)
        if stopped():
            self._stopping.set()
        self._consumer = Consumer(
            PostgresTransport(self._claims),
            Slots(self._options.queues),
            self._book,
            self._ends,
            batch_size=self._settings.batch_size,
            poll=self._settings.poll_interval,
        )
        for thread in (self._claims, self._ends, self._heartbeat):
            thread.start()
        background = [
            asyncio.create_task(coroutine, name=name)
            for name, coroutine in (
                ("listener", self._listener.run()),
                ("notes", self._every(self._settings.progress_interval, self._consumer.notes.flush)),
                ("deadlines", self._every(0.25, self._enforce_deadlines)),
                *((name, service.run(self._routines, self._leads)) for name, service in self._services.items()),
            )
        ]
        await loop.run_in_executor(None, self._heartbeat.registered.wait, 10)
        if self._stopping.is_set():
            self._consumer.stop_taking()
        taking = asyncio.create_task(self._consumer.run(), name="consumer")
        log.info("worker.ready", extra=self._describe())
        await asyncio.wait([taking, asyncio.create_task(self._stopping.wait())], return_when=asyncio.FIRST_COMPLETED)
        if taking.done() and taking.exception() is not None:
            self._failed = True
            log.critical("consumer.failed", exc_info=taking.exception())
        clean = await self._stop(taking)
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        return End(clean, EXIT_FAILED if self._failed else 0)

    async def _stop(self, taking: "asyncio.Task[None]") -> bool:
        loop = asyncio.get_running_loop()
        self._heartbeat.draining = True
        self._heartbeat.hurry()
        self._consumer.stop_taking()
        log.info("worker.stopping", extra={"running": len(self._book), "grace_seconds": self._options.shutdown_timeout})
        # A claim that is under way is waited for: what it brings is started. One that takes longer brings it to the
        # lease book only, and the release gives it back.
        await asyncio.wait([taking], timeout=5)
        taking.cancel()
        clean = await self._consumer.finish(self._options.shutdown_timeout, self._hurry)
        self._consumer.notes.flush()
        closed = [await loop.run_in_executor(None, ledger.close, 5.0) for ledger in (self._claims, self._ends)]
        await loop.run_in_executor(None, self._heartbeat.close, 2.0)
        self._consumer.threads.close()
        if clean:
            self._consumer.handlers.close()
        with suppress(*DATABASE_ERRORS, TimeoutError):
            await asyncio.wait_for(loop.run_in_executor(self._routines, guarded, self._leave), 5)
        self._routines.shutdown(wait=False, cancel_futures=True)
        return clean and all(closed) and not len(self._book)

    def _leave(self) -> None:
        leadership.resign(leadership.HOUSEKEEPING, self.who.id, using=ENGINE)
        presence.leave(self.who.id, using=ENGINE)
        drop_connection()

    def _leads(self) -> bool:
        return leadership.lead(
            leadership.HOUSEKEEPING, self.who.id, lease=self._settings.leadership_lease, using=ENGINE
        )

    async def _every(self, interval: float, work: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(interval)
            try:
                work()
            except Exception:
                log.exception("routine.failed")

    def _enforce_deadlines(self) -> None:
        """At its deadline a handler must be dead: coroutines are cancelled; where that does not end it, the process."""
        self._check_threads()
        now = boottime()
        for held in self._book.overdue(now):
            if held.ask(Interrupt.LOST):
                log.warning("lease.deadline", extra={"job": str(held.claim.id), "type": held.claim.type})
        late = self._book.late(now, conf().recovery.lease_grace_period / 2)
        if late:
            log.critical("lease.outlived", extra={"jobs": [str(held.claim.id) for held in late]})
            os._exit(EXIT_LATE)

    def _check_threads(self) -> None:
        """A thread of the engine that died leaves the others working for nobody: end in order, and be started anew."""
        dead = [t.name for t in (self._claims, self._ends, self._heartbeat) if not t.is_alive()]
        if dead and not self._stopping.is_set():
            log.critical("engine.thread_died", extra={"threads": dead})
            self._failed = True
            self._stopping.set()

    def _on_signal(self) -> None:
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()

    def _on_work(self, queue: str) -> None:
        if queue in self._options.queues:
            self._consumer.wake()

    def _on_cancel(self, job: str, worker: str) -> None:
        if worker != str(self.who.id):
            return
        for held in self._book.everything():
            if str(held.claim.id) == job:
                self._heartbeat.cancel(held.claim.dispatch_id)

    def _on_connect(self) -> None:
        self._consumer.wake()
        self._services["promoter"].wake()
        self._heartbeat.hurry()

    def _describe(self) -> dict[str, object]:
        return {
            "worker": self.who.name,
            "id": str(self.who.id),
            "queues": dict(self.who.queues),
            "types": len(self.who.types),
            "version": self.who.version,
        }


def _presence(options: Options) -> presence.Presence:
    pid = identity.this_pid()
    return presence.Presence(
        id=new_id(),
        name=options.name or f"{identity.host()}-{pid}",
        host=identity.host(),
        boot_id=identity.boot_id(),
        pid_namespace=identity.pid_namespace(),
        pid=pid,
        pid_started=identity.start_time(pid),
        version=identity.turno_version(),
        queues=dict(options.queues),
        types=catalogue.names(),
    )


def end_process(worker_id: UUID, end: End) -> None:
    """End this process. Handlers that would not stop are threads of it: replacing its program ends them all at once,
    and the new program, in which nothing of them lives on, gives their jobs back."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    if end.clean:
        os._exit(end.code)
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # kept by the new program: nothing may break off the release
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "django", "turno", "release", str(worker_id), "--exit-code", str(end.code)]
    try:
        os.execve(sys.executable, command, environment)  # noqa: S606
    finally:  # there is no such program any more (an upgrade took it away): the leases' end returns the jobs
        os._exit(EXIT_FAILED)
