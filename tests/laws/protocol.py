"""The guards of the protocol, as its last section has them, and the rows of the table of laws that show each.

A test is named by its file and function. "Alone": without it a promise breaks. "In pairs": layers, of which each keeps
the promise and which are removed together. "Of the verbs": what a single verb says besides.
"""

from dataclasses import dataclass

PROCESSES = "tests/laws/test_processes.py::"


@dataclass(frozen=True)
class Sentence:
    """A guard in the words of the protocol; `shown_by`: names of laws, or of tests where real workers are needed."""

    text: str
    shown_by: tuple[str, ...]


ALONE = [
    Sentence("the fence's dispatch_id", (
        "the end's token, or one end a token", "the note's token", "the release's token",
        "the renewal's token, or its answer with the row's own", "the begin's token, or its answer with the row's own",
        "slots go under the fence",
    )),
    Sentence("the new token at each entry", (
        *(f"a new token at each entry into the queue ({way})"
          for way in ("lost", "released", "retried", "run now", "requeued")),
        "a new token where a slot is taken back, or no word that it was let through",
    )),
    Sentence("the state test in the claim", (
        "the state test in the claim", "the search's lock, or its second look",
        "the second look of who lets through, or the look where it is written",
    )),
    Sentence("the deadline, counted from before the send", (
        "the deadline of a claim, from before it was sent", "the deadline of a renewal, from before it was sent",
        "no renewal past the deadline",
        f"{PROCESSES}test_a_worker_that_counts_no_deadline_runs_jobs_beside_its_successors",
    )),
    Sentence("the grace", ("the grace",)),
    Sentence("kill before release and before take-back", (
        f"{PROCESSES}test_a_worker_that_gives_its_jobs_back_before_their_handlers_are_dead_runs_them_beside_others",
        f"{PROCESSES}test_a_take_back_without_a_kill_runs_a_job_beside_what_its_last_execution_left",
        "only the dead worker's",
    )),
    Sentence("cancel tested inside settle", ("cancel tested inside the settle",)),
    Sentence("the key lock", (
        "whoever parks locks the key", "whoever ends locks the key", "the count in a statement after the lock",
        "the lock of the rate, which reads it again",
    )),
    Sentence("the wake-up in the same transaction", (
        "the next is woken in the transaction of the end", "the next is woken in the transaction of the cancel",
        "a child is opened in the transaction of its parent's end",
        "a child is decided in the transaction of its parent's cancel",
    )),
    Sentence("parents FOR SHARE", (
        "a look at a child waits for its parents", "so it does for one that was a child of the same call and runs",
        "a requeue waits for the parents", "children are locked before their parents are counted",
    )),
    Sentence("cascade to a cancelled child's children", (
        "what falls takes its own children with it",
        "what falls later than its children were looked at takes them with it",
        "what falls when it is looked at takes its own children with it",
    )),
    Sentence("pause inside the claim", (
        "a pause of a type is tested inside the search",
        "a pause of a type is tested where a job starts with the end of another",
        "a pause of a type is tested inside the claim of what a message named",
        "a pause of a queue is tested inside the search", "a pause of a queue is tested inside the claim",
        "a pause is tested again where a job is let through its gates",
    )),
    Sentence("outbox in the same transaction", tuple(
        f"the message in the transaction of its job ({way})"
        for way in (
            "created", "created with a key", "due", "run now", "requeued", "released", "lost", "gate opened", "a child"
        )
    )),
    Sentence("delete after confirm", (
        "a message is deleted when the broker has confirmed it", "a lease ends by itself",
        "only what names its job no more is dropped",
    )),
    Sentence("acknowledge after claim", ("a message is acknowledged after its claim is committed",)),
    Sentence("claim by id waits and does not skip", (
        "a claim by id waits and does not skip", "a defer waits and does not skip",
        "a park_unknown waits and does not skip", "a reannounce waits and does not skip",
    )),
    Sentence("next_run and job in one transaction", ("the next instant and the job in one transaction",)),
]  # fmt: skip
IN_PAIRS = [
    Sentence("the fence's worker with the fence's state", (
        "the note's worker, or its state, or no token without an owner",
        "the end's worker, or a new token, or one end a token",
    )),
    Sentence("the token test in the claim with RETURNING dispatch_id", (
        "the token test in the claim, or the claim's answer as the fence",
    )),
    Sentence("unique (key, slot) with the key lock", (
        "the lock of the key, or one holder of a slot", "the count after the lock, or one holder of a slot",
    )),
    Sentence("the CAS on next_run with the unique instant", (
        "the version in the write of what was read, or one job an instant",
        "the version, or the switch, in the write of what was read",
    )),
]  # fmt: skip
OF_THE_VERBS = [
    Sentence("enqueue: a parking enqueue notifies the gate", ("who is parked by an enqueue is told of",)),
    Sentence("claim: what may not start waits on, and its message with it", (
        "what may not start for now is given back", "a job of an unknown type is parked",
        "a job whose lock is held elsewhere is put off",
    )),
    Sentence("claim: a type whose breaker is open", (
        "a breaker is tested inside the search", "a breaker is tested inside the claim of what a message named",
        "a breaker is tested again where a job is let through its gates",
    )),
    Sentence("park: whoever parks locks the gate's row FOR SHARE and reads it again", (
        "who parks for a pause holds it until the park is committed",
        "who parks for a pause reads it again under its lock",
        "who parks for a breaker holds it until the park is committed",
        "who parks for a breaker reads it again under its lock",
    )),
    Sentence("park: whoever opens a gate updates its row, then wakes in a later statement", (
        "who lifts a pause takes it away before it looks who waits", "a pause that somebody makes longer is not lifted",
    )),
    Sentence("park: whoever takes a keyed job out of Enqueued otherwise wakes the key's next", (
        "who parks a job for another reason tells of its key",
    )),
    Sentence("hand-over: a job has all its gates or none, and nobody waits for a second one", (
        "all gates of a job, or none", "who is woken has passed all its gates",
        "who hands a slot over waits for no other gate", "where a gate is locked elsewhere whoever leads is told",
    )),
    Sentence("keys: who waited and finds no row begins again, retention deletes one only under its lock", (
        "who finds its key gone begins again", "retention's look at a key, or its second look under the lock",
    )),
    Sentence("rates and limits: what starts is counted", (
        "what starts is written into its rate", "a start counts until its part has left the window whole",
        "a limit counts those that run when it is set", "a woken job is asked for its rate where it starts",
        "who wakes for a rate leaves room for those that are woken",
    )),
    Sentence("renew: a heartbeat skips what is locked, reads it, and gives back what nobody here will run", (
        "a heartbeat waits for nobody", "what a heartbeat passed over is read",
        "a claim whose answer was lost is given back", "a claim in flight is no stray",
    )),
    Sentence("settle: an end that is there already is mine", ("an end that was written is known again",)),
    Sentence("expire: one predicate on the row, and the rule of a loss", (
        "no join with the workers", "no age", "the retry rule, with its limit of losses", "at most once",
        "the recovery's lock, or the fence, or the constraints",
    )),
    Sentence("promote: two who lead promote a job once", ("the promotion's lock, or its second look",)),
    Sentence("requeue: clears the cancel request", ("a requeue clears the cancel request",)),
    Sentence("continuations: retention leaves what a child needs", (
        "retention's look at what a waiting child needs, or its second look under the lock",
    )),
    Sentence("fire: the row is as it was read, a conflict only moves the instant on", (
        "the version in the write of what was read", "an instant that was fired moves the next one on",
    )),
    Sentence("breakers: one probe at a time, and only its end moves it", (
        "a breaker is locked while its probe is chosen", "only the end of its probe moves a breaker",
        "a breaker is moved by the statement that writes its probe's end", "a probe that came to nothing is missed",
        "who closes a breaker wakes who waits, or whoever leads does",
        "what ended before a breaker closed is no reason to open it",
    )),
    Sentence("unknown types: asked again, and given up after a grace that was watched", (
        "the gate of an unknown type is asked again and again", "who gives a job up looks at the workers once more",
        "a book that nobody kept counts for nothing", "a time in which nobody looked begins the grace anew",
        "the book forgets a type that somebody has", "the job itself has waited for the grace",
    )),
    Sentence("reconcile: announced again with the same token", (
        "a message is announced again with the token of its job",
    )),
    Sentence("one order of locks, and conflicts repeat the batch", (
        *(f"one order of locks ({verb})" for verb in (
            "settle", "note", "release", "claim", "cancel", "defer", "park_unknown", "reannounce")),
        "conflicts repeat the batch", "a batch with a bad row is halved",
    )),
]  # fmt: skip
EVERY = [*ALONE, *IN_PAIRS, *OF_THE_VERBS]
