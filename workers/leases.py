"""The lease book: what this process runs, with token, deadline and the word "stop" for each. Thread-safe."""

import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from django.utils.translation import gettext as _

from jobs.cancellation import CancelFlag
from jobs.errors import JobCancelled, JobError, JobTimeout, LeaseLost
from jobs.outcomes import Claim
from workers.clock import boottime

CANCEL_GRACE = 1.0  # seconds that a handler has to stop by itself after ctx.cancelled became true
STOPPING = 0.5  # seconds that a handler has to stop once it is told that its lease is over
STUCK = 5.0  # seconds after which a handler that was asked to stop and runs on is shown to people


class Interrupt(StrEnum):
    """Why a running handler was asked to stop; the first that is said stays, but for LOST, which overrides."""

    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    SHUTDOWN = "shutdown"
    LOST = "lost"


@dataclass(eq=False, slots=True)
class Held:
    """One execution that this process runs. `deadline` and the instants are on `workers.clock.boottime`.

    Whoever runs the handler sets `stop`, called in any thread when it is asked to stop, and, where somebody else keeps
    the deadline too, `extended`, called with each new one: neither may wait for anything. `thread` is the identifier of
    the thread that it runs in, here in this process.
    """

    claim: Claim
    deadline: float
    flag: CancelFlag = field(default_factory=CancelFlag)
    interrupt: Interrupt | None = None
    stop: Callable[[Interrupt], None] | None = None
    extended: Callable[[float], None] | None = None
    asked_at: float | None = None
    thread: int | None = None
    overdue_since: float | None = None
    ended: bool = False  # the handler is over; what is left is to write its end
    freed: bool = False  # that is done: its slot is free
    since: float = field(default_factory=boottime)  # when it came into the book
    _asking: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, why: Interrupt, limit: float | None = None) -> bool:
        """Ask the handler to stop. False when it was asked before (and this is not a loss)."""
        with self._asking:  # engine and heartbeat may ask at the same moment
            if self.ended:
                return False
            if self.interrupt is not None and (why is not Interrupt.LOST or self.interrupt is Interrupt.LOST):
                return False
            self.interrupt = why
            self.asked_at = self.asked_at or boottime()
        self.flag.set(_error(why, limit))
        stop = self.stop  # read once: the engine may give it another way to stop at this moment
        if stop is not None:
            stop(why)
        return True

    def end(self) -> None:
        """The handler is over. How to stop it is forgotten: that leads to the execution, which leads here, and such a
        ring stays in memory until a collection finds it, with thousands of others."""
        self.ended = True
        self.stop = self.extended = None

    def expire(self) -> None:
        """Ask the handler to stop when its deadline has passed: nothing begins after it."""
        if self.deadline <= boottime():
            self.ask(Interrupt.LOST)


@dataclass(frozen=True, slots=True)
class Named:
    """What became of jobs that messages named: those that are held now, and the tokens of those that wait on, since no
    worker may start them for now. Of the others the messages have said all they had to say."""

    held: list[Held]
    waiting: frozenset[UUID] = frozenset()


def timeout_error(limit: float) -> JobTimeout:
    """What ends an attempt that ran longer than its limit, in seconds."""
    return JobTimeout(_("The attempt ran longer than its limit of %(limit)s s.") % {"limit": f"{limit:g}"})


def _error(why: Interrupt, limit: float | None) -> JobError:
    if why is Interrupt.TIMEOUT:
        return timeout_error(limit or 0.0)
    if why is Interrupt.CANCELLED:
        return JobCancelled(_("The job was cancelled."))
    if why is Interrupt.SHUTDOWN:
        return JobCancelled(_("The worker is shutting down; the job returns to its queue."))
    return LeaseLost(_("This worker no longer owns the job."))


