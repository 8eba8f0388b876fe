"""The two ledgers of a worker: one thread writes claims, another what ends and what running jobs say.

Each calls the same synchronous verbs of `jobs.transitions` as everybody else. Ends are written until the database has
taken them: it may be away for long, and the fence then tells whether they still count.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any
from uuid import UUID

from jobs import events, transitions
from jobs.ids import new_id
from jobs.outcomes import Claim, Ending
from jobs.presence import Presence
from jobs.states import State
from jobs.transitions.seats import owned_by
from jobs.transitions.sql import refused
from workers.breakers import Breakers
from workers.clock import boottime
from workers.connections import DATABASE_ERRORS, ENGINE, drop_connection
from workers.groupcommit import Ledger
from workers.leases import Held, LeaseBook, Named
from workers.logs import Lines

log = logging.getLogger(__name__)
Settled = transitions.Settled
OnSettled = Callable[[Settled | None], None]
Offered = Mapping[UUID, tuple[str, int]]
GATHER = 0.002


class ClaimLedger(Ledger):
    """Claims for free slots. Each claim carries an id of its own, so that a lost answer is found out (strays)."""

    def __init__(
        self, presence: Presence, book: LeaseBook, lease: float, batch_size: int, reconnect_max: float
    ) -> None:
        super().__init__("turno-claims", batch_size, reconnect_max)
        self._presence = presence
        self._book = book
        self.late = False  # whether jobs came that nobody here will run
        self._lease = lease

    def claim(self, offer: Sequence[tuple[str, int]]) -> "Future[list[Held]]":
        """Claim jobs for free slots (queue, slot). Fails with a database error when there is none at the moment."""
        types = self._presence.types
        return self._do(lambda: self._claim(lambda owner: transitions.claim_next(offer, types=types, **owner))[1])

    def claim_named(self, wanted: Sequence[transitions.Wanted]) -> "Future[Named]":
        """Claim what messages named, each token once. Jobs of unknown types are parked. Fails with a database error if
        there is none at the moment: nothing is known of any then."""
        return self._do(lambda: self._claim_named(wanted))

    def defer(self, pairs: Sequence[tuple[UUID, UUID]]) -> "Future[object]":
        """Let these (job, dispatch token) come again in a moment: somebody holds their locks."""
        return self._do(lambda: transitions.defer(pairs, using=ENGINE))

    def begin(self, held: Sequence[Held], begun: bool) -> "Future[frozenset[UUID]]":
        """Say of claimed jobs that their handlers begin now, or wait for their turn; the tokens of those still ours."""
        pairs = [(h.claim.id, h.claim.dispatch_id) for h in held]
        worker = self._presence.id
        return self._do(lambda: transitions.begin(pairs, worker_id=worker, begun=begun, using=ENGINE))

    def paused(self, queues: Sequence[str]) -> "Future[set[str]]":
        """Those of these queues that are paused."""
        return self._do(lambda: transitions.paused(queues, using=ENGINE))

    def settle(self, endings: Sequence[Ending], slots: Offered, room: Mapping[str, int]) -> list[Settled]:
        """In the thread of the ledger of ends: write these as `transitions.settle` does, and hold who starts with them
        in `slots`, which are theirs; `room` is what is free besides. What is answered too late is not held."""
        answers: list[Settled] = []

        def take(owner: dict[str, Any]) -> list[Claim]:
            using = owner.pop("using")
            seats = transitions.Seats(slots, room, self._presence.types, owned_by(**owner))
            answers[:] = transitions.settle(endings, worker_id=self._presence.id, seats=seats, using=using)
            return [answer.successor for answer in answers if answer.successor is not None]

        self._claim(take)
        return answers

    def _do[T](self, work: Callable[[], T]) -> "Future[T]":
        future: Future[T] = Future()
        self.put((work, future))
        return future

    def write(self, batch: list[Any]) -> None:
        for work, future in batch:
            if not future.set_running_or_notify_cancel():
                continue  # nobody waits for it any more
            try:
                answer = work()
            except Exception as error:
                if isinstance(error, DATABASE_ERRORS) and not refused(error):
                    self._away(error)
                    self._closing.wait(self._backoff.delay())
                else:
                    log.exception("claim.failed")
                    drop_connection()
                future.set_exception(error)
            else:
                self._answered()
                future.set_result(answer)

    def _claim(self, take: Callable[[dict[str, Any]], list[Claim]]) -> tuple[list[Claim], list[Held]]:
        """The claims that are committed, and what of them is held here: all, or none when the answer came too late."""
        claim_id = new_id()
        deadline = boottime() + self._lease  # counted from before it is sent
        self._book.begin(claim_id, deadline)
        try:
            claims = take(self._owner(claim_id))
        except Exception:
            self._book.abandon(claim_id)
            raise
        held = self._enter(claim_id, claims, deadline)
        if claims:
            events.changed(jobs=[c.id for c in claims], workers=[self._presence.id], topics=("queues",))
        return claims, held

    def _claim_named(self, wanted: Sequence[transitions.Wanted]) -> Named:
        types = self._presence.types
        claims, held = self._claim(lambda owner: transitions.claim(wanted, types=types, **owner))
        claimed = {claim.dispatch_id for claim in claims}
        out = [one for one in wanted if one.token not in claimed]
        try:
            return Named(held, frozenset(transitions.left(out, types=types, using=ENGINE)))
        except Exception as error:  # what was claimed runs all the same
            if not isinstance(error, DATABASE_ERRORS):
                log.exception("claim.undecided")
            drop_connection()
            return Named(held, frozenset(one.token for one in out))

    def _enter(self, claim_id: UUID, claims: list[Claim], deadline: float) -> list[Held]:
        if boottime() < deadline:
            return self._book.enter(claim_id, claims, deadline)
        # The answer comes so late that others may have the jobs by now: they are strays, and given back if still ours.
        self._book.abandon(claim_id)
        if claims:
            self.late = True
            log.warning("claim.late", extra={"jobs": [str(claim.id) for claim in claims]})
        return []

    def _owner(self, claim_id: UUID) -> dict[str, Any]:
        return {
            "worker_id": self._presence.id,
            "claim_id": claim_id,
            "label": self._presence.label,
            "lease": self._lease,
            "using": ENGINE,
        }


class EndLedger(Ledger):
    """Ends of executions, releases, and notes (progress, stage, log lines) of running ones."""

    def __init__(
        self, worker_id: UUID, batch_size: int, reconnect_max: float, *, claims: ClaimLedger | None = None
    ) -> None:
        super().__init__("turno-ends", batch_size, reconnect_max, gather=GATHER)
        self._worker_id = worker_id
        self._claims = claims
        # Asked in the ledger's thread, with tokens: their slots that whoever is woken by the ends may have, and what of
        # each queue is free besides.
        self.offer: Callable[[Sequence[UUID]], tuple[Offered, Mapping[str, int]]] = lambda _tokens: ({}, {})
        self.breakers = Breakers()
        self._unwritten: dict[UUID, transitions.Note] = {}

    def settle(self, ending: Ending, done: OnSettled, *, keyed: bool = False) -> None:
        """Write an end; `done` is called in the ledger's thread with what became of it, None when it can't be told.
        One of a `keyed` job waits for no others: its slot is somebody's who waits.

        What it then records in `breakers` is looked at once the batch is done.
        """
        if keyed:
            self.hurry()
        self.put((ending, done))

    def note(self, note: transitions.Note) -> None:
        """Store what a running job says. While the database is away its lines are kept: they go with the next, or with
        the job's end."""
        self.put((note, None))

    def write(self, batch: list[Any]) -> None:
        for item, _ in batch:
            if isinstance(item, transitions.Note):
                self._keep(item)
        endings = [(self._with_lines(item), done) for item, done in batch if isinstance(item, Ending)]
        if self._unwritten:
            self._note()
        if endings:
            self._settle(endings)
            self._trip()

    def _keep(self, note: transitions.Note) -> None:
        earlier = self._unwritten.get(note.dispatch_id)
        self._unwritten[note.dispatch_id] = note if earlier is None else earlier.followed_by(note)

    def _with_lines(self, ending: Ending) -> Ending:
        """An end carries what its execution said last: progress it has itself, lines that are not written yet."""
        note = self._unwritten.pop(ending.dispatch_id, None)
        return ending if note is None else replace(ending, logs=note.logs + ending.logs)

    def _note(self) -> None:
        try:
            transitions.note(list(self._unwritten.values()), worker_id=self._worker_id, using=ENGINE)
        except DATABASE_ERRORS as error:
            self._away(error)  # an end must not wait for it
        except Exception:
            log.exception("note.failed")
            drop_connection()
            self._unwritten.clear()
        else:
            self._answered()
            events.changed(jobs=[note.id for note in self._unwritten.values()], workers=[self._worker_id])
            self._unwritten.clear()

    def _settle(self, endings: list[tuple[Ending, OnSettled]], *, offering: bool = True) -> None:
        while True:
            try:
                answers = self._written([e for e, _ in endings], offering)
            except DATABASE_ERRORS as error:
                if not self._wait(error):
                    for _, done in endings:
                        done(None)  # the lease's end, or the release, tells
                    return
            except Exception as error:
                log.exception("settle.failed", extra={"endings": len(endings)})
                drop_connection()
                if offering:  # the fault may lie with who would start
                    self._settle(endings, offering=False)
                else:
                    self._settle_one_by_one(endings, error)
                return
            else:
                self._answered()
                break
        with Lines.together():
            for (_, done), answer in zip(endings, answers, strict=True):
                done(answer)
        self._tell([ending for ending, _ in endings], answers)

    def _written(self, endings: Sequence[Ending], offering: bool) -> list[Settled]:
        slots, room = self.offer([ending.dispatch_id for ending in endings]) if offering else ({}, {})
        if slots and self._claims is not None:
            return self._claims.settle(endings, slots, room)
        return transitions.settle(endings, worker_id=self._worker_id, using=ENGINE)

    def _tell(self, endings: Sequence[Ending], answers: Sequence[Settled]) -> None:
        letters = ("letters",) if any(answer.state is State.FAILED for answer in answers) else ()
        events.changed(jobs=[e.id for e in endings], workers=[self._worker_id], topics=("queues", *letters))

    def _trip(self) -> None:
        """A failure here costs nothing: the next failed job asks again."""
        try:
            self.breakers.trip()
        except DATABASE_ERRORS as error:
            self._away(error)
        except Exception:
            log.exception("breaker.failed")
            drop_connection()

    def _settle_one_by_one(self, endings: list[tuple[Ending, OnSettled]], error: Exception) -> None:
        """After a fault that nobody foresaw: whom it concerns ends Failed, the others as they ended."""
        if len(endings) > 1:
            for pair in endings:
                self._settle([pair], offering=False)
            return
        [(ending, done)] = endings
        try:
            [answer] = transitions.settle(
                [transitions.unstored(ending, error)], worker_id=self._worker_id, using=ENGINE
            )
        except Exception:
            log.exception("settle.given_up", extra={"job": str(ending.id)})
            drop_connection()
            done(None)
        else:
            done(answer)
            self._tell([ending], [answer])
