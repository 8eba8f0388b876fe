"""The heartbeat of ownership: all leases of a worker in one statement, losses and cancels found on the way."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.transitions.sql import arrays, fetch, in_transaction, unnest

COLUMNS = {"id": "uuid", "dispatch_id": "uuid"}
# Rows that somebody has locked are skipped: a heartbeat must not wait. Nothing is counted: one statement is safe.
# The ids by themselves: see FINISH.
RENEW = f"""
WITH mine AS MATERIALIZED (
    SELECT j.id
    FROM {unnest("i", COLUMNS)} JOIN turno.jobs AS j ON j.id = i.id
    WHERE j.id = ANY (%(id)s::uuid[]) AND j.dispatch_id = i.dispatch_id AND j.worker_id = %(worker_id)s::uuid
      AND COALESCE(j.state, '') = 'Processing'
    ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
)
UPDATE turno.jobs AS j SET lease_expires_at = now() + %(lease)s::float8 * interval '1 second'
FROM mine WHERE j.id = mine.id
RETURNING j.dispatch_id, j.cancel_requested_at IS NOT NULL
"""
STILL_MINE = f"""
SELECT j.dispatch_id, j.cancel_requested_at IS NOT NULL
FROM {unnest("i", COLUMNS)} JOIN turno.jobs AS j ON j.id = i.id
WHERE j.id = ANY (%(id)s::uuid[]) AND j.dispatch_id = i.dispatch_id AND j.worker_id = %(worker_id)s::uuid
  AND COALESCE(j.state, '') = 'Processing'
"""
MINE = """
SELECT id, dispatch_id, claim_id FROM turno.jobs
WHERE worker_id = %(worker_id)s::uuid AND state = 'Processing' AND NOT dispatch_id = ANY(%(known)s::uuid[])
"""
CANCELS = """
SELECT dispatch_id FROM turno.jobs
WHERE worker_id = %(worker_id)s::uuid AND state = 'Processing' AND cancel_requested_at IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class Renewal:
    """By dispatch token: renewed, skipped because somebody had the row locked (try again in a second), lost; and
    those among the first two that somebody asked to cancel."""

    renewed: frozenset[UUID] = field(default_factory=frozenset)
    skipped: frozenset[UUID] = field(default_factory=frozenset)
    lost: frozenset[UUID] = field(default_factory=frozenset)
    cancelled: frozenset[UUID] = field(default_factory=frozenset)


def renew(held: Sequence[tuple[UUID, UUID]], *, worker_id: UUID, lease: float, using: str = "default") -> Renewal:
    """Renew the leases of `held` (id, dispatch token) for `lease` seconds from now, by the database's clock.

    The caller counts its own deadline from before this call. Raises OperationalError; then no lease may be believed
    renewed.
    """
    if not held:
        return Renewal()
    params = arrays(COLUMNS, held) | {"worker_id": worker_id, "lease": float(lease)}

    def work(cursor: CursorWrapper) -> Renewal:
        renewed = dict(fetch(cursor, RENEW, params))
        rest = [pair for pair in held if pair[1] not in renewed]
        skipped = dict(fetch(cursor, STILL_MINE, params | arrays(COLUMNS, rest))) if rest else {}
        return Renewal(
            renewed=frozenset(renewed),
            skipped=frozenset(skipped),
            lost=frozenset(token for _, token in rest if token not in skipped),
            cancelled=frozenset(token for token, asked in (renewed | skipped).items() if asked),
        )

    return in_transaction(using, work)


def strays(*, worker_id: UUID, known: Collection[UUID], using: str = "default") -> list[tuple[UUID, UUID, UUID]]:
    """Jobs (id, token, claim id) that the table gives to this worker and whose tokens are not among `known`.

    The caller looks, after this call, which of these claims are still in flight in its process or came into its
    lease book meanwhile; of the others the claim's answer was lost, and they are released.
    """
    params = {"worker_id": worker_id, "known": list(known)}
    return in_transaction(using, lambda cursor: [(i, t, c) for i, t, c in fetch(cursor, MINE, params)])


def cancels(*, worker_id: UUID, using: str = "default") -> frozenset[UUID]:
    """The tokens of this worker's running jobs that somebody asked to cancel."""
    return in_transaction(
        using, lambda cursor: frozenset(t for (t,) in fetch(cursor, CANCELS, {"worker_id": worker_id}))
    )
