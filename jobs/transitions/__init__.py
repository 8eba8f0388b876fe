"""The only writer of state. Each verb is one file: hand-written SQL, batch first, one transaction, one lock order.

Owners' writes (settle, release, renew, note) test the fence: job, dispatch token, worker, Processing. READ COMMITTED
throughout; every multi-row write locks jobs by id.
"""

from jobs.transitions.claim import claim, claim_next
from jobs.transitions.expire import expire
from jobs.transitions.finish import Finished
from jobs.transitions.letters import discard, requeue_letters
from jobs.transitions.losses import Losable, lost_ending
from jobs.transitions.notes import Note, note
from jobs.transitions.people import cancel, delete, requeue, run_now
from jobs.transitions.promote import next_due, promote
from jobs.transitions.purge import purge
from jobs.transitions.renew import Renewal, cancels, renew, strays
from jobs.transitions.settle import Settled, release, returned, settle, unstored
from jobs.transitions.sql import CONTROL, DUE, WORK
from jobs.transitions.take_back import take_back

__all__ = [
    "CONTROL",
    "DUE",
    "WORK",
    "Finished",
    "Losable",
    "Note",
    "Renewal",
    "Settled",
    "cancel",
    "cancels",
    "claim",
    "claim_next",
    "delete",
    "discard",
    "expire",
    "lost_ending",
    "next_due",
    "note",
    "promote",
    "purge",
    "release",
    "renew",
    "requeue",
    "requeue_letters",
    "returned",
    "run_now",
    "settle",
    "strays",
    "take_back",
    "unstored",
]
