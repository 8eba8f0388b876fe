"""The channels of PostgreSQL's NOTIFY, and how to reach the database for LISTEN and NOTIFY outside Django.

A notification is a hint: whoever listens also polls, or fetches everything after a time in which it could not hear.
"""

from typing import Any

from django.db import connections

from jobs.conf import conf

WORK = "turno_work"  # payload: a queue that has a job to claim
CONTROL = "turno_control"  # payload: {"cancel": job, "worker": worker}, or {"queue": one paused, resumed or set}
OUTBOX = "turno_outbox"  # payload empty: a message waits for the broker
DUE = "turno_due"  # payload empty: a job became due within the scheduler's interval
GATES = "turno_gates"  # payload: "key:…", "type:…", or "parents:" and a child: a gate to look at
SCREENS = "turno_screens"  # payload: a `jobs.nudge.Nudge` as JSON


def connection_parameters() -> dict[str, Any]:
    """How to reach the database directly (through a PgBouncer only where there is no other way), for psycopg."""
    wrapper = connections["direct"]
    parameters = dict(wrapper.get_connection_params())
    for django_only in ("cursor_factory", "context", "server_side_binding"):
        parameters.pop(django_only, None)
    return parameters | {"prepare_threshold": None}  # little is said there, and nothing may be prepared in a pooler


def can_listen() -> bool:
    """Whether LISTEN is any use: not where every way goes through a PgBouncer, which lends sessions."""
    return conf().database.can_listen
