"""The guards of concurrency keys and limits of types: one lock, a count after it, and slots from hand to hand."""

from collections.abc import Callable, Iterable
from typing import Any

from jobs.states import Waiting
from jobs.transitions import keys as made
from jobs.transitions.gatekeeper import TAKE, Gates
from jobs.transitions.keys import KEYS, LOCK, MISSING, SLOTS, Slot, lowest
from jobs.transitions.sql import arrays, fetch
from tests.laws import scenarios_keys as keys
from tests.laws.guards import Attribute, Constraint
from tests.laws.law import Law, sql

ONE_HOLDER = Constraint(
    "concurrency_slots",
    "DROP CONSTRAINT slots_one_holder",
    "ADD CONSTRAINT slots_one_holder UNIQUE (key_id, slot)",
)
UNLOCKED = sql("keys.LOCK", ("FOR NO KEY UPDATE OF k", ""))
UNHELD = "NOT EXISTS (SELECT FROM turno.concurrency_slots AS s WHERE s.key_id = k.id OFFSET 0)", "TRUE"
ALL_SLOTS = "SELECT key_id, slot FROM turno.concurrency_slots"


def _nothing(_whole: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_arguments: 0


def _counts_first(whole: Callable[..., Gates]) -> Callable[..., Gates]:
    """What is taken is read before the key is locked."""

    def in_order(cursor: Any, wanted: Any, also: Iterable[tuple[str, str]] = ()) -> Gates:
        before = fetch(cursor, ALL_SLOTS, {})
        gates = whole(cursor, wanted, also)
        count = gates.count

        def counted(**coming: Any) -> None:
            count(**coming)
            gates._taken = {key: {slot for of, slot in before if of == key} for key in gates._taken}

        gates.count = counted  # type: ignore[method-assign]
        return gates

    return in_order


def _own_gate_only(_whole: Callable[..., Any]) -> Callable[..., Any]:
    """Whoever has a key asks for nothing else."""

    def slotted(gates: Gates, job: Any) -> Iterable[tuple[tuple[str, str], Waiting, int | None]]:
        if job.key is not None:
            yield (made.KEY, job.key), Waiting.CONCURRENCY_KEY, job.key_limit

    return slotted


def _keeps_what_it_has(whole: Callable[..., Any]) -> Callable[..., Any]:
    """A job that finds its first gate open and its second shut waits there with the slot of the first in its hand."""

    def decide(gates: Gates, found: Any, waiting_at: Any) -> Any:
        decided = whole(gates, found, waiting_at)
        own = {job.id: key for job, key in zip(found, waiting_at, strict=True)}
        for job, _stop in decided.elsewhere:
            taken = gates._taken[own[job.id]]
            slot = Slot(job.id, job.token, own[job.id], lowest(taken))
            taken.add(slot.number)
            gates._cursor.execute(TAKE, arrays(SLOTS, [slot]))
        return decided

    return decide


def _locks_once(_whole: Callable[..., Any]) -> Callable[..., Any]:
    def lock(cursor: Any, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
        params = arrays(KEYS, sorted(set(wanted)))
        cursor.execute(MISSING, params)
        return {(kind, value): id_ for id_, kind, value in fetch(cursor, LOCK, params)}

    return lock


KEYS_AND_LIMITS = [
    Law(6, "the lock of the key, or one holder of a slot", keys.TOO_MANY, (UNLOCKED, ONE_HOLDER), keys.claimed_by_two),
    Law(
        6,
        "the count after the lock, or one holder of a slot",
        keys.TOO_MANY,
        (Attribute("jobs.transitions.gatekeeper", "Gates.in_order", _counts_first), ONE_HOLDER),
        keys.claimed_by_two,
    ),
    *(
        Law(6, guard, keys.FOR_EVER, (layer,), keys.parked_while_the_last_one_ends)
        for guard, layer in {
            "whoever parks locks the key": UNLOCKED,
            "whoever ends locks the key": sql("keys.LOCK_HELD", ("FOR NO KEY UPDATE", "")),
            "the count in a statement after the lock": Attribute(
                "jobs.transitions.gatekeeper", "Gates.in_order", _counts_first
            ),
        }.items()
    ),
    Law(
        6,
        "the next is woken in the transaction of the end",
        keys.FOR_EVER,
        (Attribute("jobs.transitions.finish", "pass_on", _nothing),),
        keys.killed_after_an_end,
    ),
    Law(
        6,
        "the next is woken in the transaction of the cancel",
        keys.FOR_EVER,
        (Attribute("jobs.transitions.people", "pass_on", _nothing),),
        keys.cancelled_with_a_slot_in_its_hand,
    ),
    Law(
        2,
        "slots go under the fence",
        keys.TOO_MANY,
        (
            sql(
                "finish.FINISH",
                (
                    "USING ended AS e\n    WHERE s.job_id = e.id AND s.dispatch_id = e.dispatch_id",
                    "WHERE s.job_id = ANY(%(id)s::uuid[])",
                ),
            ),
        ),
        keys.ended_late,
    ),
    Law(
        6,
        "who is parked by an enqueue is told of",
        keys.FOR_EVER,
        (sql("insert.INSERT", ("FROM inserted WHERE gate IS NOT NULL", "FROM inserted WHERE FALSE")),),
        keys.enqueued_while_the_gate_opens,
    ),
    Law(
        1,
        "a new token where a slot is taken back, or no word that it was let through",
        keys.TOO_MANY,
        (
            sql("opening.IDLE", ("dispatch_id = gen_random_uuid(), ", "")),
            sql("opening.IDLE", ("admitted = NULL, ", "")),
        ),
        keys.taken_back_from_a_queue_that_nobody_serves,
    ),
    Law(
        6,
        "who is woken has passed all its gates",
        "more of a type run than its limit lets",
        (Attribute("jobs.transitions.gatekeeper", "Gates._slotted", _own_gate_only),),
        keys.woken_with_all_that_it_needs,
    ),
    Law(
        6,
        "all gates of a job, or none",
        "wait for each other for ever",
        (Attribute("jobs.transitions.handover", "_decide", _keeps_what_it_has),),
        keys.need_each_others_gate,
    ),
    Law(
        6,
        "retention's look at a key, or its second look under the lock",
        keys.TOO_MANY,
        (
            sql("keyring.FORGET", UNHELD),
            sql("keyring.FORGOTTEN", UNHELD),
        ),
        keys.forgotten_while_it_is_held,
    ),
    Law(
        6,
        "who finds its key gone begins again",
        "a claim fails because of retention",
        (Attribute("jobs.transitions.keys", "lock", _locks_once),),
        keys.claimed_while_its_key_is_forgotten,
    ),
    Law(
        6,
        "who parks a job for another reason tells of its key",
        keys.FOR_EVER,
        (sql("pauses.PARK_NAMED", ("moved WHERE concurrency_key IS NOT NULL", "moved WHERE FALSE")),),
        keys.put_aside_with_a_slot_in_its_hand,
    ),
    Law(
        6,
        "who hands a slot over waits for no other gate",
        "two that end wait for each other",
        (Attribute("jobs.transitions.keys", "lock_free", lambda _: made.lock),),
        keys.freed_while_its_other_gate_is_locked,
    ),
    Law(
        6,
        "where a gate is locked elsewhere whoever leads is told",
        keys.FOR_EVER,
        (Attribute("jobs.transitions.handover", "tell", _nothing),),
        keys.freed_while_its_other_gate_is_locked,
    ),
]
