"""The guards of recurring jobs: with leadership switched off nothing fires twice, and whoever dies loses nothing."""

from typing import Any

from django.db import connections

from tests.laws import scenarios_recurring as recurring
from tests.laws.guards import Attribute, Index
from tests.laws.law import Law, sql

AS_READ = sql("fire.TAKE", ("r.version = g.version", "TRUE"))
ENABLED = sql("fire.TAKE", ("AND r.enabled", ""))
ONE_INSTANT = Index("jobs_one_fired_instant", "recurring_job_id, fired_for", "recurring_job_id IS NOT NULL")


def _autocommit(_whole: Any) -> Any:
    """Each statement is a transaction of its own."""

    def run(using: str, work: Any) -> Any:
        with connections[using].cursor() as cursor:
            return work(cursor)

    return run


RECURRING = [
    Law(
        5,
        "the version in the write of what was read, or one job an instant",
        "an instant was fired twice",
        (AS_READ, ONE_INSTANT),
        recurring.frozen_leader,
    ),
    Law(
        5,
        "the next instant and the job in one transaction",
        "an instant was never fired",
        (Attribute("jobs.transitions.fire", "in_transaction", _autocommit),),
        recurring.killed_leader,
    ),
    Law(
        5,
        "the version in the write of what was read",
        "an instant was fired with what had been edited away",
        (AS_READ,),
        recurring.edited_meanwhile,
    ),
    Law(
        5,
        "the version, or the switch, in the write of what was read",
        "an instant was fired after its schedule was disabled",
        (AS_READ, ENABLED),
        recurring.disabled_meanwhile,
    ),
    Law(
        5,
        "an instant that was fired moves the next one on",
        "refused again and again",
        (sql("insert.INSERT", ("ON CONFLICT DO NOTHING", "")),),
        recurring.set_back_by_a_save,
    ),
]
