"""A pause, as a gate: who claims after it, who parks for it, and who lifts it meanwhile."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from jobs import transitions
from jobs.outcomes import Ending
from jobs.states import Outcome, Reason, State
from jobs.transitions import Wanted
from jobs.transitions.seats import owned_by
from tests.laws.guards import keep
from tests.laws.scenarios_together import waits
from tests.races.two import Other, holding, rival
from tests.transitions import flow, rows
from tests.transitions.edges import CALLER, claimant
from tests.transitions.rows import Made, make_job

ENGINE = "engine"
TYPE = "test.echo"
SEAT = ("default", 1)


def _started(made: Made) -> bool:
    return rows.state(made.id) == "Processing"


def searched() -> None:
    """A free slot looks for work."""
    made = make_job(type=TYPE)
    transitions.pause("type", TYPE)
    transitions.claim_next([SEAT], types=[TYPE], **claimant(), using=ENGINE)
    keep(not _started(made), "a paused job was started")


def following() -> None:
    """It waits for a key whose job ends, and may follow it, while somebody changes the pause of its type."""
    flow.keyed(1)
    [running] = flow.search(1)
    flow.keyed(1)
    flow.search(1)  # parks it
    transitions.pause("type", flow.TYPE)
    seats = transitions.Seats(
        {running.dispatch_id: (running.queue, running.slot)}, {flow.QUEUE: 1}, [flow.TYPE], owned_by(**claimant())
    )
    ending = Ending(running.id, running.dispatch_id, State.SUCCEEDED, Outcome.SUCCEEDED, Reason.SUCCEEDED)
    with rival() as other:
        other.execute("UPDATE turno.pauses SET reason = 'changed'")
        transitions.settle([ending], worker_id=CALLER, seats=seats, using=ENGINE)
    keep(flow.running("k") == 0, "a paused job was started")


def named_by_a_message() -> None:
    """Its message comes after the pause."""
    made = make_job(type=TYPE)
    transitions.pause("type", TYPE)
    transitions.claim([Wanted(made.id, made.token, 1, "default")], types=[TYPE], **claimant(), using=ENGINE)
    keep(not _started(made), "a paused job was started")


def beside(first: Callable[[], Any], second: Callable[[], Any]) -> None:
    """The second, while the first is not committed yet: it waits for it, or it does not."""
    done = threading.Event()

    def run() -> Any:
        try:
            return second()
        finally:
            done.set()

    with holding():
        first()
        other = Other(run)
        while not done.wait(0.005) and not waits(other):
            pass
    other.answer()


def _park(made: Made, using: str = "default") -> Callable[[], Any]:
    return lambda: transitions.park_paused([(made.id, made.token)], using=using)


def _resume(using: str = "default") -> Callable[[], Any]:
    return lambda: transitions.resume("type", TYPE, using=using)


def lifted_while_somebody_parks() -> None:
    """The resume begins before the park is committed."""
    made = make_job(type=TYPE)
    transitions.pause("type", TYPE)
    beside(_park(made), _resume(ENGINE))
    keep(rows.state(made.id) == "Enqueued", "a job sleeps, and no pause is in force")


def parked_while_somebody_lifts() -> None:
    """The park begins before the resume is committed."""
    made = make_job(type=TYPE)
    transitions.pause("type", TYPE)
    beside(_resume(), _park(made, ENGINE))
    keep(rows.state(made.id) == "Enqueued", "a job sleeps, and no pause is in force")


def searched_in_a_paused_queue() -> None:
    """A free slot looks for work in a queue that is paused."""
    made = make_job(type=TYPE)
    transitions.pause("queue", made.queue)
    transitions.claim_next([SEAT], types=[TYPE], **claimant(), using=ENGINE)
    keep(not _started(made), "a job of a paused queue was started")


def made_longer_while_it_runs_out() -> None:
    """A pause has run out, and somebody makes it longer while the leader cleans up."""
    transitions.pause("type", TYPE, until=datetime.now(UTC) + timedelta(hours=1))
    rows.execute("UPDATE turno.pauses SET until = now() - interval '1 second'")
    beside(lambda: transitions.pause("type", TYPE), lambda: transitions.expire_pauses(using=ENGINE))
    keep(rows.select("SELECT 1 FROM turno.pauses"), "a pause that was made longer was lifted")
