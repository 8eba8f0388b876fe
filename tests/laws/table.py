"""Which guard keeps which promise. Several guards in one row are layers: each alone keeps it, without all it breaks."""

from collections.abc import Callable
from functools import partial
from typing import Any

from jobs.retry import Again
from tests.laws import scenarios_lease as lease
from tests.laws import scenarios_owner as owner
from tests.laws import scenarios_together as together
from tests.laws.guards import Attribute, Constraint
from tests.laws.law import Law, both, sql
from tests.laws.table_breakers import BREAKERS
from tests.laws.table_ends import ENDS
from tests.laws.table_keys import KEYS_AND_LIMITS
from tests.laws.table_limits import LIMITS
from tests.laws.table_message import MESSAGE
from tests.laws.table_outbox import OUTBOX
from tests.laws.table_parents import PARENTS
from tests.laws.table_pauses import PAUSES
from tests.laws.table_recurring import RECURRING
from tests.laws.table_unknown import UNKNOWN_TYPES
from workers.clock import boottime

TWO = "two executions live side by side"
OVER = "a late owner's"
DRAWN = "CASE WHEN l.becomes = 'Enqueued' THEN gen_random_uuid() END"
LOCK = "FOR NO KEY UPDATE SKIP LOCKED"


# The parts of an end's fence, each at both places where it is tested.
END_TOKEN = sql("finish.FINISH", ("j.dispatch_id = i.dispatch_id", "TRUE"), ("j.dispatch_id = l.dispatch_id", "TRUE"))
END_WORKER = sql("finish.FINISH", ("j.worker_id = i.worker_id", "TRUE"), ("j.worker_id = l.worker_id", "TRUE"))
END_STATE = sql("finish.FINISH", ("AND COALESCE(j.state, '') = 'Processing'", ""))
TOKEN_KEPT = sql("finish.FINISH", (DRAWN, "j.dispatch_id"))
NEVER_CLEARED = sql("finish.FINISH", (DRAWN, f"COALESCE({DRAWN}, j.dispatch_id)"))
UNDRAWN = ("dispatch_id = gen_random_uuid(), ", "")
ONE_END = Constraint(
    "job_attempts",
    "DROP CONSTRAINT attempts_one_dispatch",
    "ADD CONSTRAINT attempts_one_dispatch UNIQUE (dispatch_id)",
)
ONE_ORDINAL = Constraint(
    "job_attempts",
    "DROP CONSTRAINT attempts_one_ordinal",
    "ADD CONSTRAINT attempts_one_ordinal UNIQUE (job_id, ordinal)",
)
STARTED = Constraint("job_attempts", "ALTER started_at DROP NOT NULL", "ALTER started_at SET NOT NULL")
CLAIM_STATE = ("COALESCE(j.state, '') = 'Enqueued'", "TRUE")


def _later(whole: Callable[..., Any]) -> Callable[..., Any]:
    """A method of the lease book whose last argument is a deadline, counted from now."""
    return lambda *arguments: whole(*arguments[:-1], boottime() + 60.0)


