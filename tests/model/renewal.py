"""The renewal of leases beside others' locks: a worker runs "A" and "B" and renews both in one statement.

Leases are ticks left; at none the handler is dead, a tick later recovery may come. Somebody holds A's row for longer
than a lease lasts: A can't be helped, but that is no reason to lose B, nor to take A for lost while it is not.
"""

from collections.abc import Iterator

from tests.model.checker import Model, State, Step, then

LEASE, GRACE = 3, 1


class Renewal(Model):
    """One statement for all leases; what it could not lock it reads."""

    skips_locked = True
    reads_what_it_skipped = True  # still mine: tried again; else it is lost

    def begin(self) -> State:
        return {"A": LEASE, "B": LEASE, "held": 0, "may be held": True, "due": False, "wrong": None}

    def steps(self, now: State) -> Iterator[Step]:
        if now["may be held"]:
            after = then(now, held=LEASE + 2, **{"may be held": False})
            yield Step("", "somebody locks the row of A", after, fault=True)
        may = now["due"] and (self.skips_locked or not now["held"])
        if may:
            after = then(now, due=False, B=LEASE)
            if not now["held"]:
                after["A"] = LEASE
            elif not self.reads_what_it_skipped:
                after["wrong"] = "a live owner was told that it had lost its job"
            yield Step("renew.STILL_MINE" if now["held"] else "renew.RENEW", "heartbeat: renews what it can", after)
        else:
            after = then(now, held=max(0, now["held"] - 1), due=True)
            after |= {job: max(-GRACE - 1, now[job] - 1) for job in "AB"}
            yield Step("", "time passes" + (", the row of A is free" if now["held"] == 1 else ""), after)
        if now["B"] <= -GRACE:
            after = then(now, wrong="a job was declared lost because of another's row: its worker is well")
            yield Step("expire.EXPIRED", "recovery: B is lost", after)

    def broken(self, now: State) -> str | None:
        return now["wrong"]

    def stuck(self, now: State) -> str | None:
        return None
