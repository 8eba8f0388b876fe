"""The guards of breakers: claims and parks ask the row, one probe is let through, and only its end moves it."""

from collections.abc import Callable
from typing import Any

from jobs.transitions.circuits import KEPT_BACK
from tests.laws import scenarios_breakers as breakers
from tests.laws.guards import Attribute
from tests.laws.law import Law, sql

UNLOCKED = sql("circuits.LOCK_GATES", ("FOR SHARE", ""))
UNTESTED = (KEPT_BACK, "false")


def _nobody(_whole: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_arguments, **_options: 0


BREAKERS = [
    Law(
        4,
        "a breaker is tested inside the search",
        breakers.STARTED,
        (sql("claim.CLAIM_NEXT", UNTESTED),),
        breakers.searched,
    ),
    Law(
        4,
        "a breaker is tested inside the claim of what a message named",
        breakers.STARTED,
        (sql("claim.CLAIM_BY_ID", UNTESTED),),
        breakers.named_by_a_message,
    ),
    Law(
        5,
        "a breaker is locked while its probe is chosen",
        "two probes at once",
        (sql("probes.PROBE", ("FOR NO KEY UPDATE OF c SKIP LOCKED", "")),),
        breakers.probed_by_two,
    ),
    Law(
        2,
        "only the end of its probe moves a breaker",
        "moved by somebody else's end",
        (
            sql(
                "finish.FINISH",
                ("AND probe_job_id = ANY(%(id)s::uuid[])", ""),
                ("e.id = p.probe_job_id", "e.type = p.type"),
            ),
        ),
        breakers.ended_late,
    ),
    Law(
        6,
        "a breaker is moved by the statement that writes its probe's end",
        "a breaker never closes",
        (sql("finish.FINISH", ("e.id = p.probe_job_id", "FALSE")),),
        breakers.probed_well,
    ),
    Law(
        3,
        "a probe that came to nothing is missed",
        "a type waits for a probe that is gone",
        (sql("probes.STALE", ("WHERE state = 'half_open' ORDER", "WHERE FALSE ORDER")),),
        breakers.probe_is_cancelled,
    ),
    Law(
        6,
        "who closes a breaker wakes who waits, or whoever leads does",
        breakers.SLEEPS,
        (
            Attribute("jobs.transitions.finish", "wake", _nobody),
            Attribute("jobs.transitions", "open_circuits", _nobody),
        ),
        breakers.wakes_who_waits,
    ),
    Law(
        6,
        "who parks for a breaker holds it until the park is committed",
        breakers.SLEEPS,
        (UNLOCKED,),
        breakers.closed_while_somebody_parks,
    ),
    Law(
        6,
        "who parks for a breaker reads it again under its lock",
        breakers.SLEEPS,
        (UNLOCKED,),
        breakers.parked_while_somebody_closes,
    ),
    Law(
        2,
        "what ended before a breaker closed is no reason to open it",
        "opened for what was before it closed",
        (sql("circuits.TRIP", ("c.closed_at <= now() - i.age * interval '1 second'", "TRUE")),),
        breakers.failed_before_it_closed,
    ),
]
