"""Breakers of one type for the tests: rows that say so, and the verbs as workers call them."""

from jobs import transitions
from jobs.outcomes import Ending
from jobs.states import Outcome, Reason, State, Waiting
from jobs.transitions import Trip
from tests.transitions import rows
from tests.transitions.edges import CALLER, claimant
from tests.transitions.rows import ago, execute, make_job, select

TYPE = "a.type"


def reason(type_=TYPE, *, age=30.0, open_for=30.0):
    return Trip(type_, 10, 6, 30.0, open_for, age)


def circuit(type_=TYPE):
    [row] = select("SELECT *, retry_at <= now() AS due FROM turno.circuits WHERE type = %s", type_)
    return row


def opened(type_=TYPE, **columns):
    """An open breaker whose probe is due; `columns` override."""
    row = {"type": type_, "state": "open", "opened_at": ago(31), "retry_at": ago(1)} | columns
    values = ", ".join(v if isinstance(v, rows.Sql) else "%s" for v in row.values())
    params = [v for v in row.values() if not isinstance(v, rows.Sql)]
    execute(f"INSERT INTO turno.circuits ({', '.join(row)}) VALUES ({values})", *params)


def parked(**columns):
    return make_job(State.SCHEDULED, **{"waiting_for": "circuit", "gate": TYPE, "type": TYPE} | columns)


def probe(using, *, timeouts=None, silent_after=60.0):
    wanted = {TYPE: 600.0} if timeouts is None else timeouts
    return transitions.probe(wanted, patience=60.0, silent_after=silent_after, using=using)


def park(using, limit=100):
    return transitions.park_waiting([TYPE], limit=limit, silent_after=60.0, using=using)


def claimed(using, types=(TYPE, "other")):
    return transitions.claim_next([("default", n) for n in range(1, 9)], types=types, **claimant(), using=using)


def ending(job, outcome, **more):
    to = {Outcome.SUCCEEDED: State.SUCCEEDED, Outcome.CANCELLED: State.CANCELLED}.get(outcome, State.SCHEDULED)
    waiting = {"delay": 60.0, "waiting_for": Waiting.RETRY} if to is State.SCHEDULED else {}
    told = {Outcome.SUCCEEDED: Reason.SUCCEEDED, Outcome.CANCELLED: Reason.CANCELLED}.get(outcome, Reason.RETRY)
    return Ending(job.id, job.dispatch_id, to, outcome, told, duration=1.0, **waiting | more)


def settle(using, *endings):
    return transitions.settle(endings, worker_id=CALLER, using=using)


def half_open(using):
    """A breaker that is probed by the returned claim, of a job that runs."""
    opened()
    parked()
    assert probe(using) == ([], 1)
    [claim] = claimed(using)
    return claim
