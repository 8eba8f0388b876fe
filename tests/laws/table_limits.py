"""The guards of rates and limits of types, and of what is let through gates after a search has found it."""

from collections.abc import Callable
from typing import Any

from jobs.transitions.admission import GATED, PASSED
from jobs.transitions.circuits import KEPT_BACK
from jobs.transitions.pauses import HELD_BACK
from jobs.transitions.rates import PARTS
from tests.laws import scenarios_limits as limits
from tests.laws.guards import Attribute
from tests.laws.law import Law, sql


def _by_begun_parts(whole: Callable[..., None]) -> Callable[..., None]:
    """What started in a part that has begun to leave the window counts no more."""

    def begin(self: Any, *arguments: Any) -> None:
        whole(self, *arguments)
        self._spent.pop(self._now - PARTS, None)

    return begin


LIMITS = [
    Law(
        6,
        "the lock of the rate, which reads it again",
        limits.TOO_MANY,
        (sql("gatekeeper.RATES", ("FOR NO KEY UPDATE", "")),),
        limits.started_by_two,
    ),
    Law(
        6,
        "what starts is written into its rate",
        limits.TOO_MANY,
        (sql("gatekeeper.SPEND", ("WHERE r.type = i.type", "WHERE FALSE")),),
        limits.started_one_after_the_other,
    ),
    Law(
        6,
        "a start counts until its part has left the window whole",
        limits.TOO_MANY,
        (Attribute("jobs.transitions.rates", "Budget.__init__", _by_begun_parts),),
        limits.started_a_window_ago,
    ),
    Law(
        6,
        "a woken job is asked for its rate where it starts",
        limits.TOO_MANY,
        (sql("claim.CLAIM_NEXT", (GATED, f"({GATED} AND NOT {PASSED})")),),
        limits.woken_and_met,
    ),
    Law(
        6,
        "who wakes for a rate leaves room for those that are woken",
        limits.IN_VAIN,
        (sql("gatekeeper.PROMISED", ("WHERE ", "WHERE FALSE AND ")),),
        limits.woken_again_and_again,
    ),
    Law(
        6,
        "a limit counts those that run when it is set",
        "more of a type run than its limit lets",
        (sql("limits.SEAT_RUNNING", ("WHERE state = 'Processing'", "WHERE FALSE")),),
        limits.limited_while_they_run,
    ),
    Law(
        1,
        "the second look of who lets through, or the look where it is written",
        "two executions live side by side",
        (
            sql("admission.STILL_ENQUEUED", ("COALESCE(j.state, '') = 'Enqueued'", "TRUE")),
            sql("admission.START", ("COALESCE(j.state, '') = 'Enqueued'", "TRUE")),
        ),
        limits.let_through_twice,
    ),
    Law(
        4,
        "a pause is tested again where a job is let through its gates",
        "a paused job was started",
        (sql("admission.STILL_ENQUEUED", (HELD_BACK, "false")),),
        limits.let_through_a_pause,
    ),
    Law(
        4,
        "a breaker is tested again where a job is let through its gates",
        "whose breaker is open was started",
        (sql("admission.STILL_ENQUEUED", (KEPT_BACK, "false")),),
        limits.let_through_a_breaker,
    ),
]
