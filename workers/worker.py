"""One worker process put together: identity, threads, routines, signals, and an end in order."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from jobs import events, presence
from jobs.conf import conf
from jobs.registry import catalogue
from workers import identity, protocol, runfiles
from workers.clock import boottime
from workers.connections import DATABASE_ERRORS, ENGINE, drop_connection
from workers.consumer import Consumer
from workers.heartbeat import Heartbeat
from workers.isolation import ForkServer, supported
from workers.leases import Interrupt, LeaseBook
from workers.ledger import ClaimLedger, EndLedger
from workers.line import SupervisorLine
from workers.listener import Listener
from workers.pulse import Pulse
from workers.service import guarded
from workers.slots import Slots
from workers.startup import introduction
from workers.streams import end_at_once
from workers.stuck import StuckHandlers
from workers.wiring import RELAY, Wiring

log = logging.getLogger(__name__)
TICK = 0.25  # seconds between two looks at the deadlines
LOCK_KEPT = 600.0  # seconds between two signs of life of the lock file


@dataclass(frozen=True, slots=True)
class Options:
    """What `runworker` was asked: slots by queue, a name (None: host and pid), seconds of grace at the end."""

    queues: Mapping[str, int]
    name: str | None
    shutdown_timeout: float


@dataclass(frozen=True, slots=True)
class End:
    """How a worker ended: `clean` when no handler is left running; `failed` when something of the engine broke."""

    clean: bool
    failed: bool = False

    @property
    def code(self) -> int:
        """The exit code of the worker's process, by which its supervisor goes."""
        if not self.clean:
            return protocol.EXIT_LEFT
        return protocol.EXIT_FAILED if self.failed else 0


