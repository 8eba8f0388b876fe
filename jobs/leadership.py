"""Who does the housekeeping: a lease row, by the database's clock, so that a frozen leader loses it.

Leadership saves work and guards nothing (law 5): every routine is safe when all believe that they lead.
"""

from uuid import UUID

from django.db import connections

HOUSEKEEPING = "housekeeping"
LEAD = """
INSERT INTO turno.leases AS l (name, holder, until)
VALUES (%(name)s, %(holder)s::uuid, now() + %(lease)s::float8 * interval '1 second')
ON CONFLICT (name) DO UPDATE SET holder = EXCLUDED.holder, until = EXCLUDED.until
WHERE l.holder = EXCLUDED.holder OR l.holder IS NULL OR l.until < now()
RETURNING true
"""
RESIGN = "UPDATE turno.leases SET holder = NULL WHERE name = %(name)s AND holder = %(holder)s::uuid"


def lead(name: str, holder: UUID, *, lease: float, using: str = "default") -> bool:
    """Take or keep the leadership called `name` for `lease` seconds; False while another holds it."""
    with connections[using].cursor() as cursor:
        cursor.execute(LEAD, {"name": name, "holder": holder, "lease": float(lease)})
        return cursor.fetchone() is not None


def resign(name: str, holder: UUID, *, using: str = "default") -> None:
    """Give the leadership up at once, so that another need not wait for the lease's end."""
    with connections[using].cursor() as cursor:
        cursor.execute(RESIGN, {"name": name, "holder": holder})