class LeaseBook:
    """Every execution between its claim and its settled end, by dispatch token, and the claims whose answer is due.

    The order matters for strays: a claim id leaves `in_flight` only after its jobs stand in the book. `entered` is told
    the deadline of a claim before it is sent: from then on this process may be stopped, and own jobs all the same.
    """

    def __init__(self, entered: Callable[[float], None] = lambda deadline: None) -> None:
        self._entered = entered
        self._lock = threading.Lock()
        self._held: dict[UUID, Held] = {}
        self._in_flight: dict[UUID, float] = {}
        self._expired: dict[UUID, Held] = {}

    def begin(self, claim_id: UUID, deadline: float) -> None:
        """A claim is about to be sent; what it takes may run until `deadline`."""
        with self._lock:
            self._in_flight[claim_id] = deadline
        self._entered(deadline)

    def enter(self, claim_id: UUID, claims: Iterable[Claim], deadline: float) -> list[Held]:
        """The claim's answer came: its jobs are held until `deadline`."""
        held = [Held(claim, deadline) for claim in claims]
        with self._lock:
            self._held.update((h.claim.dispatch_id, h) for h in held)
            self._in_flight.pop(claim_id, None)
        return held

    def abandon(self, claim_id: UUID) -> None:
        """The claim failed, or its answer was lost: what it may have taken is a stray."""
        with self._lock:
            self._in_flight.pop(claim_id, None)

    def is_stray(self, token: UUID, claim_id: UUID) -> bool:
        """Whether nobody in this process will ever run the job that `claim_id` took with `token`.

        Asked after the table was read: a claim that has ended since stands in the book, or among the expired.
        """
        with self._lock:
            return claim_id not in self._in_flight and token not in self._held and token not in self._expired

    def get(self, token: UUID) -> Held | None:
        """The execution of this token, if it is held."""
        return self._held.get(token)

    def known(self, token: UUID) -> Held | None:
        """The same, also past its deadline."""
        with self._lock:
            return self._held.get(token) or self._expired.get(token)

    def renewable(self, now: float) -> list[Held]:
        """What may be renewed: not past its deadline, for renewal must not revive it."""
        with self._lock:
            return [h for h in self._held.values() if h.deadline > now]

    def everything(self) -> list[Held]:
        """Every execution that has not been settled, those past their deadline included."""
        with self._lock:
            return self._everything()

    def _everything(self) -> list[Held]:
        return [*self._held.values(), *self._expired.values()]

    def tokens(self) -> list[UUID]:
        """The tokens of everything held."""
        with self._lock:
            return [*self._held, *self._expired]

    def extend(self, tokens: Iterable[UUID], deadline: float) -> None:
        """The leases of `tokens` were renewed; the deadline is counted from before that was sent."""
        with self._lock:
            renewed = [self._held[token] for token in tokens if token in self._held]
            for held in renewed:
                held.deadline = deadline
        for held in renewed:
            extended = held.extended  # read once: its child may give it back at this moment
            if extended is not None:
                extended(deadline)

    def nearest(self) -> float | None:
        """The first deadline of the handlers that run, those past it included, and of claims in flight; None: of none.

        A claim that is seen to be late counts no more: nothing of it will be started here.
        """
        with self._lock:
            running = (h.deadline for h in self._everything() if not h.ended)
            coming = (deadline for deadline in self._in_flight.values() if deadline < math.inf)
            return min((*running, *coming), default=None)

    def stuck(self, now: float) -> list[Held]:
        """Handlers that were asked to stop more than STUCK seconds ago and run on."""
        with self._lock:
            return [h for h in self._everything() if not h.ended and h.asked_at and h.asked_at + STUCK <= now]

    def overdue(self, now: float) -> list[Held]:
        """Take what is past its deadline out of the book: from here on it is not renewed, only waited for."""
        with self._lock:
            for claim_id in [c for c, deadline in self._in_flight.items() if deadline <= now]:
                self._in_flight[claim_id] = math.inf
            late = [h for h in self._held.values() if h.deadline <= now]
            for h in late:
                h.overdue_since = now
                self._expired[h.claim.dispatch_id] = self._held.pop(h.claim.dispatch_id)
            return late

    def outlived(self) -> bool:
        """Whether a handler runs on past its deadline: this process may end with it at any moment."""
        with self._lock:
            return any(not h.ended for h in self._expired.values())

    def late(self, now: float, patience: float) -> list[Held]:
        """Handlers that run on although their deadline passed more than `patience` seconds ago.

        Each had STOPPING seconds since this process saw it: one that was frozen sees it only when it wakes.
        """
        with self._lock:
            return [
                h
                for h in self._expired.values()
                if not h.ended
                and h.deadline + patience <= now
                and h.overdue_since is not None
                and h.overdue_since + STOPPING <= now
            ]

    def give_up(self, token: UUID) -> None:
        """The end could not be written: renewed no more, and known, so that it is no stray. Recovery will find it."""
        with self._lock:
            held = self._held.pop(token, None)
            if held is not None:
                self._expired[token] = held

    def close(self, token: UUID) -> None:
        """The execution's end is written, or known to be nobody's: it leaves the book."""
        with self._lock:
            self._held.pop(token, None)
            self._expired.pop(token, None)

    def __len__(self) -> int:
        return len(self._held) + len(self._expired)