class Worker:
    """A worker process. `main` works until it is asked to stop and says how it ended; `leave` ends the process then.

    `fork` comes before `main`, and after whatever its children may share with it.
    """

    def __init__(self, options: Options) -> None:
        settings = conf()
        self._settings = settings.worker
        self._options = options
        # From a deadline, when handlers are told to end, to the end of the process in which one still runs: well within
        # the grace after which recovery lets others start the job.
        self._patience = settings.recovery.lease_grace_period / 4
        self._line = SupervisorLine.of_environment(self._patience)
        self._problems = [{"module": p.module, "error": p.error} for p in catalogue.load(guarded=True)]
        self.who = introduction(options.name, options.queues, identity.worker_id(self._line.supervised))
        self._line.introduce(self.who.id, options.shutdown_timeout, self._settings.kill_grace)
        self._lock = runfiles.hold(self.who.id)
        self._forkserver: ForkServer | None = None
        self._book = LeaseBook(self._line.entered)
        self._claims = ClaimLedger(
            self.who, self._book, self._settings.lease_duration, self._settings.batch_size, self._settings.reconnect_max
        )
        self._ends = EndLedger(
            self.who.id, self._settings.batch_size, self._settings.reconnect_max, claims=self._claims
        )
        self._stuck = StuckHandlers(self._book)
        self._pulse = Pulse()
        self._slots = Slots(options.queues)
        self._heartbeat = Heartbeat(
            self.who,
            self._book,
            self._settings,
            problems=self._known_problems,
            slots=self._slots,
            renewed=lambda: self._line.refresh(self._book.nearest),
            pulse=self._pulse,
        )
        self._failed = False
        self._hurry, self._stopping = asyncio.Event(), asyncio.Event()

    def fork(self) -> None:
        """Fork the forkserver off, in the main thread, before there is another thread or an open connection. What was
        loaded and made by then is in memory once, for this process and all its children."""
        kept = [] if self._lock.fd is None else [self._lock.fd]
        self._forkserver = ForkServer.fork(forget=self._line.forget, keep=kept) if supported() else None
        if self._forkserver is None:
            log.warning("processes.unsupported", extra={"plain_handlers": "run in threads"})

    async def main(self, requests: protocol.StopRequests) -> "End":
        """Work until it is asked to stop; asked again, it returns everything at once. `requests`: what came so far."""
        loop = asyncio.get_running_loop()
        self._requests = requests
        for number in (protocol.STOP, *protocol.ASKED):
            loop.add_signal_handler(number, self._on_signal, number)
        self._heed()
        self._wiring = Wiring(self.who, self._claims, self._book)
        self._wiring.start()
        listener = Listener(
            on_work=self._on_work,
            on_due=lambda: self._wiring.wake("promoter", "recurring"),
            on_outbox=lambda: self._wiring.wake(RELAY),
            on_gate=self._wiring.hear,
            on_cancel=self._on_cancel,
            on_queue=self._on_queue,
            on_connect=self._on_connect,
            reconnect_max=self._settings.reconnect_max,
        )
        self._consumer = Consumer(
            self._wiring.transport,
            self._slots,
            self._book,
            self._ends,
            begin=self._claims.begin,
            locks=self._wiring.locks,
            forkserver=self._forkserver,
            settings=self._settings,
        )
        for thread in (self._claims, self._ends, self._heartbeat):
            thread.start()
        background = [
            asyncio.create_task(coroutine, name=name)
            for name, coroutine in (
                ("listener", listener.run()),
                ("notes", self._every(self._settings.progress_interval, self._consumer.notes.flush)),
                ("deadlines", self._every(TICK, self._enforce_deadlines)),
                ("lock", self._every(LOCK_KEPT, self._lock.keep)),
                *self._wiring.background(),
            )
        ]
        await loop.run_in_executor(None, self._heartbeat.registered.wait, 10)
        self._wiring.wake("neighbours")
        if self._stopping.is_set():
            self._consumer.stop_taking()
        taking = asyncio.create_task(self._consumer.run(), name="consumer")
        self._line.ready()
        log.info("worker.ready", extra=self._describe())
        await asyncio.wait([taking, asyncio.create_task(self._stopping.wait())], return_when=asyncio.FIRST_COMPLETED)
        if taking.done() and taking.exception() is not None:
            self._failed = True
            log.critical("consumer.failed", exc_info=taking.exception())
        clean = await self._stop(taking)
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        return End(clean, self._failed)

    async def _stop(self, taking: "asyncio.Task[None]") -> bool:
        loop = asyncio.get_running_loop()
        self._heartbeat.draining = True
        self._heartbeat.hurry()
        self._consumer.stop_taking()
        log.info("worker.stopping", extra={"running": len(self._book), "grace_seconds": self._options.shutdown_timeout})
        pausing = asyncio.create_task(self._wiring.transport.pause())
        # A claim that is under way is waited for: what it brings is started. One that takes longer brings it to the
        # lease book only, and the release gives it back.
        await asyncio.wait([taking], timeout=5)
        taking.cancel()
        await asyncio.wait([pausing], timeout=5)
        clean = await self._consumer.finish(self._options.shutdown_timeout, self._hurry)
        gone = await loop.run_in_executor(None, self._consumer.close, clean)
        self._consumer.notes.flush()
        closed = [await loop.run_in_executor(None, ledger.close, 5.0) for ledger in (self._claims, self._ends)]
        await loop.run_in_executor(None, self._heartbeat.close, 2.0)
        left = False
        with suppress(*DATABASE_ERRORS, TimeoutError):
            await self._wiring.in_a_routines_thread(lambda: guarded(self._leave), 5)
            left = True
        await self._wiring.close()
        return gone and (left or not self._claims.late) and all(closed) and not len(self._book)

    def _leave(self) -> None:
        self._heartbeat.release_strays()  # of a claim whose answer came too late, or never
        self._wiring.leadership.resign()
        presence.leave(self.who.id, using=ENGINE)
        events.changed(workers=[self.who.id])
        events.close()
        drop_connection()

    def _known_problems(self) -> list[dict[str, str]]:
        told = (self._stuck, self._consumer, self._wiring)
        return [*self._problems, *(problem for part in told for problem in part.problems())]

    async def _every(self, interval: float, work: Callable[[], object]) -> None:
        while True:
            await asyncio.sleep(interval)
            try:
                work()
            except Exception:
                log.exception("routine.failed")

    def _enforce_deadlines(self) -> None:
        """At its deadline a handler must be dead: a coroutine is cancelled, a child process killed; where that does not
        end it, this process ends, or is ended by its supervisor."""
        self._pulse.beat()
        if self.abandoned:  # where the system does not end a process with its parent, or a handler closed the line
            log.critical("supervisor.gone")
            end_at_once(protocol.EXIT_FAILED)
        self._check_threads()
        now = boottime()
        for held in self._book.overdue(now):
            if held.ask(Interrupt.LOST):
                log.warning("lease.deadline", extra={"job": str(held.claim.id), "type": held.claim.type})
        late = self._book.late(now, self._patience)
        if late:
            log.critical("lease.outlived", extra={"jobs": [str(held.claim.id) for held in late]})
            os._exit(protocol.EXIT_LATE)
        self._line.refresh(self._book.nearest)

    def _check_threads(self) -> None:
        """A part of the engine that died leaves the others working for nobody: end in order, and be started anew."""
        dead = [t.name for t in (self._claims, self._ends, self._heartbeat) if not t.is_alive()]
        dead += self._consumer.dead_parts()
        if dead and not self._stopping.is_set():
            log.critical("engine.part_died", extra={"parts": dead})
            self._failed = True
            self._stopping.set()

    def _on_signal(self, number: int) -> None:
        self._requests.note(number)
        self._heed()

    def _heed(self) -> None:
        if self._requests.asked >= 1:
            self._stopping.set()
        if self._requests.asked >= 2:
            self._hurry.set()

    def _on_work(self, queue: str) -> None:
        if queue in self._options.queues and not self._wiring.brokered:  # by a broker comes what there is to take
            self._consumer.hear()

    def _on_queue(self, queue: str) -> None:
        if queue in self._options.queues:
            self._wiring.transport.look()
            self._heartbeat.hurry()  # with its settings

    def _on_cancel(self, job: str, worker: str) -> None:
        if worker != str(self.who.id):
            return
        for held in self._book.everything():
            if str(held.claim.id) == job:
                self._heartbeat.cancel(held.claim.dispatch_id)

    def _on_connect(self) -> None:
        self._consumer.wake()
        self._wiring.wake("promoter", "recurring", RELAY)
        self._heartbeat.hurry()

    def _describe(self) -> dict[str, object]:
        return {
            "worker": self.who.name,
            "id": str(self.who.id),
            "queues": dict(self.who.queues),
            "types": len(self.who.types),
            "version": self.who.version,
            "pid": self.who.pid,
        }

    async def run(self, requests: protocol.StopRequests) -> NoReturn:
        """`main`, and the end of the process, in any case: no handler's thread may keep one going in which only the
        heartbeat works."""
        try:
            self.leave(await self.main(requests))
        except BaseException:
            log.critical("worker.failed", exc_info=True)
        finally:
            end_at_once(protocol.EXIT_FAILED)

    @property
    def abandoned(self) -> bool:
        """Whether its supervisor is gone, or can't be told anything any more."""
        return self._line.broken()

    def leave(self, end: End) -> NoReturn:
        """End this process at once, and with it the threads of handlers that would not stop: whether those have ended
        is the supervisor's to see, and then their jobs are given back."""
        if end.clean:
            self._lock.release()
        end_at_once(end.code)
