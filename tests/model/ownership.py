"""One job and two who may own it: message, claim, lease, deadline, end, loss, cancel, release, answers that are lost.

Time is relative: leases and deadlines are ticks left, a handler whose deadline is over is killed before the next tick,
recovery may come when the lease is over by GRACE. `w 1` and `w 2` are workers, or, `one_worker`, two slots of one.
Of each: where it is, the token that it names, its claim on the way to the database, and its handler (the token it runs
for, ticks to its deadline).
"""

from collections.abc import Iterator

from tests.model.checker import State, Step, then
from tests.model.owner import LEASE, TRIES, WORKERS, Owned, end_of, enter, fails, log_end


class Ownership(Owned):
    """Who may write and who may run: the workers' side."""

    def steps(self, now: State) -> Iterator[Step]:
        for w in WORKERS:
            yield from self._handler(now, w)
            yield from self._worker(now, w)
        yield from self._housekeeping(now)
        yield from self._clock(now)

    def who(self, w: str) -> str:
        return "1" if self.one_worker else w

    # Time, and what happens at a deadline.

    def _overdue(self, now: State, w: str) -> bool:
        return now[f"{w} runs"] > 0 and now[f"{w} left"] <= 0

    def _dies(self, now: State, w: str) -> bool:
        """Whether somebody ends this handler at its deadline, or because its worker is dead."""
        if now[f"{w} frozen"] == "with all":
            return False
        if now[f"{w} at"] == "dead":
            return self.killable and self.kills_before_take_back
        return self._overdue(now, w) and (self.deadline if self.killable else self.supervisor)

    def _goes_on(self, now: State, w: str) -> bool:
        """Whether the handler does, be its worker frozen or not."""
        return not now[f"{w} frozen"] or (self.killable and now[f"{w} frozen"] == "alone")

    def _clock(self, now: State) -> Iterator[Step]:
        busy = [w for w in WORKERS if now[f"{w} runs"] or now[f"{w} at"] not in ("idle", "dead")]
        if any(self._dies(now, w) for w in WORKERS) or not (busy or now["state"] == "Processing"):
            return
        after = then(now)
        if now["state"] == "Processing":
            after["lease"] = max(-self.grace, now["lease"] - 1)
        for w in WORKERS:
            for name in (f"{w} sent", f"{w} left"):
                after[name] = max(0, now[name] - 1)
            if now[f"{w} renewed"] is not None:
                after[f"{w} renewed"] = max(0, now[f"{w} renewed"] - 1)
        if after != now:
            yield Step("", "time passes", after)

    def _handler(self, now: State, w: str) -> Iterator[Step]:
        if not now[f"{w} runs"]:
            return
        if self._dies(now, w) and not self.killable:
            yield Step(
                "workers.supervision.supervisor.Supervisor", f"the supervisor of {w} kills it", self._died(now, w)
            )
            return
        if self._dies(now, w):
            after = self._ended(now, w, "killed")
            yield Step("workers.isolation.watchdog.Watchdog", f"the handler of {w} is killed", after)
        alive = now[f"{w} at"] in ("runs", "gave it back") and self._goes_on(now, w)
        if alive and not self._overdue(now, w):
            for out in ("Succeeded", "Failed"):
                yield Step("", f"the handler of {w}: {out}", self._ended(now, w, out))

    def _ended(self, now: State, w: str, out: str) -> State:
        after = then(now, **{f"{w} runs": 0, f"{w} left": 0})
        if now[f"{w} at"] == "gave it back":
            return self._idle(after, w)
        return after | {f"{w} out": out} if now[f"{w} at"] == "runs" else after

    def _idle(self, after: State, w: str) -> State:
        after |= {f"{w} at": "idle", f"{w} token": 0, f"{w} sent": 0, f"{w} out": "", f"{w} renewed": None}
        return after

    def _died(self, now: State, w: str) -> State:
        after = self._idle(then(now), w)
        after |= {f"{w} at": "dead", f"{w} frozen": ""}
        if not self.killable:
            after |= {f"{w} runs": 0, f"{w} left": 0}
        if now[f"{w} claim"] and now[f"{w} claim"][0] == "answered":
            after[f"{w} claim"] = None
        if now[f"{w} at"] in ("has a message", "claims"):
            after["messages"] = tuple(sorted([*now["messages"], now[f"{w} token"]]))
        return after

    # A worker, from the message to the end.

    def _worker(self, now: State, w: str) -> Iterator[Step]:
        at, claim = now[f"{w} at"], now[f"{w} claim"]
        if claim and claim[0] == "sent":
            yield self._database_claims(now, w, claim[1])
        if now[f"{w} frozen"]:
            yield Step("", f"{w} thaws", then(now, **{f"{w} frozen": ""}))
            return
        if at in ("has a message", "claims", "runs"):
            if now["crashes"]:
                yield Step("", f"{w} is killed", then(self._died(now, w), crashes=0), fault=True)
            if now["freezes"]:
                after = then(now, freezes=0, **{f"{w} frozen": "alone"})
                yield Step("", f"{w} is frozen, a child of it is not", after, fault=True)
            if now["machines"]:
                after = then(now, machines=0, **{f"{w} frozen": "with all"})
                yield Step("", f"the machine of {w} is frozen", after, fault=True)
        if at == "dead":
            if not (now[f"{w} runs"] and self.kills_before_take_back):
                after = self._taken_back(self._idle(then(now), w), w)
                yield Step("take_back.TAKE_BACK", f"{w} is dead, with all it had: its job is taken back", after)
        elif at == "idle":
            yield from self._receive(now, w)
            yield from self._stray(now, w)
        elif at == "has a message":
            after = then(now, **{f"{w} at": "claims", f"{w} sent": LEASE, f"{w} claim": ("sent", now[f"{w} token"])})
            yield Step("workers.ledger.ClaimLedger", f"{w} sends its claim of token {now[f'{w} token']}", after)
        elif at == "claims":
            yield from self._answered(now, w)
            yield from self._stray(now, w)
        elif at == "runs":
            yield from self._running(now, w)

    def _receive(self, now: State, w: str) -> Iterator[Step]:
        for token in sorted(set(now["messages"])) if not now[f"{w} claim"] else ():
            left = list(now["messages"])
            left.remove(token)
            after = then(now, **{f"{w} at": "has a message", f"{w} token": token})
            yield Step("", f"{w} receives token {token}", after | {"messages": tuple(left)})
            if now["duplicates"]:
                yield Step("", f"{w} receives token {token}, the broker has it still", after | {"duplicates": 0}, True)

    def _database_claims(self, now: State, w: str, token: int) -> Step:
        takes = now["state"] == "Enqueued" or not self.claim_tests_state
        takes = takes and (now["token"] == token or not self.claim_tests_token)
        waits = now[f"{w} at"] == "claims"
        after = then(now, **{f"{w} claim": ("answered", now["token"] if takes else 0) if waits else None})
        if takes:
            enter(after, "Processing", new_token=self.new_token)
            after |= {"owner": self.who(w), "lease": LEASE}
        return Step("claim.CLAIM_BY_ID", f"database: {w} {'owns it' if takes else 'gets nothing'}; COMMIT", after)

    def _answered(self, now: State, w: str) -> Iterator[Step]:
        claim = now[f"{w} claim"]
        if now["lost_answers"] and claim:
            after = self._idle(then(now, lost_answers=0), w)
            after |= {f"{w} claim": claim if claim[0] == "sent" else None}
            after["messages"] = tuple(sorted([*now["messages"], now[f"{w} token"]]))
            yield Step("workers.leases.LeaseBook.abandon", f"{w} loses the connection at its COMMIT", after, fault=True)
        if claim and claim[0] == "answered":
            after = then(now, **{f"{w} claim": None})
            left = now[f"{w} sent"] if self.deadline_from_send else LEASE
            if claim[1] and left > 0:
                after |= {f"{w} at": "runs", f"{w} runs": claim[1], f"{w} token": claim[1], f"{w} left": left}
                after[f"{w} sent"] = 0
                yield Step("workers.leases.LeaseBook.enter", f"{w} reads it: its handler begins", after)
            else:
                why = "too late" if claim[1] else "nothing was claimed"
                yield Step("workers.leases.LeaseBook.abandon", f"{w} reads it: {why}", self._idle(after, w))

    def _stray(self, now: State, w: str) -> Iterator[Step]:
        """By the heartbeat of a worker: what it should own, and has in no slot."""
        slots = [s for s in WORKERS if self.who(s) == self.who(w)]
        in_book = any(now[f"{s} at"] in ("runs", "gave it back") and now[f"{s} token"] == now["token"] for s in slots)
        in_flight = any(now[f"{s} claim"] and now[f"{s} at"] == "claims" for s in slots)
        mine = now["state"] == "Processing" and now["owner"] == self.who(w)
        if (
            self.strays
            and mine
            and not in_book
            and not (in_flight and self.strays_heed_flight)
            and now["next"] <= TRIES + 2
        ):
            after = end_of(then(now), "released", now["token"], model=self)
            yield Step("renew.strays", f"{w} gives back what it has in no slot, uncharged", after)

    def _fence(self, now: State, w: str) -> bool:
        return (
            (now["state"] == "Processing" or not self.fence_tests_state)
            and (now["token"] == now[f"{w} token"] or not self.fence_tests_token)
            and (now["owner"] == self.who(w) or not self.fence_tests_worker)
        )

    def _running(self, now: State, w: str) -> Iterator[Step]:
        out, token = now[f"{w} out"], now[f"{w} token"]
        yield from self._renewal(now, w, out)
        if out == "":
            asked = now["cancel"] and now["token"] == token and now["owner"] == self.who(w)
            if asked and self.killable:
                yield Step("renew.cancels", f"{w} hears of the cancel", self._ended(now, w, "Cancelled"))
            if now["stops"] and self.kills_before_release and self.killable:
                after = then(self._ended(now, w, "released"), stops=0)
                yield Step("workers.release", f"{w} is told to stop, and ends its handler", after, fault=True)
            elif now["stops"] and not self.kills_before_release:
                after = then(now, stops=0, **{f"{w} at": "gave it back"})
                if self._fence(now, w):
                    end_of(after, "released", token, model=self)
                yield Step("settle.release", f"{w} is told to stop, and gives its job back", after, fault=True)
        elif out == "killed":
            yield Step("workers.leases.LeaseBook", f"{w} leaves its job to recovery", self._idle(then(now), w))
        else:
            yield from self._settle(now, w, out, token)

    def _settle(self, now: State, w: str, out: str, token: int) -> Iterator[Step]:
        after = then(now)
        if self._fence(now, w):
            end_of(after, out, token, model=self)
            if now["lost_answers"]:
                yield Step("settle.settle", f"database: {w} ends it {out}; the answer is lost", after | {
                    "lost_answers": 0}, fault=True)  # fmt: skip
            yield Step("settle.settle", f"database: {w} ends it {out}", self._idle(after, w))
            return
        mine = [what for ended, what in now["ends"] if ended == token and what != "lost"]
        if mine and not self.own_end_is_known:
            after["wrong"] = "an end that was written was taken for lost"
        yield Step(
            "settle.OWN_END", f"database: the end of {w} is {'known' if mine else 'too late'}", self._idle(after, w)
        )

    def _renewal(self, now: State, w: str, out: str) -> Iterator[Step]:
        renewable = out == "" or (out == "killed" and not self.drops_the_dead)
        if now[f"{w} renewed"] is not None and out == "":
            left = now[f"{w} renewed"] if self.deadline_from_send else LEASE
            after = then(now, **{f"{w} left": left, f"{w} renewed": None})
            yield Step("workers.leases.LeaseBook.extend", f"{w} reads that its lease is renewed", after)
        elif renewable and now[f"{w} left"] < LEASE and now[f"{w} renewed"] is None:
            if self._fence(now, w):
                after = then(now, lease=LEASE, **{f"{w} renewed": LEASE})
                if out == "killed":
                    after["wrong"] = "a dead handler's job is Processing for ever"
                yield Step("renew.RENEW", f"database: the lease of {w} is renewed", after)
            elif self.killable:
                yield Step("renew.RENEW", f"{w} hears that it has lost its job", self._idle(self._ended(now, w, ""), w))

    def _taken_back(self, after: State, w: str) -> State:
        if after["state"] == "Processing" and after["owner"] == self.who(w):
            log_end(after, after["token"], "lost")
            fails(after, lost=True, model=self)
        return after
