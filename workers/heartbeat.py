"""The heartbeat thread: leases, sign of life, cancels, strays. Its own connection; no handler can hold it up."""

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from jobs import events, presence, transitions
from jobs.sections import Worker as WorkerSettings
from jobs.text import first_line
from workers import protocol
from workers.clock import boottime
from workers.connections import DATABASE_ERRORS, ENGINE, Backoff, drop_connection
from workers.leases import Interrupt, LeaseBook
from workers.policies import declared_limits
from workers.pulse import Pulse
from workers.slots import Slots

log = logging.getLogger(__name__)


class Heartbeat(threading.Thread):
    """Renews all leases in one statement every `lease_renewal_interval`; what does not come back renewed is lost.

    `problems` is asked at each sign of life for what people should know of this worker; `slots` hears of those that
    somebody has set for its queues; `renewed` is told after each renewal. When the engine's `pulse` is silent for as
    long as a lease, this process ends.
    """

    def __init__(
        self,
        who: presence.Presence,
        book: LeaseBook,
        settings: WorkerSettings,
        problems: Callable[[], Sequence[Mapping[str, str]]],
        *,
        slots: Slots | None = None,
        renewed: Callable[[], None] = lambda: None,
        pulse: Pulse | None = None,
    ) -> None:
        super().__init__(name="turno-heartbeat", daemon=True)
        self._who = who
        self._book = book
        self._settings = settings
        self._problems = problems
        self._slots = slots or Slots(who.queues)
        self._renewed = renewed
        self._pulse = pulse or Pulse()
        self.registered = threading.Event()
        self._wake = threading.Event()
        self._closing = False
        self._backoff = Backoff(settings.reconnect_max)
        self._next = {"beat": 0.0, "renew": 0.0, "cancels": 0.0}
        self.draining = False
        self.connected = True

    def close(self, timeout: float) -> None:
        """End after the statement under way."""
        self._closing = True
        self._wake.set()
        self.join(timeout)

    def hurry(self) -> None:
        """Do everything now: the worker's state changed."""
        self._next = dict.fromkeys(self._next, 0.0)
        self._wake.set()

    def run(self) -> None:
        while not self._closing:
            pause = self._pause()
            try:
                self._turn()
                if not self.connected:
                    log.info("database.back", extra={"part": self.name})
                self.connected = True
                self._backoff.reset()
            except DATABASE_ERRORS as error:
                pause = self._backoff.delay()
                if self.connected:
                    log.warning("database.away", extra={"part": self.name, "error": first_line(error)})
                self.connected = False
                drop_connection()
            except Exception:
                log.exception("heartbeat.failed")
                drop_connection()
            woken = self._wake.wait(pause)
            self._wake.clear()
            if not woken and self._pulse.silent(pause) > self._settings.lease_duration:
                # Nobody keeps deadlines here, and nobody hears a stop: the supervisor starts a worker that does.
                log.critical("engine.silent")
                os._exit(protocol.EXIT_FAILED)
        with suppress(*DATABASE_ERRORS):
            self._renew()  # what is left running: its release has a whole lease of time
        drop_connection()

    def _pause(self) -> float:
        """Seconds until the next thing that is due."""
        return max(0.02, min(min(self._next.values()) - boottime(), self._settings.cancel_poll_interval))

    def _due(self, what: str, interval: float) -> bool:
        now = boottime()
        if self._next[what] > now:
            return False
        self._next[what] = now + interval
        return True

    def _turn(self) -> None:
        settings = self._settings
        # Renewal comes first: it is what others wait for.
        if self._due("renew", settings.lease_renewal_interval):
            try:
                self._renew()
            except DATABASE_ERRORS:
                self._next["renew"] = 0.0
                raise
        # Cancels come by notification; where that is lost or cut off, this finds them within its interval.
        if self._due("cancels", settings.cancel_poll_interval) and len(self._book):
            for token in transitions.cancels(worker_id=self._who.id, using=ENGINE):
                self.cancel(token)
        if self._due("beat", settings.heartbeat_interval):
            state = "Draining" if self.draining else "Online"
            queues = {**self._who.queues, **transitions.slots_of(self._who.queues, using=ENGINE)}
            self._slots.ask(queues)
            presence.beat(replace(self._who, queues=queues), state=state, problems=self._problems(), using=ENGINE)
            if not self.registered.is_set():
                transitions.declare_limits(declared_limits(self._who.types), using=ENGINE)
                self.registered.set()
            events.changed(workers=[self._who.id])
            self.release_strays()

    def cancel(self, token: object) -> None:
        """Somebody asked to cancel the execution of this token."""
        held = self._book.get(token)  # type: ignore[arg-type]
        if held is not None and held.ask(Interrupt.CANCELLED):
            log.info("job.cancelling", extra={"job": str(held.claim.id), "type": held.claim.type})

    def _renew(self) -> None:
        sent = boottime()
        held = {h.claim.dispatch_id: h for h in self._book.renewable(sent)}
        if not held:
            return
        renewal = transitions.renew(
            [(h.claim.id, token) for token, h in held.items()],
            worker_id=self._who.id,
            lease=self._settings.lease_duration,
            using=ENGINE,
        )
        self._book.extend(renewal.renewed, sent + self._settings.lease_duration)
        self._renewed()
        if renewal.skipped:
            self._next["renew"] = min(self._next["renew"], sent + 1.0)
        for token in renewal.cancelled:
            self.cancel(token)
        for token in renewal.lost:
            # A row that left Processing because its end was just written is no loss: its handler has ended.
            if held[token].ask(Interrupt.LOST):
                log.warning("lease.lost", extra={"job": str(held[token].claim.id), "type": held[token].claim.type})

    def release_strays(self) -> None:
        """Give back, uncharged, what the table says is this worker's and nobody here will ever run."""
        mine = transitions.strays(worker_id=self._who.id, known=self._book.tokens(), using=ENGINE)
        strays = [(job, token) for job, token, claim_id in mine if self._book.is_stray(token, claim_id)]
        if strays:
            transitions.release(strays, worker_id=self._who.id, started=False, using=ENGINE)
            events.changed(jobs=[job for job, _ in strays], workers=[self._who.id], topics=("queues",))
            log.warning("claims.strays_released", extra={"jobs": [str(job) for job, _ in strays]})