TOKENS = [
    Law(1, f"a new token at each entry into the queue ({way})", TWO, (guard,), partial(owner.renewed_late, way))
    for way, guard in (
        (owner.LOST, TOKEN_KEPT),
        (owner.RELEASED, TOKEN_KEPT),
        (owner.RETRIED, both(NEVER_CLEARED, sql("promote.PROMOTE", UNDRAWN))),
        (owner.RUN_NOW, both(NEVER_CLEARED, sql("people.RUN_NOW", UNDRAWN))),
        (owner.REQUEUED, both(NEVER_CLEARED, sql("people.REQUEUE", UNDRAWN))),
    )
]
OWNERSHIP = [
    Law(1, "the state test in the claim", TWO, (sql("claim.CLAIM_BY_ID", CLAIM_STATE),), owner.message_twice),
    Law(
        1,
        "the token test in the claim, or the claim's answer as the fence",
        "the owner of a job could not write its end",
        (
            sql("claim.CLAIM_BY_ID", ("AND j.dispatch_id = i.token", "")),
            sql(
                "claim.CLAIM_BY_ID",
                ("SELECT j.*, i.slot", "SELECT j.*, i.token, i.slot"),
                ("SELECT id, slot FROM picked", "SELECT id, slot, token FROM picked"),
                ("RETURNING j.id, j.dispatch_id", "RETURNING j.id, s.token AS dispatch_id"),
            ),
        ),
        owner.message_of_old,
    ),
    Law(
        1,
        "a claim in flight is no stray",
        TWO,
        (Attribute("workers.leases", "LeaseBook.is_stray", lambda _: lambda self, token, _claim: not self.get(token)),),
        lease.in_flight,
    ),
    Law(
        1,
        "cancel tested inside the settle",
        "a cancelled job goes on",
        (sql("finish.FINISH", ("j.cancel_requested_at IS NOT NULL AND i.to_state <> 'Succeeded'", "FALSE")),),
        owner.cancelled_while_running,
    ),
]
FENCE = [
    Law(2, "the end's token, or one end a token", OVER, (END_TOKEN, ONE_END), owner.ended_late),
    Law(
        2,
        "the end's worker, or a new token, or one end a token",
        OVER,
        (END_WORKER, TOKEN_KEPT, ONE_END),
        owner.ended_late_elsewhere,
    ),
    Law(2, "the note's token", OVER, (sql("notes.NOTE", ("j.dispatch_id = i.dispatch_id", "TRUE")),), owner.noted_late),
    Law(
        2,
        "the note's worker, or its state, or no token without an owner",
        "on a job that nobody owned",
        (
            sql("notes.NOTE", ("j.worker_id = %(worker_id)s::uuid", "TRUE")),
            sql("notes.NOTE", ("COALESCE(j.state, '') = 'Processing'", "TRUE")),
            NEVER_CLEARED,
        ),
        owner.noted_after_the_end,
    ),
    Law(
        2,
        "the release's token",
        TWO,
        (sql("settle.LEFT", ("AND dispatch_id = ANY(%(tokens)s::uuid[])", "")),),
        owner.released_late,
    ),
    Law(
        2,
        "the renewal's token, or its answer with the row's own",
        TWO,
        (
            sql("renew.RENEW", ("j.dispatch_id = i.dispatch_id", "TRUE")),
            sql(
                "renew.RENEW",
                ("SELECT j.id\n", "SELECT j.id, i.dispatch_id AS said\n"),
                ("RETURNING j.dispatch_id", "RETURNING mine.said"),
            ),
        ),
        partial(owner.renewed_late, owner.LOST),
    ),
]
RECOVERY = [
    Law(
        3,
        "the deadline of a claim, from before it was sent",
        TWO,
        (Attribute("workers.leases", "LeaseBook.enter", _later),),
        lease.claimed_with_a_late_answer,
    ),
    Law(
        3,
        "the deadline of a renewal, from before it was sent",
        TWO,
        (Attribute("workers.leases", "LeaseBook.extend", _later),),
        lease.renewed_with_a_late_answer,
    ),
    Law(
        3,
        "no renewal past the deadline",
        "Processing for ever",
        (Attribute("workers.leases", "LeaseBook.renewable", lambda _: lambda self, now: self.everything()),),
        lease.dead_at_its_deadline,
    ),
    Law(
        3,
        "the grace",
        TWO,
        (sql("expire.EXPIRED", ("- %(grace)s::float8", "- 0 * %(grace)s::float8")),),
        lease.past_its_lease_by_less_than_the_grace,
    ),
    Law(
        3,
        "no join with the workers",
        "never found",
        (sql("expire.EXPIRED", ("WHERE ", "WHERE worker_id IN (SELECT id FROM turno.workers) AND ")),),
        lease.of_a_worker_that_nobody_knows,
    ),
    Law(3, "no age", TWO, (sql("expire.EXPIRED", ("lease_expires_at <", "started_at <")),), lease.runs_for_hours),
    Law(
        3,
        "the retry rule, with its limit of losses",
        "without end",
        (Attribute("jobs.transitions.losses", "after_loss", lambda _: lambda *_: Again()),),
        lease.lost_again_and_again,
    ),
    Law(
        3,
        "at most once",
        "was repeated",
        (sql("expire.EXPIRED", ("at_most_once", "FALSE")),),
        lease.lost_and_never_to_be_repeated,
    ),
]
WITHOUT_LEADER = [
    Law(
        5,
        "the promotion's lock, or its second look",
        "enqueued twice",
        (sql("promote.PROMOTE", (LOCK, "")), sql("promote.PROMOTE", ("COALESCE(j.state, '') = 'Scheduled'", "TRUE"))),
        together.promoted_by_two,
    ),
    Law(
        5,
        "the recovery's lock, or the fence, or the constraints",
        "charged twice",
        (
            sql("expire.EXPIRED", (LOCK, "")),
            both(END_TOKEN, END_WORKER, END_STATE),
            both(ONE_END, ONE_ORDINAL, STARTED),
        ),
        together.recovered_by_two,
    ),
    Law(
        5,
        "the search's lock, or its second look",
        TWO,
        (sql("claim.CLAIM_NEXT", (LOCK, "")), sql("claim.CLAIM_NEXT", CLAIM_STATE)),
        together.claimed_by_two,
    ),
]
ORDERED = {
    "settle": sql("finish.FINISH", ("ORDER BY id) AS i", ") AS i")),
    "note": sql("notes.NOTE", ("ORDER BY j.id FOR", "FOR")),
    "release": sql("settle.LEFT", ("ORDER BY id FOR", "FOR")),
    "claim": sql("claim.CLAIM_BY_ID", ("ORDER BY id\n    ) AS i", ") AS i")),
    "cancel": sql("people.LOCK", ("ORDER BY id FOR", "FOR")),
    "defer": sql("park.DEFER", ("ORDER BY j.id FOR", "FOR")),
    "park_unknown": sql("unknown.PARK_UNKNOWN", ("ORDER BY j.id FOR", "FOR")),
    "reannounce": sql("reannounce.NAMED", ("ORDER BY j.id FOR", "FOR")),
}
ORDER = [
    *(
        Law(6, f"one order of locks ({verb})", "lock each other out", (guard,), partial(together.in_one_order, verb))
        for verb, guard in ORDERED.items()
    ),
    Law(
        6,
        "a claim by id waits and does not skip",
        "waits for ever",
        (sql("claim.CLAIM_BY_ID", ("FOR NO KEY UPDATE OF j", "FOR NO KEY UPDATE OF j SKIP LOCKED")),),
        together.message_while_somebody_looks,
    ),
    Law(
        6,
        "conflicts repeat the batch",
        "an end was dropped",
        (Attribute("jobs.transitions.sql", "CONFLICTS", lambda _: frozenset()),),
        together.meets_a_conflict,
    ),
    Law(
        6,
        "a batch with a bad row is halved",
        "cost others",
        (Attribute("jobs.transitions.settle", "refused", lambda _: lambda _error: False),),
        together.has_a_bad_row,
    ),
]
LAWS = [
    *TOKENS,
    *OWNERSHIP,
    *FENCE,
    *RECOVERY,
    *WITHOUT_LEADER,
    *ORDER,
    *OUTBOX,
    *MESSAGE,
    *PARENTS,
    *PAUSES,
    *KEYS_AND_LIMITS,
    *RECURRING,
    *ENDS,
    *BREAKERS,
    *LIMITS,
    *UNKNOWN_TYPES,
]
