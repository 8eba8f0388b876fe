"""The only writer of state. Each verb is one file: hand-written SQL, batch first, one transaction, one lock order.

Owners' writes (settle, release, renew, note) test the fence: job, dispatch token, worker, Processing. READ COMMITTED
throughout; every multi-row write locks jobs by id.
"""

from jobs.transitions.begin import begin
from jobs.transitions.circuits import (
    Trip,
    Tripped,
    breakers,
    open_circuits,
    park_circuit,
    park_waiting,
    return_unserved,
    trip,
)
from jobs.transitions.claim import Wanted, by_queue, claim, claim_next, left, paused
from jobs.transitions.expire import expire
from jobs.transitions.finish import Finished
from jobs.transitions.fire import Active, Due, Firing, due, fire, next_firing, served_types, trigger
from jobs.transitions.forgotten import Swept, open_parents
from jobs.transitions.keyring import forget_keys
from jobs.transitions.letters import discard, requeue_letters
from jobs.transitions.limits import declare_limits, reset_limits, seat_running, set_limits
from jobs.transitions.losses import Losable, lost_ending
from jobs.transitions.notes import Note, note
from jobs.transitions.opening import count_found, free_idle, open_ids, open_keys, open_rates, sweep
from jobs.transitions.outbox import (
    Leased,
    OutboxRow,
    confirm_outbox,
    lease_outbox,
    postpone_outbox,
    return_outbox,
)
from jobs.transitions.parents import check_parents
from jobs.transitions.park import defer
from jobs.transitions.pauses import Pause, expire_pauses, open_pauses, park_paused, park_paused_heads, pause, resume
from jobs.transitions.people import cancel, delete, requeue, run_now
from jobs.transitions.priorities import reprioritise
from jobs.transitions.probes import probe
from jobs.transitions.promote import next_due, promote
from jobs.transitions.purge import FIRST, Place, beyond, purge
from jobs.transitions.queues import QueueSettings, set_queue, slots_of
from jobs.transitions.reannounce import announced, reannounce, reannounce_oldest, waiting_queues
from jobs.transitions.renew import Renewal, cancels, renew, strays
from jobs.transitions.settle import Settled, release, returned, settle, unstored
from jobs.transitions.sql import CONTROL, DUE, GATES, OUTBOX, WORK
from jobs.transitions.successors import Seats
from jobs.transitions.take_back import take_back
from jobs.transitions.unknown import fail_unknown, open_unknown, park_unknown, park_unserved, watch_unserved
from jobs.transitions.unused import forget_circuits, forget_types

__all__ = [
    "CONTROL",
    "DUE",
    "FIRST",
    "GATES",
    "OUTBOX",
    "WORK",
    "Active",
    "Due",
    "Finished",
    "Firing",
    "Leased",
    "Losable",
    "Note",
    "OutboxRow",
    "Pause",
    "Place",
    "QueueSettings",
    "Renewal",
    "Seats",
    "Settled",
    "Swept",
    "Trip",
    "Tripped",
    "Wanted",
    "announced",
    "begin",
    "beyond",
    "breakers",
    "by_queue",
    "cancel",
    "cancels",
    "check_parents",
    "claim",
    "claim_next",
    "confirm_outbox",
    "count_found",
    "declare_limits",
    "defer",
    "delete",
    "discard",
    "due",
    "expire",
    "expire_pauses",
    "fail_unknown",
    "fire",
    "forget_circuits",
    "forget_keys",
    "forget_types",
    "free_idle",
    "lease_outbox",
    "left",
    "lost_ending",
    "next_due",
    "next_firing",
    "note",
    "open_circuits",
    "open_ids",
    "open_keys",
    "open_parents",
    "open_pauses",
    "open_rates",
    "open_unknown",
    "park_circuit",
    "park_paused",
    "park_paused_heads",
    "park_unknown",
    "park_unserved",
    "park_waiting",
    "pause",
    "paused",
    "postpone_outbox",
    "probe",
    "promote",
    "purge",
    "reannounce",
    "reannounce_oldest",
    "release",
    "renew",
    "reprioritise",
    "requeue",
    "requeue_letters",
    "reset_limits",
    "resume",
    "return_outbox",
    "return_unserved",
    "returned",
    "run_now",
    "seat_running",
    "served_types",
    "set_limits",
    "set_queue",
    "settle",
    "slots_of",
    "strays",
    "sweep",
    "take_back",
    "trigger",
    "trip",
    "unstored",
    "waiting_queues",
    "watch_unserved",
]
