"""From the broker to the claim: a message is gone only when the database has decided about its job.

The broker is a list: what is given back, or was in a dead worker's hands, is in it again.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from uuid import UUID

from jobs.presence import Presence
from tests.kit.processes import database_url
from tests.kit.proxy import Proxy, through
from tests.laws.guards import keep
from tests.transitions import rows
from tests.transitions.edges import CALLER
from tests.transitions.rows import Made, execute, make_job
from workers.connections import DATABASE_ERRORS
from workers.leases import LeaseBook
from workers.ledger import ClaimLedger
from workers.locks.base import JobLocks, NoLocks, Taken
from workers.transports.messages import Dispatch
from workers.transports.named import Delivery, NamedClaims

PATIENCE = 60.0  # seconds until a thread that hangs is told so


class Message(Delivery):
    """In the queue until it is acknowledged."""

    def __init__(self, made: Made, queue: list["Message"]) -> None:
        self.dispatch = Dispatch(made.id, made.token, made.queue)
        self._queue = queue
        queue.append(self)

    def ack(self) -> None:
        with suppress(ValueError):
            self._queue.remove(self)

    def give_back(self) -> None:
        """It is still there."""

    def reject(self, reason: str) -> None:
        self.ack()


class Held(JobLocks):
    """Every lock is held by somebody else."""

    async def acquire(self, pairs: Sequence[tuple[UUID, UUID]]) -> Taken:
        return Taken(frozenset(), frozenset(token for _, token in pairs))

    def release(self, pairs: Sequence[tuple[UUID, UUID]]) -> None:
        return


@contextmanager
def _ledger() -> Iterator[ClaimLedger]:
    who = Presence(CALLER, "w", "h", "b", "n", 7, "1", "0", {"default": 9}, ["test.echo"])
    ledger = ClaimLedger(who, LeaseBook(), 60.0, 100, 0.1)
    ledger.start()
    try:
        yield ledger
    finally:
        assert ledger.close(PATIENCE)


def take(queue: Sequence[Message], locks: JobLocks | None = None) -> None:
    """A worker gets what is in the queue, and ends."""

    async def claim(ledger: ClaimLedger) -> None:
        seated = [(message, slot) for slot, message in enumerate(list(queue), 1)]
        with suppress(*DATABASE_ERRORS):
            await NamedClaims(ledger, locks or NoLocks()).claim(seated)

    with _ledger() as ledger:
        asyncio.run(claim(ledger))


def _waits(made: Made) -> bool:
    """Whether the job is Enqueued: only a message can start it."""
    row = rows.job(made.id)
    return row is not None and row["state"] == "Enqueued"


def _promised(made: Made, queue: Sequence[Message]) -> None:
    keep(queue or not _waits(made), "a job waits for ever: its message is gone")


def claimed_without_a_database() -> None:
    """The database goes away when the message has come."""
    queue: list[Message] = []
    made = make_job()
    Message(made, queue)
    with Proxy(database_url()) as proxy, through(proxy, "engine"):
        proxy.cut(refuse=True)
        take(queue)
    _promised(made, queue)
    take(queue)
    keep(not _waits(made), "a job waits for ever: its message starts nothing")
    keep(not queue, "a message that has started its job is not acknowledged")


def claimed_while_its_queue_is_paused() -> None:
    """The pause comes when the message has come."""
    queue: list[Message] = []
    made = make_job()
    Message(made, queue)
    execute("INSERT INTO turno.pauses (scope, value) VALUES ('queue', 'default')")
    take(queue)
    keep(_waits(made), "a job of a paused queue was started")
    _promised(made, queue)


def of_a_type_that_the_worker_does_not_know() -> None:
    """It has come to a worker that can't run it."""
    queue: list[Message] = []
    made = make_job(type="other.type")
    Message(made, queue)
    take(queue)
    _promised(made, queue)


def locked_by_another() -> None:
    """Somebody holds the job's lock."""
    queue: list[Message] = []
    made = make_job()
    Message(made, queue)
    take(queue, Held())
    _promised(made, queue)
