"""Rates and limits of types: starts that are counted, under a lock, by whoever starts them."""

from functools import partial

from jobs import transitions
from jobs.ids import new_id
from jobs.ratelimit import PARTS, Limits, RateLimit
from jobs.transitions.admission import admit
from jobs.transitions.gatekeeper import Gated
from tests.laws.guards import keep
from tests.laws.scenarios_together import both
from tests.transitions.edges import claimant
from tests.transitions.flow import TYPE, end, enqueue, search
from tests.transitions.rows import execute, make_job, select

ENGINE = "engine"
DAY = 86_400.0
TOO_MANY = "more started in a window than its rate allows"
IN_VAIN = "more are woken than may start"


def rated(allowed: int, window: float = DAY) -> None:
    """Of this type so many may start in a window."""
    transitions.set_limits(TYPE, Limits(rate=RateLimit(allowed, window)), actor="ana")


def _started() -> int:
    [row] = select("SELECT count(*) AS n FROM turno.jobs WHERE executions > 0")
    return row["n"]


def started_by_two() -> None:
    """Two workers search at once, each for one of two jobs of which one may start."""
    rated(1)
    for _ in range(2):
        enqueue(new_id())
    both(lambda using: search(1, using=using))
    keep(_started() == 1, TOO_MANY)


def started_one_after_the_other() -> None:
    """One starts and ends, and the next one comes."""
    rated(1)
    for _ in range(2):
        enqueue(new_id())
        end(*search(1))
    keep(_started() == 1, TOO_MANY)


def started_a_window_ago() -> None:
    """The only start that is allowed was in the part of the window that is about to leave it."""
    rated(1)
    part = DAY / PARTS
    execute(
        "UPDATE turno.rates SET spent = jsonb_build_array(jsonb_build_array("
        "floor(extract(epoch FROM clock_timestamp()) / %s)::int - %s, 1))", part, PARTS,
    )  # fmt: skip
    enqueue(new_id())
    search(1)
    keep(_started() == 0, TOO_MANY)


def _two_wait_for_their_day() -> None:
    rated(1)
    for _ in range(3):
        enqueue(new_id())
    end(*search(1))
    search(2)
    execute("UPDATE turno.rates SET spent = '[]'")


def woken_and_met() -> None:
    """Two were woken while two might start, and both wait for a worker when one may."""
    _two_wait_for_their_day()
    rated(2)
    transitions.open_rates(limit=9)
    rated(1)
    search(2)
    keep(_started() == 2, TOO_MANY)


def woken_again_and_again() -> None:
    """One is woken and no worker is free for it; whoever leads looks again."""
    _two_wait_for_their_day()
    woken = [transitions.open_rates(limit=9)[0] for _look in range(2)]
    keep(woken == [1, 0], IN_VAIN)


def limited_while_they_run() -> None:
    """A limit is set when as many run as it allows."""
    enqueue(new_id())
    search(1)
    transitions.set_limits(TYPE, Limits(max_running=1), actor="ana")
    enqueue(new_id())
    search(1)
    keep(_started() == 1, "more of a type run than its limit lets")


def _found() -> Gated:
    """What a search has found and will let through its gates next."""
    rated(9)
    made = make_job(type=TYPE)
    [row] = select("SELECT enqueued_at FROM turno.jobs WHERE id = %s", made.id)
    return Gated(made.id, made.token, TYPE, None, None, 1, 0, row["enqueued_at"], "default")


def _admit(found: Gated) -> int:
    owner = {**claimant(), "label": '{"name": "w"}'}
    return len(admit([found], owner, waits=False, using=ENGINE))


def let_through_twice() -> None:
    """Two searches have found one job, which has a rate; both let it through, one after the other."""
    found = _found()
    keep(_admit(found) + _admit(found) == 1, "two executions live side by side: one job was let through twice")


def _held_back(statement: str, promise: str) -> None:
    found = _found()
    execute(statement, TYPE)
    keep(_admit(found) == 0, promise)


let_through_a_pause = partial(
    _held_back, "INSERT INTO turno.pauses (scope, value) VALUES ('type', %s)", "a paused job was started"
)
let_through_a_breaker = partial(
    _held_back,
    "INSERT INTO turno.circuits (type, state, opened_at, retry_at) VALUES (%s, 'open', now(), now())",
    "a job of a type whose breaker is open was started",
)
