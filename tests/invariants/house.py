"""A small house in which each kind of job stands somewhere, made by the verbs: no invariant is broken in it."""

from typing import Any
from uuid import UUID, uuid4

from jobs import transitions
from jobs.ids import new_id
from jobs.outcomes import Claim, Ending, ErrorInfo
from jobs.states import FailureKind, Outcome, Reason, State
from tests.transitions.edges import CALLER
from tests.transitions.flow import K, end, enqueue, search
from tests.transitions.rows import ago, execute, make_worker, select

LIMITED, RATED, PAUSED, BROKEN, STRANGE = (
    f"{name}.type" for name in ("limited", "rated", "paused", "broken", "strange")
)


def fail(claim: Claim) -> None:
    """The handler said that it is of no use to try again."""
    error = ErrorInfo("ValueError", "no", "", "cause")
    transitions.settle(
        [
            Ending(
                claim.id, claim.dispatch_id, State.FAILED, Outcome.FAILED, Reason.PERMANENT,
                error=error, failure_kind=FailureKind.PERMANENT,
            )
        ],
        worker_id=CALLER,
    )  # fmt: skip


def parked(id_: UUID, waiting_for: str, gate: str, **columns: Any) -> None:
    """A job that waits at a gate since it was made."""
    enqueue(id_, delay=3600.0, **columns)
    execute("UPDATE turno.jobs SET run_at = NULL, waiting_for = %s, gate = %s WHERE id = %s", waiting_for, gate, id_)


def build() -> dict[str, UUID]:
    """The jobs of the house, by what they are."""
    names = (
        "done failed again running behind limited over rated late paused broken strange due waiting parent child fired"
    )
    ids = {name: new_id() for name in names.split()}
    make_worker(queues={"default": 4}, types=["a.type"], started_at=ago(3600), seen_at=ago(0))
    execute(f"INSERT INTO turno.job_types (name, max_running) VALUES ('{LIMITED}', 1)")
    execute(f"INSERT INTO turno.rates (type, allowed, \"window\") VALUES ('{RATED}', 1, 3600)")
    execute(f"INSERT INTO turno.pauses (scope, value) VALUES ('type', '{PAUSED}')")
    execute(
        "INSERT INTO turno.circuits (type, state, opened_at, retry_at, executions, failures)"
        f" VALUES ('{BROKEN}', 'open', now(), now() + interval '1 hour', 4, 4)"
    )
    enqueue(ids["done"], ids["failed"], ids["again"])
    claims = {claim.id: claim for claim in search(3)}
    end(claims[ids["done"]])
    fail(claims[ids["failed"]])
    end(claims[ids["again"]], to=State.ENQUEUED)
    end(*search(1))
    enqueue(ids["fired"], recurring_job_id=uuid4(), fired_for=select("SELECT now() AS at")[0]["at"])
    end(*search(1))
    for first, second, columns in (
        ("running", "behind", K),
        ("limited", "over", {"type": LIMITED}),
        ("rated", "late", {"type": RATED}),
    ):
        enqueue(ids[first], **columns)
        search(1, types=[columns.get("type", "a.type")])
        enqueue(ids[second], **columns)
        search(1, types=[columns.get("type", "a.type")])
    parked(ids["paused"], "pause", f"type:{PAUSED}", type=PAUSED)
    parked(ids["broken"], "circuit", BROKEN, type=BROKEN)
    parked(ids["strange"], "unknown_type", STRANGE, type=STRANGE)
    enqueue(ids["due"], ids["parent"], delay=3600.0)
    enqueue(ids["child"], after=(ids["parent"],), on_parent_failure="cancel")
    transitions.check_parents([ids["child"]])
    enqueue(ids["waiting"])
    # What has ended did so in a minute that is over.
    execute("UPDATE turno.jobs SET finished_at = finished_at - interval '1 minute' WHERE finished_at IS NOT NULL")
    execute("UPDATE turno.metrics_minute SET minute = minute - interval '1 minute'")
    execute("SET CONSTRAINTS ALL IMMEDIATE")
    return ids
