"""Families of jobs for tests of continuations: parents in a state, children that wait, and how an execution ends."""

from collections.abc import Iterable
from uuid import UUID, uuid4

from jobs import transitions
from jobs.ids import new_id
from jobs.outcomes import Ending
from jobs.states import FailureKind, Outcome, Reason, State
from jobs.transitions.insert import NewJob, insert
from tests.transitions.rows import execute, make_job, select

WORKER = UUID(int=0xFA7E)
ENDS = {
    State.SUCCEEDED: (Outcome.SUCCEEDED, Reason.SUCCEEDED, None),
    State.FAILED: (Outcome.FAILED, Reason.PERMANENT, FailureKind.PERMANENT),
    State.CANCELLED: (Outcome.CANCELLED, Reason.CANCELLED, None),
}


def running(**columns) -> UUID:
    """A job that WORKER runs."""
    return make_job(State.PROCESSING, worker=WORKER, id=new_id(), **columns).id


def new(*, after: Iterable[UUID] = (), policy: str | None = None, **options) -> NewJob:
    """A row to insert that waits for `after`."""
    row = NewJob(new_id(), "test.echo", "default", "{}", 0, 5, None, at_most_once=False)
    return row._replace(after=tuple(after) or None, on_parent_failure=policy, **options)


def child(*parents: UUID, policy: str | None = None, using: str = "default", **options) -> UUID:
    """A committed child that nobody has looked at."""
    [answer] = insert([new(after=parents, policy=policy, **options)], using=using)
    return answer.id


def end(*ids: UUID, to: State = State.SUCCEEDED, using: str = "default") -> None:
    """Running jobs end."""
    outcome, reason, kind = ENDS[to]
    tokens = select("SELECT id, dispatch_id FROM turno.jobs WHERE id = ANY(%s)", list(ids))
    endings = [Ending(one["id"], one["dispatch_id"], to, outcome, reason, failure_kind=kind) for one in tokens]
    settled = transitions.settle(endings, worker_id=WORKER, using=using)
    assert {one.state for one in settled} == {to}


def run(id_: UUID, *, to: State = State.SUCCEEDED, using: str = "default") -> None:
    """A job that waits in its queue runs and ends."""
    execute(
        "UPDATE turno.jobs SET state = 'Processing', worker_id = %s, claim_id = gen_random_uuid(), "
        "claimed_at = now(), lease_expires_at = now() + interval '1 minute', executions = executions + 1 "
        "WHERE id = %s AND state = 'Enqueued'",
        WORKER, id_,
    )  # fmt: skip
    end(id_, to=to, using=using)


def chain(length: int, first: UUID, *, policy: str = "cancel") -> list[UUID]:
    """Children of each other, the first of `first`, all of them parked; planted, since they are many."""
    ids = sorted(uuid4() for _ in range(length))
    plant(ids, [(id_, parent) for id_, parent in zip(ids, [first, *ids], strict=False)], policy=policy)
    return ids


def plant(children: list[UUID], pairs: list[tuple[UUID, UUID]], *, policy: str = "cancel") -> None:
    """Parked children that were looked at, and what each waits for."""
    gates = dict(pairs)
    execute(
        "INSERT INTO turno.jobs (id, type, queue, payload, state, waiting_for, gate) "
        "SELECT i.id, 'test.echo', 'default', '{}', 'Scheduled', 'parents', i.gate "
        "FROM unnest(%s::uuid[], %s::text[]) AS i(id, gate)",
        children, [str(gates[id_]) for id_ in children],
    )  # fmt: skip
    execute(
        "INSERT INTO turno.job_dependencies (child_id, parent_id, policy) "
        "SELECT i.child, i.parent, %s FROM unnest(%s::uuid[], %s::uuid[]) AS i(child, parent)",
        policy, [one for one, _ in pairs], [one for _, one in pairs],
    )  # fmt: skip


def states(ids: Iterable[UUID]) -> dict[str, int]:
    """How many of these jobs are in which state."""
    counted = "SELECT state, count(*) AS n FROM turno.jobs WHERE id = ANY(%s) GROUP BY state"
    return {row["state"]: row["n"] for row in select(counted, list(ids))}
