"""The way to the broker: an accepted job is announced, whoever dies between, and nothing is dropped that counts.

The broker is a list: what was published, in order.
"""

from collections.abc import Callable
from functools import partial
from uuid import UUID, uuid4

from jobs import transitions
from jobs.ids import new_id
from jobs.states import State
from jobs.transitions.insert import NewJob, insert
from tests.laws.guards import keep
from tests.laws.scenarios_together import while_somebody_looks
from tests.outbox.rows import all_due, put, with_broker
from tests.transitions.edges import CALLER, Fence, claimant, ending, lose, make
from tests.transitions.rows import ago, execute, make_job, make_worker

ENGINE = "engine"
Published = list[tuple[UUID, UUID | None]]


def relayed(*, dies: bool = False) -> Published:
    """What a relay publishes now; one that dies has its lease, and has published nothing."""
    lock_id = uuid4()
    rows_ = transitions.lease_outbox(limit=9, lock_id=lock_id, lease=60, using=ENGINE).messages
    if dies:
        return []
    transitions.confirm_outbox([row.id for row in rows_], lock_id=lock_id, using=ENGINE)
    return [(row.job, row.token) for row in rows_]


def started(published: Published) -> bool:
    """Whether a worker starts a job by these messages."""
    wanted = [(job, token, 1) for job, token in published if token is not None]
    return bool(transitions.claim(wanted, **claimant(), using=ENGINE))


def _created(key: str | None = None) -> None:
    row = NewJob(new_id(), "test.echo", "default", "{}", 0, 3, timeout=None, at_most_once=False, unique_key=key)
    insert([row], using=ENGINE)


def _due() -> None:
    make_job(State.SCHEDULED, run_at=ago(1))
    transitions.promote(limit=9, using=ENGINE)


def _run_now() -> None:
    transitions.run_now([make_job(State.SCHEDULED).id], using=ENGINE)


def _requeued() -> None:
    transitions.requeue([make_job(State.FAILED).id], using=ENGINE)


def _released() -> None:
    transitions.settle([ending(make("processing", Fence.RIGHT), State.ENQUEUED)], worker_id=CALLER, using=ENGINE)


def _lost() -> None:
    make("expired", Fence.RIGHT)
    lose(ENGINE)


def _gate_opened() -> None:
    made = make_job(State.SCHEDULED, waiting_for="unknown_type", gate="test.echo")
    make_worker(queues={made.queue: 1}, types=["test.echo"])
    try:
        transitions.open_unknown(limit=9, silent_after=15, using=ENGINE)
    finally:
        execute("DELETE FROM turno.workers")


ENTRIES: dict[str, Callable[[], None]] = {
    "created": _created,
    "created with a key": partial(_created, "one"),
    "due": _due,
    "run now": _run_now,
    "requeued": _requeued,
    "released": _released,
    "lost": _lost,
    "gate opened": _gate_opened,
}
# Where each of them is written.
WAYS = {
    "created": "insert.PLAIN_DISPATCHED",
    "created with a key": "insert.INSERT",
    "due": "promote.PROMOTE",
    "run now": "people.RUN_NOW",
    "requeued": "people.REQUEUE",
    "released": "finish.FINISH",
    "lost": "finish.FINISH",
    "gate opened": "unknown.OPEN_UNKNOWN",
}


def killed_after_its_commit(way: str) -> None:
    """Whoever makes a job Enqueued is killed when that is committed; everybody else goes on."""
    with with_broker():
        ENTRIES[way]()
        keep(started(relayed()), "an accepted job waits for ever: nobody was told of it")


def relay_killed_before_it_publishes() -> None:
    """A relay has a message in its hands and is killed; its lease ends."""
    put(make_job())
    relayed(dies=True)
    all_due()
    keep(started(relayed()), "a job waits for ever: its message died with a relay")


def published_once() -> None:
    """Nothing happens to anybody."""
    put(make_job())
    keep(started(relayed()), "a job waits for ever: its message was thrown away")


def lost_by_the_broker() -> None:
    """A message was confirmed, and the broker has it no more."""
    make_job(announced_at=ago(60))
    transitions.reannounce_oldest("default", age=10, limit=9, using=ENGINE)
    keep(started(relayed()), "a job waits for ever: its new message does not name it")


def put_aside_while_somebody_looks(verb: str) -> None:
    """A message's job can't be started here, while somebody has it locked for a moment; the message is acknowledged."""
    case = make("enqueued", Fence.RIGHT)
    act = {"defer": transitions.defer, "park_unknown": transitions.park_unknown}[verb]
    moved = while_somebody_looks(case.made.id, lambda: act([(case.made.id, case.token)], using=ENGINE))
    keep(moved, "a job waits for ever: its message was acknowledged and it waits for nothing else")


def given_up_while_somebody_looks() -> None:
    """The broker has given a message up, and it was taken off there, while somebody has its job locked for a moment."""
    case = make("enqueued", Fence.RIGHT)
    again = while_somebody_looks(
        case.made.id, lambda: transitions.reannounce([(case.made.id, case.token)], using=ENGINE)
    )
    keep(again, "a job waits for ever: its message was taken off and not written anew")
