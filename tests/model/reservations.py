"""Jobs that need two gates, a key and the limit of their type: all of a job's gates, or none.

Gates "K" and "T" let one run each. At first a job that needs only K has K, one that needs only T has T; `at K` and
`at T` wait, each at its gate, and need both. A slot is held by the name of its holder.
"""

from collections.abc import Iterator

from tests.model.checker import Model, State, Step, then
from tests.model.transactions import database, deadlock, end, free, lock, read, write

GATES = ("K", "T")
LEADER = "leader"


class Reservations(Model):
    """Who frees a slot has its gate locked already, and takes of the other what nobody has locked."""

    all_or_none = True  # a job that one of its gates stops holds no slot of another
    skips_locked = True  # who hands a slot over does not wait for the other gates of the woken one
    tells_the_leader = True  # where a gate was locked elsewhere

    def begin(self) -> State:
        self.jobs = ("at K", "at T")
        rows: State = dict.fromkeys(GATES, "") | {"slot K": "first K", "slot T": "first T"}
        rows |= dict.fromkeys(self.jobs, "parked")
        who = ["first K", "first T", *self.jobs, LEADER]
        places = {"first K at": "runs", "first T at": "runs", "at K at": "", "at T at": "", "leader at": ""}
        return {**rows, **database(rows, who), **places, "K at": ("at K",), "T at": ("at T",), "told": False}

    def steps(self, now: State) -> Iterator[Step]:
        for gate in GATES:
            yield from self._end(now, f"first {gate}", (gate,))
        for job in self.jobs:
            if now[job] == "admitted" and free(now, job, job):
                after = then(now, **{job: "Processing", f"{job} at": "runs"})
                yield Step("claim.CLAIM_NEXT", f"{job} is started; COMMIT", after)
            yield from self._end(now, job, GATES)
        yield from self._lead(now)

    def _end(self, now: State, who: str, needs: tuple[str, ...]) -> Iterator[Step]:
        at = now[f"{who} at"]
        if at in ("runs", "K"):
            gate = needs[0] if at == "runs" else "T"  # one after the other, in the order of all
            if free(now, who, gate):
                last = gate == needs[-1]
                after = lock(then(now, **{f"{who} at": "writes" if last else gate}), who, gate)
                yield Step("keys.LOCK_HELD", f"{who} ends: has {gate}", after)
        elif at == "writes":
            after = then(now, **{f"{who} at": "hands over"})
            for gate in needs:
                write(after, who, f"slot {gate}", "")
            if who in self.jobs:
                write(after, who, who, "over")
            yield Step("finish.FINISH", f"{who} frees what it had", after)
        elif at == "hands over":
            after = then(now, **{f"{who} at": "commits"})
            if self._hand_over(after, who, needs, waits=not self.skips_locked):
                yield Step("handover.hand_over", f"{who} wakes whom it can", after)
        elif at == "commits":
            yield Step("", f"{who}: COMMIT", end(then(now, **{f"{who} at": ""}), who))

    def _hand_over(self, after: State, who: str, freed: tuple[str, ...], *, waits: bool) -> bool:
        """False where it has to wait for a gate."""
        for gate in freed:
            for job in [name for name in after[f"{gate} at"] if read(after, who, name) == "parked"]:
                if not free(after, who, job):
                    continue
                locked_elsewhere = [other for other in GATES if not free(after, who, other)]
                if locked_elsewhere and waits:
                    return False
                if locked_elsewhere:
                    after["told"] = after["told"] or self.tells_the_leader
                    continue
                lock(after, who, *GATES)
                self._ask(after, who, job, gate)
        return True

    def _ask(self, after: State, who: str, job: str, waits_at: str) -> None:
        """All of its gates; where one is full it waits there, with nothing in its hand."""
        full = [gate for gate in GATES if read(after, who, f"slot {gate}") not in ("", job)]
        take = GATES if not full else () if self.all_or_none else [gate for gate in GATES if gate not in full]
        for gate in take:
            write(after, who, f"slot {gate}", job)
        if not full:
            write(after, who, job, "admitted")
        elif full[0] != waits_at:
            after[f"{waits_at} at"] = tuple(name for name in after[f"{waits_at} at"] if name != job)
            after[f"{full[0]} at"] = (*after[f"{full[0]} at"], job)

    def _lead(self, now: State) -> Iterator[Step]:
        at = now["leader at"]
        if at == "" and now["told"]:
            yield Step("handover.tell", "the leader hears of both gates", then(now, told=False, **{"leader at": "K"}))
        elif at in GATES and free(now, LEADER, at):
            after = lock(then(now, **{"leader at": "T" if at == "K" else "opens"}), LEADER, at)
            yield Step("handover.open_in_order", f"leader has {at}", after)
        elif at == "opens":
            after = then(now, **{"leader at": ""})
            self._hand_over(after, LEADER, GATES, waits=False)
            yield Step("handover.open_in_order", "leader wakes whom it can; COMMIT", end(after, LEADER))

    def broken(self, now: State) -> str | None:
        if sum(now[job] == "Processing" for job in self.jobs) > 1:
            return "two jobs of a key run that lets one run"
        return None

    def stuck(self, now: State) -> str | None:
        if sentence := deadlock(now):
            return sentence
        waits = [job for job in self.jobs if now[job] != "over"]
        return f"two jobs wait for each other for ever, or for nobody: {', '.join(waits)}" if waits else None
