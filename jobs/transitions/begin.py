"""Of a claimed job its worker says that it waits for its turn there, and then that it begins. An owner's write."""

from collections.abc import Sequence
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.transitions.sql import arrays, fetch, in_transaction, unnest

COLUMNS = {"id": "uuid", "dispatch_id": "uuid"}
# The ids by themselves: see FINISH.
BEGIN = f"""
WITH mine AS MATERIALIZED (
    SELECT j.id
    FROM {unnest("i", COLUMNS)} JOIN turno.jobs AS j ON j.id = i.id
    WHERE j.id = ANY (%(id)s::uuid[]) AND j.dispatch_id = i.dispatch_id AND j.worker_id = %(worker_id)s::uuid
      AND COALESCE(j.state, '') = 'Processing'
    ORDER BY j.id FOR NO KEY UPDATE OF j
)
UPDATE turno.jobs AS j SET started_at = CASE WHEN %(begun)s THEN now() END
FROM mine WHERE j.id = mine.id
RETURNING j.dispatch_id
"""


def begin(
    held: Sequence[tuple[UUID, UUID]], *, worker_id: UUID, begun: bool = True, using: str = "default"
) -> frozenset[UUID]:
    """Say of `held` (id, dispatch token) that their handlers begin now, or, `begun` False, that they have not begun.

    A claim says that they have. Who has not begun is charged nothing when its worker is lost. Answers the tokens whose
    fence held; of the others nothing may begin.
    """
    if not held:
        return frozenset()
    params = arrays(COLUMNS, held) | {"worker_id": worker_id, "begun": begun}

    def work(cursor: CursorWrapper) -> frozenset[UUID]:
        return frozenset(token for (token,) in fetch(cursor, BEGIN, params))

    return in_transaction(using, work)
