"""A small house for tests of keys and limits: enqueue, claim, end, and what is true of all gates at any moment."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from jobs import transitions
from jobs.ids import new_id
from jobs.outcomes import Claim, Ending
from jobs.states import Outcome, Reason, State
from jobs.transitions.insert import Enqueued, NewJob, insert
from jobs.transitions.keys import KEY
from jobs.transitions.keys import TYPE as OF_TYPE
from tests.kit import gatecheck
from tests.transitions.ear import Ear
from tests.transitions.edges import CALLER, claimant
from tests.transitions.rows import select

TYPE = "a.type"
QUEUE = "default"
K: dict[str, Any] = {"concurrency_key": "k", "concurrency_limit": 1}  # of a job: of this key one runs


def new(id_: UUID, *, type: str = TYPE, queue: str = QUEUE, priority: int = 0, **columns: object) -> NewJob:
    """A row to insert, of no special kind but for `columns`."""
    return NewJob(id_, type, queue, "{}", priority, 5, None, False, **columns)  # type: ignore[arg-type]


def enqueue(*ids: UUID, using: str = "default", **columns: object) -> list[Enqueued]:
    """Insert jobs in one batch; `columns` are those of each."""
    return insert([new(id_, **columns) for id_ in sorted(ids)], using=using)


def keyed(count: int, *, using: str = "default", **columns: Any) -> list[UUID]:
    """So many jobs of the key K, or with other `columns`, each enqueued by itself; their ids."""
    made = [new_id() for _ in range(count)]
    for id_ in made:
        enqueue(id_, using=using, **(K | columns))
    return made


def search(slots: int, *, types: Iterable[str] = (TYPE,), queue: str = QUEUE, using: str = "default") -> list[Claim]:
    """What a worker with so many free slots finds."""
    offer = [(queue, number) for number in range(1, slots + 1)]
    return transitions.claim_next(offer, types=list(types), **claimant(), using=using)


def end(*claims: Claim, to: State = State.SUCCEEDED, using: str = "default") -> None:
    """The handlers of these executions are done."""
    how = (Outcome.SUCCEEDED, Reason.SUCCEEDED) if to is State.SUCCEEDED else (Outcome.INTERRUPTED, Reason.RELEASED)
    endings = [Ending(claim.id, claim.dispatch_id, to, *how, counted=False) for claim in claims]
    transitions.settle(endings, worker_id=CALLER, using=using)


def open_told(ear: Ear, *, using: str = "default") -> None:
    """What whoever leads does: open the gates of keys and limits that were told of."""
    told = [payload.partition(":")[::2] for channel, payload in ear.heard() if channel == transitions.GATES]
    named = [(kind, value) for kind, value in told if kind in (KEY, OF_TYPE)]
    transitions.open_keys(named, limit=100, using=using)
    transitions.open_ids({int(value) for kind, value in told if kind == "id"}, limit=100, using=using)


def running(key: str) -> int:
    """How many jobs of the key run."""
    return select("SELECT count(*) AS n FROM turno.jobs WHERE state = 'Processing' AND concurrency_key = %s", key)[0][
        "n"
    ]


def states(key: str) -> dict[str, int]:
    """How many jobs of the key are in which state, parked ones by their gate."""
    rows = select(
        "SELECT CASE WHEN waiting_for = 'concurrency_key' THEN 'parked' ELSE state END AS state, count(*) AS n "
        "FROM turno.jobs WHERE concurrency_key = %s GROUP BY 1",
        key,
    )
    return {row["state"]: row["n"] for row in rows}


def held(kind: str, value: str) -> list[UUID]:
    """The jobs that hold the slots of a key, in the order of the slots."""
    rows = select(
        "SELECT s.job_id FROM turno.concurrency_slots AS s JOIN turno.concurrency_keys AS k ON k.id = s.key_id "
        "WHERE k.kind = %s AND k.value = %s ORDER BY s.slot",
        kind,
        value,
    )
    return [row["job_id"] for row in rows]


def room_and_waiting() -> list[str]:
    """Jobs that wait at a key though there is room: none but between a park and its notification."""
    return [id_ for _, id_ in gatecheck.broken("key_is_full")]
