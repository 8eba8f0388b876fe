"""A job of a type that nobody has: it is given up after a grace that somebody watched, and not a moment before."""

from jobs import transitions
from tests.laws.guards import keep
from tests.transitions import rows
from tests.transitions.rows import Made, execute, make_worker
from tests.transitions.unserved import TIMES, fail, parked, unserved, watch, worker

ENGINE = "engine"


def _kept(made: Made, promise: str) -> None:
    fail(ENGINE)
    execute("DELETE FROM turno.workers")
    keep(rows.state(made.id) == "Scheduled", f"a job was given up {promise}")


def somebody_came() -> None:
    """A worker with the type comes after the last look, and before the job is given up."""
    made = parked()
    worker()
    unserved()
    make_worker(queues={"default": 1}, types=["a.type"])
    _kept(made, "though a worker has its type")


def nobody_looked() -> None:
    """For a night nobody led; the book says what it said in the evening."""
    made = parked()
    worker()
    unserved(seen=3600.0)
    _kept(made, "though nobody was there to watch")


def looked_at_in_the_morning() -> None:
    """The same, and whoever leads looks first."""
    made = parked()
    worker()
    unserved(seen=3600.0)
    watch(ENGINE)
    _kept(made, "though nobody was there to watch")


def served_for_a_while() -> None:
    """A worker with the type came and went, and whoever leads has looked meanwhile."""
    made = parked()
    worker()
    unserved()
    there = make_worker(queues={"default": 1}, types=["a.type"])
    watch(ENGINE)
    execute("DELETE FROM turno.workers WHERE id = %s", there)
    _kept(made, "though its type was not missing for so long")


def requeued_a_moment_ago() -> None:
    """The type has been missing for long, the job waits for a moment only."""
    made = parked(age=60.0)
    worker()
    unserved()
    _kept(made, "before it had waited for so long")


def parked_a_moment_too_late() -> None:
    """A worker with the type comes before the park is committed: nobody's coming opens this gate."""
    made = rows.make_job(type="a.type")
    make_worker(queues={"default": 1}, types=["a.type"])
    transitions.park_unknown([(made.id, made.token)], using=ENGINE)
    transitions.open_unknown(limit=9, silent_after=TIMES["silent_after"], using=ENGINE)
    execute("DELETE FROM turno.workers")
    keep(rows.state(made.id) == "Enqueued", "a job waits for ever: a worker has its type")
