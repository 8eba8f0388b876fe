"""The rate of a type: so many starts in any window, whoever starts them, and whoever is parked is let through in time.

A window is PARTS parts, a part is two ticks of the clock; the row keeps (part, starts). `starts` are the ticks at which
something did start: the promise is about them. Two jobs are Enqueued, one more is parked; whoever leads wakes who is
parked, and a worker that is free claims it, at once or long after. It pays there, or is parked again.
"""

from collections.abc import Iterator

from tests.model.checker import Model, State, Step, then
from tests.model.transactions import database, deadlock, end, free, lock, write

WORKERS = ("worker 1", "worker 2")
LEADER = "leader"
JOBS = ("job 1", "job 2", "job 3")
QUEUED = ("Enqueued", "woken")
PARTS, PART = 2, 2
WINDOW = PARTS * PART
LAST = 11  # the clock's end


class Rates(Model):
    """The row of the rate: locked, counted, paid."""

    allowed = 1
    locked = True
    counts_after_lock = True
    is_paid = True  # what starts is written into the row
    counts_whole_parts = True  # a start counts until its part has left the window whole, else until the part begins to
    leader_looks = True  # again and again, whoever is told or not
    asks_woken = True  # a woken one is asked for its rate where it starts, else it has paid when it was woken
    counts_woken = True  # who wakes leaves room for those that are woken and have not started
    cancels = 0  # of woken ones

    def begin(self) -> State:
        rows: State = {"rate": (), "job 1": "Enqueued", "job 2": "Enqueued", "job 3": "parked"}
        places = {f"{who} {what}": None for who in (*WORKERS, LEADER) for what in ("at", "job", "read")}
        return {**rows, **database(rows, [*WORKERS, LEADER]), **places, "tick": 0, "starts": (), "cancelled": 0}

    def steps(self, now: State) -> Iterator[Step]:
        for who in WORKERS:
            yield from self._claim(now, who)
        yield from self._open(now)
        for job in JOBS:
            if now[job] == "woken" and now["cancelled"] < self.cancels and free(now, job, job):
                after = then(now, cancelled=now["cancelled"] + 1, **{job: "over"})
                yield Step("people.cancel", f"{job} is cancelled", after)
        waits = any(now[job] != "over" for job in JOBS)
        at_work = any(now[f"{who} at"] for who in (*WORKERS, LEADER))
        if now["tick"] < LAST and waits and not at_work:
            kept = tuple(tick for tick in now["starts"] if tick > now["tick"] + 1 - 2 * WINDOW)
            yield Step("", "time passes", then(now, tick=now["tick"] + 1, starts=kept))

    def _left(self, now: State, spent: tuple[tuple[int, int], ...]) -> int:
        here = now["tick"] // PART
        first = here - PARTS if self.counts_whole_parts else here - PARTS + 1
        return self.allowed - sum(count for part, count in spent if part >= first)

    def _room(self, now: State) -> int:
        """How many more may be woken."""
        return self._left(now, now["rate"]) - (self._woken(now) if self.counts_woken else 0)

    def _woken(self, now: State) -> int:
        return sum(now[job] == "woken" for job in JOBS)

    def _pay(self, now: State, spent: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        here = now["tick"] // PART
        counts = {part: count for part, count in spent if part >= here - PARTS}
        counts[here] = counts.get(here, 0) + 1
        return tuple(sorted(counts.items()))

    def _claim(self, now: State, who: str) -> Iterator[Step]:
        at, job = now[f"{who} at"], now[f"{who} job"]
        if at is None:
            for name in JOBS:
                if now[name] == "woken" and not self.asks_woken and free(now, who, name):
                    after = then(now, starts=(*now["starts"], now["tick"]), **{name: "over"})
                    yield Step("claim.CLAIM_NEXT", f"{who} claims {name}, whose start is paid", after)
                elif now[name] in QUEUED and free(now, who, name):
                    after = then(now, **{f"{who} at": "locks", f"{who} job": name})
                    if not self.counts_after_lock:
                        after[f"{who} read"] = now["rate"]
                    yield Step("claim.CLAIM_NEXT", f"{who} finds {name}, whose type has a rate", after)
        elif at == "locks" and (not self.locked or free(now, who, "rate")):
            after = then(now, **{f"{who} at": "asks"})
            if self.locked:
                lock(after, who, "rate")
            yield Step("gatekeeper.RATES", f"{who}: BEGIN; has the rate", after)
        elif at == "asks":
            mine = now[job] in QUEUED and free(now, who, job)
            spent = now["rate"] if self.counts_after_lock else now[f"{who} read"]
            place = "writes" if mine else None
            after = then(now, **{f"{who} at": place, f"{who} read": spent if mine else None})
            if mine:
                lock(after, who, job)
            else:
                after = end(then(after, **{f"{who} job": None}), who)
            yield Step("admission.STILL_ENQUEUED", f"{who}: {job} is {'here' if mine else 'not'}; sees {spent}", after)
        elif at == "writes" and free(now, who, "rate"):
            spent = now[f"{who} read"]
            after = then(now, **{f"{who} at": None, f"{who} job": None, f"{who} read": None})
            if self._left(now, spent) > 0:
                if self.is_paid:
                    write(after, who, "rate", self._pay(now, spent))
                write(after, who, job, "over")
                after["starts"] = (*now["starts"], now["tick"])
                yield Step("gatekeeper.SPEND", f"{who} starts {job}; COMMIT", end(after, who))
            else:
                write(after, who, job, "parked")
                yield Step("admission.PARK", f"{who} parks {job}; COMMIT", end(after, who))

    def _open(self, now: State) -> Iterator[Step]:
        at = now[f"{LEADER} at"]
        parked = [job for job in JOBS if now[job] == "parked"]
        if at is None and parked and self.leader_looks and self._room(now) > 0 and free(now, LEADER, "rate"):
            after = lock(then(now, **{f"{LEADER} at": "opens"}), LEADER, "rate")
            yield Step("admission.open_rate", "leader: BEGIN; has the rate", after)
        elif at == "opens":
            after = then(now, **{f"{LEADER} at": None})
            for name in parked:
                if self._room(now) > 0 and free(after, LEADER, name):
                    if not self.asks_woken:
                        write(after, LEADER, "rate", self._pay(after, after["rate"]))
                    write(after, LEADER, name, "woken")
                    break
            yield Step("admission.WAITING_FOR_RATE", "leader: wakes the next; COMMIT", end(after, LEADER))

    def broken(self, now: State) -> str | None:
        for tick in now["starts"]:
            within = [other for other in now["starts"] if tick <= other < tick + WINDOW]
            if len(within) > self.allowed:
                return f"more started in a window than its rate allows: at the ticks {within}"
        if self._woken(now) > self.allowed:
            return f"more are woken than may start: {self._woken(now)}"
        return None

    def stuck(self, now: State) -> str | None:
        if sentence := deadlock(now):
            return sentence
        waits = [job for job in JOBS if now[job] != "over"]
        if waits and self._left(now, now["rate"]) > 0:
            return f"a job waits for a rate that has room: {waits[0]}"
        return None
