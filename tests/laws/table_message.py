"""The guards of the way from the broker: the fourth law, on the worker's side."""

from collections.abc import Callable, Coroutine
from typing import Any

from tests.laws import scenarios_message as message
from tests.laws.guards import Attribute
from tests.laws.law import Law, sql
from workers.leases import Named

LOST = "a job waits for ever"


def _acknowledged_first(whole: Callable[..., Coroutine[Any, Any, Any]]) -> Any:
    """A claim that acknowledges its messages before it asks the database."""

    async def claim(self: Any, groups: Any, wanted: Any) -> Any:
        for delivery in (delivery for group in groups.values() for delivery in group):
            delivery.ack()
        return await whole(self, groups, wanted)

    return claim


def _acknowledged_all(whole: Callable[..., None]) -> Any:
    """An end of the claim that acknowledges also what waits on."""
    return lambda self, groups, wanted, named: whole(self, groups, wanted, Named(named.held))


MESSAGE = [
    Law(
        4,
        "a message is acknowledged after its claim is committed",
        LOST,
        (Attribute("workers.transports.named", "NamedClaims._claim_held", _acknowledged_first),),
        message.claimed_without_a_database,
    ),
    Law(
        4,
        "what may not start for now is given back",
        LOST,
        (Attribute("workers.transports.named", "NamedClaims._conclude", _acknowledged_all),),
        message.claimed_while_its_queue_is_paused,
    ),
    Law(
        4,
        "a pause of a queue is tested inside the claim",
        "a job of a paused queue was started",
        (sql("claim.CLAIM_BY_ID", ("p.scope = 'queue' AND", "FALSE AND")),),
        message.claimed_while_its_queue_is_paused,
    ),
    Law(
        4,
        "a job of an unknown type is parked",
        LOST,
        (Attribute("jobs.transitions.claim", "park_unknown", lambda _: lambda *_pairs, **_options: set()),),
        message.of_a_type_that_the_worker_does_not_know,
    ),
    Law(
        4,
        "a job whose lock is held elsewhere is put off",
        LOST,
        (Attribute("jobs.transitions", "defer", lambda _: lambda *_pairs, **_options: set()),),
        message.locked_by_another,
    ),
]
