"""Jobs of one concurrency key: claimed, parked, handed a slot, cancelled, lost. Statement by statement.

A job is "Enqueued" (`asks`), "admitted" (Enqueued with a slot in its hand), "Processing", "parked" at the key, "aside"
(parked for another reason), or "over". A slot has the number of the job that holds it, 0 where it is free. A limit of a
type is the same thing with another kind of key.
"""

from collections.abc import Iterator

from tests.model.checker import Model, State, Step, then
from tests.model.transactions import LOCK, database, deadlock, end, free, lock, read, write

WORKERS = ("worker 1", "worker 2")
CALLER, PERSON, LEADER = "caller", "person", "leader"
ASKS, ADMITTED, RUNS, PARKED, ASIDE, OVER = "Enqueued", "admitted", "Processing", "parked", "aside", "over"
IN_QUEUE, WAITS = (ASKS, ADMITTED), (ASKS, ADMITTED, PARKED)


class Keys(Model):
    """The key, its slots, the jobs, and all who lock them."""

    jobs = 2
    limit = 1
    claims_lock_key = True
    ends_lock_key = True
    counts_after_lock = True  # in a statement of its own
    one_holder = True  # the constraint on (key, slot)
    wakes_in_same_transaction = True
    keys_first = True  # a cancel locks keys, then jobs
    cancel_passes_on = True
    tells_of_parked = True  # an enqueue that parks, and whoever takes a job out of its queue, tells the leader
    enqueues = False  # one more job comes in a caller's open transaction
    cancels = 0
    cancelled = ()  # which jobs the cancel is of; all where nothing is said
    asides = 0  # a job is parked for another reason: a pause, a breaker, an unknown type
    lost_notices = 0
    sweeps = False

    def begin(self) -> State:
        self.names = tuple(f"job {n + 1}" for n in range(self.jobs + self.enqueues))
        self.slots = tuple(f"slot {n + 1}" for n in range(self.limit))
        rows: State = {name: ASKS if n < self.jobs else None for n, name in enumerate(self.names)}
        rows |= dict.fromkeys(self.slots, "") | {"key": 1}
        own = {f"{who} {what}": "" for who in WORKERS for what in ("at", "job", "counted")}
        return {
            **rows,
            **database(rows, [*WORKERS, CALLER, PERSON, LEADER]),
            **own,
            "caller at": "begins" if self.enqueues else "",
            "person at": "",
            "leader at": "",
            "leader's loss": "",
            "told": False,
            "crashes": self.crashes,
            "cancels": self.cancels,
            "asides": self.asides,
            "lost notices": self.lost_notices,
        }

    def steps(self, now: State) -> Iterator[Step]:
        for who in WORKERS:
            yield from self._claim(now, who)
            yield from self._end(now, who)
        yield from self._enqueue(now)
        yield from self._cancel(now)
        yield from self._lead(now)

    # What all share.

    def _free(self, now: State, who: str) -> int:
        """Slots that nobody has, and that nobody who is about to ask could take first (COMING)."""
        held = sum(1 for slot in self.slots if read(now, who, slot))
        coming = sum(1 for name in self.names if read(now, who, name) == ASKS)
        return self.limit - held - coming

    def _hand_over(self, after: State, who: str) -> None:
        """To those who are parked and whose row nobody has."""
        for name in self.names:
            if self._free(after, who) > 0 and read(after, who, name) == PARKED and free(after, who, name):
                write(after, who, name, ADMITTED)
                write(after, who, next(slot for slot in self.slots if not read(after, who, slot)), name)

    def _let_go(self, after: State, who: str, job: str) -> None:
        for slot in self.slots:
            if read(after, who, slot) == job:
                write(after, who, slot, "")

    def _tell(self, after: State) -> None:
        after["told"] = after["told"] or self.tells_of_parked

    # Who claims.

    def _claim(self, now: State, who: str) -> Iterator[Step]:
        at, job = now[f"{who} at"], now[f"{who} job"]
        if at == "":
            for name in self.names:
                if now[name] == ADMITTED and free(now, who, name):
                    after = then(now, **{f"{who} at": "runs", f"{who} job": name, name: RUNS})
                    yield Step("claim.CLAIM_NEXT", f"{who} claims {name}, which has its slot; COMMIT", after)
                if now[name] == ASKS and free(now, who, name):
                    after = then(now, **{f"{who} at": "asks", f"{who} job": name})
                    if not self.counts_after_lock:
                        after[f"{who} counted"] = self._taken(now, who)
                    yield Step("claim.CLAIM_NEXT", f"{who} finds {name}, which has a key", after)
        elif at == "asks" and (not self.claims_lock_key or free(now, who, "key")):
            after = then(now, **{f"{who} at": "has the key"})
            if self.claims_lock_key:
                lock(after, who, "key")
            yield Step("keys.LOCK", f"{who}: BEGIN; has the key", after)
        elif at == "has the key":
            if now[job] == ASKS and free(now, who, job):
                after = lock(then(now, **{f"{who} at": "counts"}), who, job)
                yield Step("admission.STILL_ENQUEUED", f"{who} has {job}", after)
            else:
                after = then(now, **{f"{who} at": "", f"{who} job": "", f"{who} counted": ""})
                yield Step("admission.STILL_ENQUEUED", f"{who}: {job} is somebody else's; COMMIT", end(after, who))
        elif at == "counts":
            taken = self._taken(now, who) if self.counts_after_lock else now[f"{who} counted"]
            after = then(now, **{f"{who} at": "writes", f"{who} counted": taken})
            yield Step("gatekeeper.TAKEN", f"{who} counts: {', '.join(taken) or 'none'} taken", after)
        elif at == "writes":
            yield from self._admit(now, who, job)

    def _taken(self, now: State, who: str) -> tuple[str, ...]:
        return tuple(slot for slot in self.slots if read(now, who, slot))

    def _admit(self, now: State, who: str, job: str) -> Iterator[Step]:
        taken = now[f"{who} counted"]
        slot = next((slot for slot in self.slots if slot not in taken), None)
        after = then(now, **{f"{who} counted": ""})
        if slot is None:
            for name in self.names:  # all that wait without a slot, with it
                if name == job or (now[name] == ASKS and free(now, who, name)):
                    write(after, who, name, PARKED)
            after |= {f"{who} at": "", f"{who} job": ""}
            yield Step("admission.PARK", f"{who} parks {job} and what waits behind it; COMMIT", end(after, who))
        elif self.one_holder and not free(now, who, slot):
            return  # the unique index waits for who has just inserted it
        elif self.one_holder and now[slot]:
            after = end(after | {f"{who} at": "", f"{who} job": ""}, who, commit=False)
            yield Step("gatekeeper.TAKE", f"{who}: the slot is another's; ROLLBACK", after)
        else:
            if self.one_holder or free(now, who, slot):
                write(after, who, slot, job)
            write(after, who, job, RUNS)
            after[f"{who} at"] = "runs"
            yield Step("admission.START", f"{who} starts {job}; COMMIT", end(after, who))

    # Who ends.

    def _end(self, now: State, who: str) -> Iterator[Step]:
        at, job = now[f"{who} at"], now[f"{who} job"]
        if at == "runs" and now["crashes"]:
            after = then(now, crashes=now["crashes"] - 1, **{f"{who} at": "dead"})
            yield Step("", f"{who} is killed while {job} runs", after, fault=True)
        if at == "runs" and (not self.ends_lock_key or free(now, who, "key")):
            after = then(now, **{f"{who} at": "ends"})
            if self.ends_lock_key:
                lock(after, who, "key")
            yield Step("keys.LOCK_HELD", f"{who}: {job} ends: BEGIN; has the key", after)
        elif at == "ends" and free(now, who, job):
            after = write(then(now, **{f"{who} at": "hands over"}), who, job, OVER)
            self._let_go(after, who, job)
            yield Step("finish.FINISH", f"{who} writes the end of {job}", after)
        elif at == "hands over":
            after = then(now, **{f"{who} at": "", f"{who} job": ""})
            if self.wakes_in_same_transaction:
                self._hand_over(after, who)
                yield Step("handover.hand_over", f"{who} wakes the next with its slot; COMMIT", end(after, who))
            else:
                after |= {f"{who} at": "is to wake", f"{who} job": ""}
                yield Step("", f"{who}: COMMIT", end(after, who))
        elif at == "is to wake":
            if now["crashes"]:
                after = then(now, crashes=now["crashes"] - 1, **{f"{who} at": ""})
                yield Step("", f"{who} is killed before it wakes anybody", after, fault=True)
            if free(now, who, "key"):
                after = lock(then(now, **{f"{who} at": ""}), who, "key")
                self._hand_over(after, who)
                yield Step("handover.hand_over", f"{who}: BEGIN; wakes the next; COMMIT", end(after, who))

    # Who brings jobs, and who takes them out of the queue otherwise.

    def _enqueue(self, now: State) -> Iterator[Step]:
        job = self.names[-1]
        if now["caller at"] == "begins":
            waits = any(now[name] == PARKED for name in self.names)
            after = write(then(now, **{"caller at": "is open"}), CALLER, job, PARKED if waits else ASKS)
            yield Step("insert.INSERT", f"caller: BEGIN; enqueues {job}, {'parked' if waits else 'Enqueued'}", after)
        elif now["caller at"] == "is open":
            after = end(then(now, **{"caller at": ""}), CALLER)
            if after[job] == PARKED:
                self._tell(after)
            yield Step("insert.INSERT", "caller: COMMIT", after)

    def _cancel(self, now: State) -> Iterator[Step]:
        at = now["person at"]
        waiting = [name for name in self.cancelled or self.names if now[name] in (*WAITS, RUNS)]
        queued = any(now[name] in IN_QUEUE for name in waiting)
        if at == "" and now["cancels"]:
            if not self.keys_first or not queued:
                after = then(now, cancels=0, **{"person at": "locks jobs"})
                yield Step("keys.LOCK_WAITING", "cancel: BEGIN; no key is asked for", after, fault=True)
            elif free(now, PERSON, "key"):
                after = lock(then(now, cancels=0, **{"person at": "locks jobs"}), PERSON, "key")
                yield Step("keys.LOCK_WAITING", "cancel: BEGIN; has the key", after, fault=True)
        elif at == "locks jobs":
            left = [name for name in waiting if now[LOCK + name] != PERSON]
            if left and free(now, PERSON, left[0]):
                after = lock(then(now), PERSON, left[0])
                yield Step("people.LOCK", f"cancel: has {left[0]}", after)
            elif not left:
                yield Step("people.LOCK", "cancel: has all its jobs", then(now, **{"person at": "writes"}))
        elif at == "writes" and (self.keys_first or free(now, PERSON, "key")):
            has_key = now[LOCK + "key"] == PERSON
            after = then(now, **{"person at": ""})
            for name in waiting:
                if now[name] != RUNS:
                    write(after, PERSON, name, OVER)
                    self._let_go(after, PERSON, name)
            if has_key and self.cancel_passes_on:
                self._hand_over(after, PERSON)
            elif queued and not has_key:
                self._tell(after)
            yield Step("people.CANCEL", "cancel: what waited is Cancelled; COMMIT", end(after, PERSON))
        for name in self.names:
            if now["asides"] and now[name] in IN_QUEUE and free(now, PERSON, name) and at == "":
                after = write(then(now, asides=now["asides"] - 1), PERSON, name, ASIDE)
                self._let_go(after, PERSON, name)
                self._tell(after)
                yield Step(
                    "gates.LET_GO", f"{name} is parked for another reason; COMMIT", end(after, PERSON), fault=True
                )

    # The leader: recovery, and the gates that he was told of.

    def _lead(self, now: State) -> Iterator[Step]:
        at = now["leader at"]
        for who in WORKERS:
            job = now[f"{who} job"]
            if at == "" and now[f"{who} at"] == "dead" and job and free(now, LEADER, "key"):
                after = lock(then(now, **{"leader at": "recovers", "leader's loss": job}), LEADER, "key")
                yield Step(
                    "expire.LOCK_KEYS", "recovery: BEGIN; has the key", after | {f"{who} at": "", f"{who} job": ""}
                )
        if at == "recovers" and free(now, LEADER, now["leader's loss"]):
            after = write(then(now, **{"leader at": "", "leader's loss": ""}), LEADER, now["leader's loss"], OVER)
            self._let_go(after, LEADER, now["leader's loss"])
            self._hand_over(after, LEADER)
            yield Step("expire.EXPIRED", "recovery: the job is lost, the next is woken; COMMIT", end(after, LEADER))
        if now["told"] and now["lost notices"]:
            yield Step("", "the notification is lost", then(now, told=False, **{"lost notices": 0}), fault=True)
        if at == "" and free(now, LEADER, "key"):
            after = then(now, told=False)
            self._hand_over(after, LEADER)
            if now["told"]:
                yield Step(
                    "opening.open_keys", "leader: BEGIN; has the key; wakes who has room; COMMIT", end(after, LEADER)
                )
            elif self.sweeps and any(after[f"writes of {LEADER}"]):
                yield Step("opening.sweep", "the sweep finds room, and wakes the next", end(after, LEADER))

    def broken(self, now: State) -> str | None:
        running = [name for name in self.names if now[name] == RUNS]
        if len(running) > self.limit:
            return f"two jobs of a key run that lets one run: {', '.join(running)}"
        return None

    def stuck(self, now: State) -> str | None:
        if sentence := deadlock(now):
            return sentence
        waits = [name for name in self.names if now[name] in (*WAITS, RUNS)]
        return f"a job waits for ever: its key is free ({waits[0]} is {now[waits[0]]})" if waits else None
