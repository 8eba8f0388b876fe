"""Two at once, with nobody leading and nobody locking anything for them; and batches that meet."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

from django.db import DatabaseError, IntegrityError, OperationalError, connections

from jobs import transitions
from jobs.states import State
from jobs.transitions import Note
from tests.doubt.test_conflicts import conflicts
from tests.laws.guards import keep
from tests.races.two import PATIENCE, Other, holding, is_free, lock, rival
from tests.transitions import rows
from tests.transitions.edges import CALLER, Case, Fence, claimant, ending, lose, make
from tests.transitions.rows import Made, make_job

ENGINE = "engine"


def both(work: Callable[[str], Any]) -> None:
    """The work twice: while the first has not committed, the second does it too, or waits for the first."""
    done = threading.Event()

    def second() -> Any:
        try:
            with suppress(IntegrityError):  # refused by the database: nothing is written, which is what counts
                return work(ENGINE)
        finally:
            done.set()

    with holding():
        work("default")
        other = Other(second)
        while not done.wait(0.005) and not waits(other):
            pass
    other.answer()


def waits(other: Other[Any]) -> bool:
    with suppress(AssertionError):
        pid = other._pid.result(PATIENCE)
        return bool(rows.select("SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'", pid))
    return False


def promoted_by_two() -> None:
    """Two leaders promote the same job."""
    made = make_job(State.SCHEDULED, run_at=rows.ago(1))
    both(lambda using: transitions.promote(limit=9, using=using))
    keep(rows.edges(made.id) == [("Scheduled", "Enqueued", "due")], "a job was enqueued twice")


def recovered_by_two() -> None:
    """Two leaders recover the same job."""
    case = make("expired", Fence.RIGHT)
    both(lose)
    row = rows.job(case.made.id)
    keep((row["attempts_used"], row["lost_count"]) == (1, 1), "one loss was charged twice")


def claimed_by_two() -> None:
    """Two workers search for work at once."""
    case = make("enqueued", Fence.RIGHT)
    found: list[Any] = []

    def search(using: str) -> None:
        offer = [(case.made.queue, 1)]
        found.extend(transitions.claim_next(offer, types=["test.echo"], **claimant(), using=using))

    both(search)
    keep(len(found) == 1, "two executions live side by side: two workers claimed one job")


def while_somebody_looks[T](id_: UUID, act: Callable[[], T]) -> T:
    """What `act` answers, begun while somebody has the job locked for a moment (a cancel that is rolled back)."""
    answered = threading.Event()

    def told() -> T:
        try:
            return act()
        finally:
            answered.set()

    with rival() as other:
        lock(other, id_)
        late = Other(told)
        while not answered.wait(0.005) and not waits(late):
            pass
        other.rollback()
    return late.answer()


def message_while_somebody_looks() -> None:
    """A message comes while somebody has its job locked for a moment."""
    case = make("enqueued", Fence.RIGHT)
    wanted = [(case.made.id, case.token, 1)]
    claims = while_somebody_looks(case.made.id, lambda: transitions.claim(wanted, **claimant(), using=ENGINE))
    # Whatever it answered, the message is acknowledged now.
    keep(claims, "a job waits for ever: its message was acknowledged and nobody started it")


VERBS: dict[str, tuple[State, Callable[[list[Case]], object]]] = {
    "settle": (
        State.PROCESSING,
        lambda cases: transitions.settle([ending(c, State.SUCCEEDED) for c in cases], worker_id=CALLER, using=ENGINE),
    ),
    "note": (
        State.PROCESSING,
        lambda cases: transitions.note([Note(c.made.id, c.token, 9) for c in cases], worker_id=CALLER, using=ENGINE),
    ),
    "release": (
        State.PROCESSING,
        lambda cases: transitions.release([(c.made.id, c.token) for c in cases], worker_id=CALLER, using=ENGINE),
    ),
    "claim": (
        State.ENQUEUED,
        lambda cases: transitions.claim([(c.made.id, c.token, 0) for c in cases], **claimant(), using=ENGINE),
    ),
    "cancel": (State.ENQUEUED, lambda cases: transitions.cancel([c.made.id for c in cases], using=ENGINE)),
    "defer": (State.ENQUEUED, lambda cases: transitions.defer([(c.made.id, c.token) for c in cases], using=ENGINE)),
    "park_unknown": (
        State.ENQUEUED,
        lambda cases: transitions.park_unknown([(c.made.id, c.token) for c in cases], using=ENGINE),
    ),
    "reannounce": (
        State.ENQUEUED,
        lambda cases: transitions.reannounce([(c.made.id, c.token) for c in cases], using=ENGINE),
    ),
}
AS_THEY_LIE = "SELECT id FROM turno.jobs WHERE id = ANY(%s) ORDER BY ctid"
PLANS = "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_indexscan = off; SET enable_bitmapscan = off"


def in_one_order(verb: str) -> None:
    """A batch that names its jobs from the last to the first, while somebody holds the first of them."""
    state, call = VERBS[verb]
    high, low = (Case(str(state), Fence.RIGHT, made) for made in _lying_backwards(state))
    with rival() as other:
        lock(other, low.made.id)
        late = Other(
            lambda: call([high, low]), before=PLANS
        )  # whatever is not sorted stays as it was given, or as it lies
        late.is_waiting()
        free = is_free(high.made.id)
        other.rollback()
    late.answer()
    keep(free, "two batches lock each other out: one held a later job while it waited for an earlier one")


def _lying_backwards(state: State) -> tuple[Made, Made]:
    """Two jobs, the one of the greater id before the other in the table too, whatever room earlier tests left there."""
    for _ in range(100):
        low, high = sorted(uuid4() for _ in range(2))
        pair = make_job(state, id=high, worker=CALLER), make_job(state, id=low, worker=CALLER)
        if [row["id"] for row in rows.select(AS_THEY_LIE, [high, low])] == [high, low]:
            return pair
    raise AssertionError("rows are not written one behind the other")


def meets_a_conflict() -> None:
    """The database ends a batch because of a deadlock."""
    case = make("processing", Fence.RIGHT)
    with conflicts(1, "40P01"), suppress(OperationalError):
        transitions.settle([ending(case, State.SUCCEEDED)], worker_id=CALLER, using=ENGINE)
    keep(rows.state(case.made.id) == "Succeeded", "an end was dropped because of somebody else's lock")


def has_a_bad_row() -> None:
    """One end of a batch can't be stored."""
    cases = [make("processing", Fence.RIGHT) for _ in range(5)]
    ends = [ending(c, State.SUCCEEDED, **({"result": "{"} if n == 2 else {})) for n, c in enumerate(cases)]
    with suppress(DatabaseError):
        transitions.settle(ends, worker_id=CALLER, using=ENGINE)
    connections[ENGINE].close()
    good = [rows.state(case.made.id) for n, case in enumerate(cases) if n != 2]
    keep(good == ["Succeeded"] * 4, "one bad result cost others their ends")
    keep(rows.state(cases[2].made.id) == "Failed", "a job whose result can't be stored is Processing for ever")
