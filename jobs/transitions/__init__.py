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
from jobs.transitions.claim import Wanted, claim, claim_next, left, paused
from jobs.transitions.expire import expire
from jobs.transitions.finish import Finished
from jobs.transitions.letters import discard, requeue_letters
from jobs.transitions.losses import Losable, lost_ending
from jobs.transitions.notes import Note, note
from jobs.transitions.outbox import (
    Leased,
    OutboxRow,
    confirm_outbox,
    lease_outbox,
    postpone_outbox,
    return_outbox,
)
from jobs.transitions.park import defer
from jobs.transitions.people import cancel, delete, requeue, run_now
from jobs.transitions.probes import probe
from jobs.transitions.promote import next_due, promote
from jobs.transitions.purge import purge
from jobs.transitions.reannounce import announced, reannounce, reannounce_oldest, waiting_queues
from jobs.transitions.renew import Renewal, cancels, renew, strays
from jobs.transitions.settle import Settled, release, returned, settle, unstored
from jobs.transitions.sql import CONTROL, DUE, OUTBOX, WORK
from jobs.transitions.take_back import take_back
from jobs.transitions.unknown import fail_unknown, open_unknown, park_unknown, park_unserved, watch_unserved

__all__ = [
    "CONTROL",
    "DUE",
    "OUTBOX",
    "WORK",
    "Finished",
    "Leased",
    "Losable",
    "Note",
    "OutboxRow",
    "Renewal",
    "Settled",
    "Trip",
    "Tripped",
    "Wanted",
    "announced",
    "begin",
    "breakers",
    "cancel",
    "cancels",
    "claim",
    "claim_next",
    "confirm_outbox",
    "defer",
    "delete",
    "discard",
    "expire",
    "fail_unknown",
    "lease_outbox",
    "left",
    "lost_ending",
    "next_due",
    "note",
    "open_circuits",
    "open_unknown",
    "park_circuit",
    "park_unknown",
    "park_unserved",
    "park_waiting",
    "paused",
    "postpone_outbox",
    "probe",
    "promote",
    "purge",
    "reannounce",
    "reannounce_oldest",
    "release",
    "renew",
    "requeue",
    "requeue_letters",
    "return_outbox",
    "return_unserved",
    "returned",
    "run_now",
    "settle",
    "strays",
    "take_back",
    "trip",
    "unstored",
    "waiting_queues",
    "watch_unserved",
]
