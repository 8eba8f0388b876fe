"""Which models hold, and which break without a guard. What holds comes with the faults that it stands."""

from tests.model.breakers import Breakers
from tests.model.case import Case, Mutant
from tests.model.catalogue_ownership import OWNERSHIP, OWNERSHIP_LIMIT, OWNERSHIP_LONG, OWNERSHIP_MUTANTS
from tests.model.keys import Keys
from tests.model.outbox import Outbox
from tests.model.parents import Parents
from tests.model.pauses import Pauses
from tests.model.rates import Rates
from tests.model.recurring import Recurring
from tests.model.redlock import Redlock
from tests.model.renewal import Renewal
from tests.model.reservations import Reservations
from tests.model.unknown import Unknown

HOLDS: list[Case] = [
    *OWNERSHIP,
    Case(Keys, "a crash", {"jobs": 3, "crashes": 1}),
    Case(Keys, "two may run", {"jobs": 3, "limit": 2, "crashes": 1}),
    Case(Keys, "one more is enqueued, and a crash", {"enqueues": True, "crashes": 1}),
    Case(Keys, "all are cancelled, and one more is enqueued", {"enqueues": True, "cancels": 1}),
    Case(Keys, "one is cancelled", {"jobs": 3, "cancels": 1, "cancelled": ("job 2",)}),
    Case(Keys, "one is parked for another reason", {"jobs": 3, "asides": 1}),
    Case(Keys, "a notification is lost, but for the sweep", {"enqueues": True, "lost_notices": 1, "sweeps": True}),
    Case(Keys, "the lock of the key without the constraint", {"jobs": 3, "crashes": 1, "one_holder": False}),
    Case(Reservations, "two that need both gates"),
    Case(Parents, "two parents end, one maybe badly", {"may_fail": True, "grandchild": True}),
    Case(Parents, "a child that is there", {"comes_late": False, "may_fail": True, "grandchild": True}),
    Case(Parents, "a notification is lost, but for the sweep", {"lost_notices": 1, "sweeps": True, "may_fail": True}),
    Case(Renewal, "somebody holds one row for long"),
    Case(Pauses, "a person lifts it"),
    Case(Pauses, "it comes while a worker claims", {"starts_paused": False}),
    Case(Pauses, "it runs out", {"expires": True}),
    Case(Pauses, "parked without its lock, but for the sweep", {"parks_under_lock": False, "sweeps": True}),
    Case(Recurring, "a crash", {"crashes": 1}),
    *(
        Case(Recurring, f"a crash, and somebody saves ({edit})", {"crashes": 1, "edit": edit})
        for edit in ("payload", "disable", "back")
    ),
    Case(Recurring, "the unique instant without the version", {"crashes": 1, "tests_version": False}),
    Case(Recurring, "the version without the unique instant", {"crashes": 1, "one_job_an_instant": False}),
    Case(Recurring, "the switch without the version", {"edit": "disable", "tests_version": False}),
    Case(Recurring, "the version without the switch", {"edit": "disable", "tests_enabled": False}),
    Case(Outbox, "a crash, a duplicate, a frozen relay", {"crashes": 1, "duplicates": 1, "freezes": 1}),
    Case(Outbox, "somebody locks the job", {"locks": 1, "duplicates": 1}),
    Case(Outbox, "the broker loses a message", {"losses": 1, "duplicates": 1, "reannounces": True}),
    Case(Outbox, "the claim's answer without its token test", {"duplicates": 1, "claim_tests_token": False}),
    Case(Outbox, "its token test without the claim's answer", {"duplicates": 1, "fence_is_the_rows": False}),
    Case(Breakers, "probes fail, one is cancelled, a crash", {"fails": True, "cancels": 1, "crashes": 1}),
    Case(Breakers, "a window from before", {"trips": 1, "fails": True}),
    Case(Breakers, "nobody but the leader wakes", {"wakes_at_close": False, "parks_under_lock": False}),
    Case(Breakers, "nobody but who closes it wakes", {"sweeps": False}),
    Case(Rates, "one in a window"),
    Case(Rates, "two in a window", {"allowed": 2}),
    Case(Rates, "a woken one is cancelled", {"cancels": 1}),
    Case(
        Unknown, "a worker comes and goes, a night, a requeue", {"comings": 2, "goings": 1, "nights": 1, "requeues": 1}
    ),
    Case(Redlock, "an old message and a new one", {"crashes": 1}),
    Case(Redlock, "a message that came twice", {"tokens": ("new", "new"), "crashes": 1}),
    Case(
        Redlock,
        "servers forget, go away and drift, a worker is frozen",
        {"freezes": 1, "flushes": 1, "losses": 1, "drifts": 1},
    ),
    Case(Redlock, "no quorum", {"losses": 2}),
    Case(Redlock, "the locks alone, while nothing is wrong", {"claim_decides": False}),
]
LONG: list[Case] = [
    *OWNERSHIP_LONG,
    Case(
        Keys,
        "everything at once",
        {"enqueues": True, "crashes": 1, "cancels": 1, "asides": 1, "lost_notices": 1, "sweeps": True},
    ),
    Case(
        Keys,
        "two of four may run, a crash, one is parked aside",
        {"jobs": 3, "limit": 2, "enqueues": True, "crashes": 1, "asides": 1},
    ),
    Case(
        Redlock,
        "two servers go away, and all the rest",
        {"freezes": 1, "flushes": 1, "losses": 2, "drifts": 1, "crashes": 1},
    ),
]
# What nothing helps against, so far as is known: it breaks with all guards, and is said where people read it.
LIMITS: list[Mutant] = [
    OWNERSHIP_LIMIT,
]
RACES = "tests/races"
FOR_EVER = "a job waits for ever"
SLEEPS_PAUSED, SLEEPS_BROKEN = "no pause is in force", "a job sleeps behind a breaker"
A_CHILD = "a child waits for ever"
MUTANTS: list[Mutant] = [
    *OWNERSHIP_MUTANTS,
    # Keys.
    Mutant(Keys, "a claim does not lock the key", {}, ("claims_lock_key",), FOR_EVER,
           ("whoever parks locks the key",)),
    Mutant(Keys, "an end does not lock the key", {}, ("ends_lock_key",), FOR_EVER, ("whoever ends locks the key",)),
    Mutant(Keys, "the count before the lock", {}, ("counts_after_lock",), FOR_EVER,
           ("the count in a statement after the lock",)),
    Mutant(Keys, "no lock and no constraint", {}, ("claims_lock_key", "one_holder"), "two jobs of a key run",
           ("the lock of the key, or one holder of a slot",)),
    Mutant(Keys, "the count before the lock, and no constraint", {}, ("counts_after_lock", "one_holder"),
           "two jobs of a key run", ("the count after the lock, or one holder of a slot",)),
    Mutant(Keys, "woken in a transaction of its own", {"crashes": 1}, ("wakes_in_same_transaction",), FOR_EVER,
           ("the next is woken in the transaction of the end",)),
    Mutant(Keys, "a cancel wakes nobody", {"jobs": 3, "cancels": 1, "cancelled": ("job 2",)}, ("cancel_passes_on",),
           FOR_EVER, ("the next is woken in the transaction of the cancel",)),
    Mutant(Keys, "a cancel locks jobs, then keys", {"jobs": 3, "cancels": 1}, ("keys_first",),
           "all wait for each other", (f"{RACES}/test_keys_storm.py",)),
    Mutant(Keys, "an enqueue that parks tells nobody", {"enqueues": True}, ("tells_of_parked",), FOR_EVER,
           ("who is parked by an enqueue is told of",)),
    Mutant(Keys, "who parks a job for another reason tells nobody", {"jobs": 3, "asides": 1}, ("tells_of_parked",),
           FOR_EVER, ("who parks a job for another reason tells of its key",)),
    Mutant(Reservations, "a slot in hand while it waits for another", {}, ("all_or_none",), "wait for each other",
           ("all gates of a job, or none",)),
    Mutant(Reservations, "who hands over waits for the other gate", {}, ("skips_locked",), "all wait for each other",
           ("who hands a slot over waits for no other gate",)),
    Mutant(Reservations, "nobody is told that a gate was locked", {}, ("tells_the_leader",), "or for nobody",
           ("where a gate is locked elsewhere whoever leads is told",)),
    # Parents.
    Mutant(Parents, "a look does not wait for the parents", {}, ("look_waits_for_parents",), A_CHILD,
           ("a look at a child waits for its parents", "a requeue waits for the parents")),
    Mutant(Parents, "children are not locked", {"comes_late": False}, ("locks_children",), A_CHILD,
           ("children are locked before their parents are counted",)),
    Mutant(Parents, "parents are counted on an old snapshot", {"comes_late": False}, ("counts_in_later_statement",),
           A_CHILD, ("children are locked before their parents are counted",)),
    Mutant(Parents, "opened in a transaction of its own", {"comes_late": False, "crashes": 1},
           ("opens_in_same_transaction",), A_CHILD, ("a child is opened in the transaction of its parent's end",
                                                     "a child is decided in the transaction of its parent's cancel")),
    Mutant(Parents, "what falls leaves its own children", {
        "parents": 1, "comes_late": False, "may_fail": True, "grandchild": True}, ("cascades",), A_CHILD,
        ("what falls later than its children were looked at takes them with it",
         "what falls when it is looked at takes its own children with it")),
    # Renewals.
    Mutant(Renewal, "a heartbeat waits for a row", {}, ("skips_locked",), "because of another's row",
           ("a heartbeat waits for nobody",)),
    Mutant(Renewal, "what was passed over is lost", {}, ("reads_what_it_skipped",), "a live owner was told",
           ("what a heartbeat passed over is read",)),
    # Pauses.
    Mutant(Pauses, "looked up before the claim", {"starts_paused": False}, ("tested_in_claim",),
           "a paused job was started", ("a pause of a type is tested inside the search",
                                        "a pause of a type is tested inside the claim of what a message named",
                                        "a pause of a queue is tested inside the claim",
                                        "a pause of a queue is tested inside the search",
                                        "a pause is tested again where a job is let through its gates")),
    Mutant(Pauses, "parked without its lock", {}, ("parks_under_lock",), SLEEPS_PAUSED,
           ("who parks for a pause holds it until the park is committed",
            "who parks for a pause reads it again under its lock")),
    Mutant(Pauses, "lifted by one statement", {}, ("wakes_in_later_statement",), SLEEPS_PAUSED,
           ("who lifts a pause takes it away before it looks who waits",)),
    Mutant(Pauses, "nobody lifts what has run out", {"expires": True}, ("leader_lifts",), SLEEPS_PAUSED,
           ("tests/transitions/test_pauses.py::test_the_end_of_a_pause_wakes_like_a_person",)),
    # Recurring jobs.
    Mutant(Recurring, "no version and no unique instant", {}, ("tests_version", "one_job_an_instant"),
           "an instant was fired twice", ("the version in the write of what was read, or one job an instant",)),
    Mutant(Recurring, "no unique instant, and a save sets it back", {"edit": "back"}, ("one_job_an_instant",),
           "an instant was fired twice", ("the version in the write of what was read, or one job an instant",)),
    Mutant(Recurring, "no version", {"edit": "payload"}, ("tests_version",), "had been edited away",
           ("the version in the write of what was read",)),
    Mutant(Recurring, "no version and no switch", {"edit": "disable"}, ("tests_version", "tests_enabled"),
           "after its schedule was disabled", ("the version, or the switch, in the write of what was read",)),
    Mutant(Recurring, "a duplicate instant is an error", {"edit": "back"}, ("conflict_goes_on",),
           "refused again and again", ("an instant that was fired moves the next one on",)),
    Mutant(Recurring, "two transactions", {"crashes": 1}, ("in_one_transaction",), "never fired",
           ("the next instant and the job in one transaction",)),
    # The way to the broker.
    Mutant(Outbox, "published after the commit", {}, ("in_one_transaction",), FOR_EVER,
           ("the message in the transaction of its job (created)",)),
    Mutant(Outbox, "deleted before it is confirmed", {"crashes": 1}, ("deletes_after_confirm",), FOR_EVER,
           ("a message is deleted when the broker has confirmed it",)),
    Mutant(Outbox, "a relay's lease does not end", {"crashes": 1}, ("lease_ends",), FOR_EVER,
           ("a lease ends by itself",)),
    Mutant(Outbox, "acknowledged before the claim", {"crashes": 1}, ("acknowledges_after_claim",), FOR_EVER,
           ("a message is acknowledged after its claim is committed",)),
    Mutant(Outbox, "a claim passes a locked row over", {"locks": 1}, ("claim_waits",), FOR_EVER,
           ("a claim by id waits and does not skip",)),
    Mutant(Outbox, "no token test, and the message's fence", {"duplicates": 1},
           ("claim_tests_token", "fence_is_the_rows"), FOR_EVER,
           ("the token test in the claim, or the claim's answer as the fence",)),
    Mutant(Outbox, "announced again with another token", {"losses": 1, "reannounces": True},
           ("announces_with_its_token",), FOR_EVER, ("a message is announced again with the token of its job",)),
    # Breakers.
    Mutant(Breakers, "a claim does not look", {}, ("tested_in_claim",), "was started",
           ("a breaker is tested inside the search", "a breaker is tested inside the claim of what a message named",
            "a breaker is tested again where a job is let through its gates")),
    Mutant(Breakers, "not locked while its probe is chosen", {}, ("locked_while_probed",), "two probes at once",
           ("a breaker is locked while its probe is chosen",)),
    Mutant(Breakers, "anybody's end moves it", {}, ("only_the_probe_moves_it",), "somebody else's end",
           ("only the end of its probe moves a breaker",)),
    Mutant(Breakers, "moved by another statement than the end's", {}, ("moves_with_the_end",), "a breaker never closes",
           ("a breaker is moved by the statement that writes its probe's end",)),
    Mutant(Breakers, "nobody misses a probe", {"cancels": 1}, ("stale_are_missed",), SLEEPS_BROKEN,
           ("a probe that came to nothing is missed",)),
    Mutant(Breakers, "nobody wakes", {}, ("wakes_at_close", "sweeps"), SLEEPS_BROKEN,
           ("who closes a breaker wakes who waits, or whoever leads does",)),
    Mutant(Breakers, "parked without its lock, and no sweep", {}, ("parks_under_lock", "sweeps"), SLEEPS_BROKEN,
           ("who parks for a breaker holds it until the park is committed",
            "who parks for a breaker reads it again under its lock")),
    Mutant(Breakers, "opened by a window from before", {"trips": 1}, ("reason_has_an_age",), "before it closed",
           ("what ended before a breaker closed is no reason to open it",)),
    # Rates.
    Mutant(Rates, "not locked", {}, ("locked",), "more started in a window",
           ("the lock of the rate, which reads it again",)),
    Mutant(Rates, "read before the lock", {}, ("counts_after_lock",), "more started in a window",
           ("the lock of the rate, which reads it again",)),
    Mutant(Rates, "not paid", {}, ("is_paid",), "more started in a window", ("what starts is written into its rate",)),
    Mutant(Rates, "parts that have begun to leave count no more", {}, ("counts_whole_parts",),
           "more started in a window", ("a start counts until its part has left the window whole",)),
    Mutant(Rates, "nobody looks again", {}, ("leader_looks",), "waits for a rate that has room",
           ("tests/transitions/test_limits.py::test_one_is_woken_for_each_start_that_may_be",)),
    Mutant(Rates, "a start is paid when its job is woken", {}, ("asks_woken",), "more started in a window",
           ("a woken job is asked for its rate where it starts",)),
    Mutant(Rates, "whoever is woken already is forgotten", {}, ("counts_woken",), "more are woken than may start",
           ("who wakes for a rate leaves room for those that are woken",)),
    # Unknown types.
    Mutant(Unknown, "nobody asks again", {}, ("looks_again",), FOR_EVER,
           ("the gate of an unknown type is asked again and again",)),
    Mutant(Unknown, "given up by the book alone", {}, ("looks_at_workers",), "though a worker has its type",
           ("who gives a job up looks at the workers once more",)),
    Mutant(Unknown, "a night counts", {"nights": 1}, ("begins_anew",), "not missing for so long",
           ("a book that nobody kept counts for nothing", "a time in which nobody looked begins the grace anew")),
    Mutant(Unknown, "the book forgets nothing", {"goings": 1}, ("forgets",), "not missing for so long",
           ("the book forgets a type that somebody has",)),
    Mutant(Unknown, "whatever the job itself has waited", {"requeues": 1}, ("counts_own_wait",),
           "before it had waited", ("the job itself has waited for the grace",)),
    # Redlock: the locks alone guard nothing, whatever one takes for granted.
    *(
        Mutant(Redlock, f"the locks alone, {what}", flags, ("claim_decides",), "two executions live side by side",
               ("the state test in the claim",))
        for what, flags in (
            ("and the servers are flushed", {"flushes": 1}),
            ("and a server lets go too soon", {"drifts": 1}),
            ("and a worker is frozen", {"freezes": 1}),
            ("and no quorum", {"losses": 2}),
            ("and a message that came twice", {"tokens": ("new", "new")}),
            ("and one of three is enough", {"quorum": 1}),
        )
    ),
    Mutant(Redlock, "what another has is dropped", {"crashes": 1}, ("defers",), FOR_EVER,
           ("a job whose lock is held elsewhere is put off",)),
]  # fmt: skip
