"""The guards of a pause: it is tested inside the claim, and nobody lifts it between the look and the park."""

from jobs.transitions.pauses import HELD_BACK
from tests.laws import scenarios_pauses as pauses
from tests.laws.law import Law, sql

SLEEPS = "a job sleeps, and no pause is in force"
UNLOCKED = sql("pauses.LOCK_NAMED", ("FOR SHARE OF p", ""))
UNTESTED = (HELD_BACK, "false")

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
]
