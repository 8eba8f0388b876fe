"""The breaker of a type: who claims and who parks while it moves, one probe at a time, and what closes it."""

from contextlib import suppress
from typing import Any

from django.db import DatabaseError

from jobs import transitions
from jobs.outcomes import Claim
from jobs.states import Outcome, State
from jobs.transitions import Wanted
from tests.laws.guards import keep
from tests.laws.scenarios_pauses import beside
from tests.laws.scenarios_together import both
from tests.transitions import rows
from tests.transitions.breakers import TYPE, circuit, claimed, ending, opened, parked, probe, reason, settle
from tests.transitions.edges import claimant
from tests.transitions.rows import ago, execute, make_job, make_worker

ENGINE = "engine"
STARTED = "a job of a type whose breaker is open was started"
SLEEPS = "a job sleeps behind a breaker that is closed"


def _serve() -> None:
    """A worker of the queue has the type."""
    make_worker(queues={"default": 4}, types=[TYPE])


def _gone() -> None:
    execute("DELETE FROM turno.workers")


def _let_through(using: str = ENGINE) -> Claim:
    """The probe of an open breaker, which runs."""
    _serve()
    try:
        probe(using)
        return claimed(using)[0]
    finally:
        _gone()


def searched() -> None:
    """A free slot looks for work."""
    opened()
    made = make_job(type=TYPE)
    claimed(ENGINE)
    keep(rows.state(made.id) == "Enqueued", STARTED)


def named_by_a_message() -> None:
    """Its message comes when the breaker has opened."""
    opened()
    made = make_job(type=TYPE)
    transitions.claim([Wanted(made.id, made.token, 1, "default")], types=[TYPE], **claimant(), using=ENGINE)
    keep(rows.state(made.id) == "Enqueued", STARTED)


def probed_by_two() -> None:
    """Two lead at once, and the time of the probe has come."""
    opened()
    for _ in range(3):
        parked()
    _serve()
    both(probe)
    _gone()
    keep(len(claimed(ENGINE)) <= 1 and _through() == 1, "two probes at once")


def _through() -> int:
    [row] = rows.select("SELECT count(*) AS n FROM turno.jobs WHERE state <> 'Scheduled'")
    return row["n"]


def ended_late() -> None:
    """An execution from before the breaker opened ends well, while the probe runs."""
    make_job(type=TYPE)
    [old] = claimed(ENGINE)
    opened()
    parked()
    _let_through()
    with suppress(DatabaseError):
        settle(ENGINE, ending(old, Outcome.SUCCEEDED))
    keep(circuit()["state"] == "half_open", "a breaker was moved by somebody else's end")


def probed_well() -> None:
    """The probe ends well; everybody else goes on."""
    opened()
    parked()
    settle(ENGINE, ending(_let_through(), Outcome.SUCCEEDED))
    keep(circuit()["state"] == "closed", "a breaker never closes")


def probe_is_cancelled() -> None:
    """Somebody cancels the probe before it is claimed."""
    opened()
    made = [parked(), parked()]
    _serve()
    probe(ENGINE)
    first = next(job for job in made if rows.state(job.id) == "Enqueued")
    transitions.cancel([first.id], using=ENGINE)
    probe(ENGINE)
    execute("UPDATE turno.circuits SET retry_at = now() - interval '1 second' WHERE state = 'open'")
    probe(ENGINE)
    _gone()
    [other] = [job for job in made if job is not first]
    keep(rows.state(other.id) == "Enqueued", "a type waits for a probe that is gone")


def wakes_who_waits() -> None:
    """The probe ends well, and one more job waits; whoever leads looks after that."""
    opened()
    made = [parked(), parked()]
    settle(ENGINE, ending(_let_through(), Outcome.SUCCEEDED))
    transitions.open_circuits(limit=9, using=ENGINE)
    keep({rows.state(job.id) for job in made} == {"Succeeded", "Enqueued"}, SLEEPS)


def _park(made: Any, using: str = "default") -> Any:
    return lambda: transitions.park_circuit([(made.id, made.token)], types=[TYPE], using=using)


def closed_while_somebody_parks() -> None:
    """The end of the probe begins before the park is committed."""
    opened()
    parked()
    held = _let_through()
    made = make_job(type=TYPE)
    beside(_park(made), lambda: settle(ENGINE, ending(held, Outcome.SUCCEEDED)))
    keep(rows.state(made.id) == "Enqueued", SLEEPS)


def parked_while_somebody_closes() -> None:
    """The park begins before the end of the probe is committed."""
    opened()
    parked()
    held = _let_through("default")
    made = make_job(type=TYPE)
    beside(lambda: settle("default", ending(held, Outcome.SUCCEEDED)), _park(made, ENGINE))
    keep(rows.state(made.id) == "Enqueued", SLEEPS)


def failed_before_it_closed() -> None:
    """A window has failures from before the breaker closed."""
    opened(state="closed", retry_at=None, closed_at=ago(5))
    made = make_job(State.SCHEDULED, run_at=ago(1), type=TYPE)
    transitions.trip([reason(age=30.0)], using=ENGINE)
    transitions.promote(limit=9, using=ENGINE)
    claimed(ENGINE)
    keep(rows.state(made.id) == "Processing", "a breaker was opened for what was before it closed")
