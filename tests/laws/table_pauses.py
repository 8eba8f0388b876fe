"""The guards of a pause: it is tested inside the claim, and nobody lifts it between the look and the park."""

from collections.abc import Callable
from typing import Any

from jobs.transitions import pauses as verbs
from jobs.transitions.pauses import HELD_BACK
from jobs.transitions.sql import fetch
from tests.laws import scenarios_pauses as pauses
from tests.laws.guards import Attribute
from tests.laws.law import Law, sql

SLEEPS = "a job sleeps, and no pause is in force"
UNLOCKED = sql("pauses.LOCK_NAMED", ("FOR SHARE OF p", ""))
UNTESTED = (HELD_BACK, "false")


def _looks_first(_whole: Callable[..., Any]) -> Callable[..., Any]:
    """Who waits is looked at before the pause is taken away."""

    def lift(cursor: Any, statement: str, params: Any) -> list[verbs.Pause]:
        before = fetch(cursor, "SELECT scope, value, reason, paused_by, created_at, until FROM turno.pauses", {})
        verbs._wake(cursor, [verbs.Pause(*row) for row in before])
        return [verbs.Pause(*row) for row in fetch(cursor, statement, params)]

    return lift


PAUSES = [
    Law(
        4,
        "a pause of a type is tested inside the search",
        "a paused job was started",
        (sql("claim.CLAIM_NEXT", UNTESTED),),
        pauses.searched,
    ),
    Law(
        4,
        "a pause of a type is tested where a job starts with the end of another",
        "a paused job was started",
        (sql("successors.SUCCEED", UNTESTED),),
        pauses.following,
    ),
    Law(
        4,
        "a pause of a type is tested inside the claim of what a message named",
        "a paused job was started",
        (sql("claim.CLAIM_BY_ID", UNTESTED),),
        pauses.named_by_a_message,
    ),
    Law(
        6,
        "who parks for a pause holds it until the park is committed",
        SLEEPS,
        (UNLOCKED,),
        pauses.lifted_while_somebody_parks,
    ),
    Law(
        6,
        "who parks for a pause reads it again under its lock",
        SLEEPS,
        (UNLOCKED,),
        pauses.parked_while_somebody_lifts,
    ),
    Law(
        6,
        "who lifts a pause takes it away before it looks who waits",
        SLEEPS,
        (
            Attribute("jobs.transitions.pauses", "_lift", _looks_first),
            Attribute("jobs.transitions.pauses", "_wake_rest", lambda _: lambda *_arguments: None),
        ),
        pauses.lifted_while_somebody_parks,
    ),
    Law(
        4,
        "a pause of a queue is tested inside the search",
        "a job of a paused queue was started",
        (sql("claim.CLAIM_NEXT", ("p.value = o.queue", "FALSE")),),
        pauses.searched_in_a_paused_queue,
    ),
    Law(
        6,
        "a pause that somebody makes longer is not lifted",
        "a pause that was made longer was lifted",
        (sql("pauses.EXPIRE", ("FOR UPDATE SKIP LOCKED", "")),),
        pauses.made_longer_while_it_runs_out,
    ),
]
