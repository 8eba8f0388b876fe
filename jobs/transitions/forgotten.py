"""The sweep of continuations: children whose last parent ended while nobody was there to look at them.

A crash between a COMMIT and its notification, a listener that was cut off, more children than are looked at at once.
"""

from typing import NamedTuple
from uuid import UUID

from django.db.backends.utils import CursorWrapper

from jobs.states import Waiting
from jobs.transitions.parents import ENDED, check_parents
from jobs.transitions.sql import fetch, in_transaction

GATES_LOOKED_AT = 1000  # by one call
UNSEEN_FOR = 2.0  # seconds: a child that nobody has looked at for so long was forgotten

# Children that nobody has looked at since they were committed: of the oldest that have no gate, in the very order of
# their index, those that are not new. As many are read as are asked for, whatever the statistics say of their age.
UNSEEN = f"""
SELECT id FROM (
    SELECT id, created_at FROM turno.jobs WHERE waiting_for = '{Waiting.PARENTS}' AND gate IS NULL
    ORDER BY gate, id LIMIT %(limit)s
) AS oldest
WHERE created_at <= now() - %(unseen_for)s::float8 * interval '1 second'
ORDER BY id
"""
# The gates after the last one that was looked at, one step of the index each.
NEXT_GATES = f"""
WITH RECURSIVE gates(gate, place) AS (
    (SELECT gate, 1 FROM turno.jobs
     WHERE waiting_for = '{Waiting.PARENTS}' AND gate > %(after)s::text ORDER BY gate LIMIT 1)
    UNION ALL
    SELECT next.gate, g.place + 1 FROM gates AS g CROSS JOIN LATERAL (
        SELECT gate FROM turno.jobs WHERE waiting_for = '{Waiting.PARENTS}' AND gate > g.gate ORDER BY gate LIMIT 1
    ) AS next
    WHERE g.place < %(gates)s
)
SELECT g.gate, p.id IS NULL FROM gates AS g LEFT JOIN LATERAL (
    SELECT id FROM turno.jobs
    WHERE id = CASE WHEN g.gate ~ '^[0-9a-f-]{{36}}$' THEN g.gate::uuid END AND state NOT IN ({ENDED}) OFFSET 0
) AS p ON true
ORDER BY g.place
"""
AT_GATES = f"""
SELECT id FROM turno.jobs
WHERE waiting_for = '{Waiting.PARENTS}' AND gate = ANY(%(gates)s::text[]) ORDER BY gate, id LIMIT %(limit)s
"""


class Swept(NamedTuple):
    """What `open_parents` did: how many children went on or were cancelled, and the `after` of the next call."""

    opened: int
    after: str


def open_parents(*, limit: int, after: str = "", unseen_for: float = UNSEEN_FOR, using: str = "default") -> Swept:
    """The sweep: look at children that were forgotten, by a notification that nobody heard or a crash before it.

    Those that nobody has looked at for `unseen_for` seconds after they were made (0 where nobody can listen), and those
    at gates, from `after` on, whose parent has ended or is gone. At most `limit`: call again at once while it opened as
    many, else two seconds later, each time with the `after` of the answer. The leader's. In a healthy run it opens 0.
    """

    def forgotten(cursor: CursorWrapper) -> tuple[list[UUID], str]:
        rows = fetch(cursor, UNSEEN, {"unseen_for": float(unseen_for), "limit": limit})
        if len(rows) < limit:
            gates = fetch(cursor, NEXT_GATES, {"after": after, "gates": GATES_LOOKED_AT})
            ended = [gate for gate, has_ended in gates if has_ended]
            rows += fetch(cursor, AT_GATES, {"gates": ended, "limit": limit - len(rows)}) if ended else []
            return [id_ for (id_,) in rows], gates[-1][0] if len(gates) == GATES_LOOKED_AT else ""
        return [id_ for (id_,) in rows], after

    ids, rest = in_transaction(using, forgotten)
    return Swept(check_parents(ids, using=using), after if len(ids) >= limit else rest)
