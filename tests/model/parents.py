"""Continuations: a child waits for parents that workers settle; it comes in a caller's transaction, which locks nobody.

The parents "A" and "B" run. The child is "parked", "Enqueued", "Cancelled" or "Succeeded", None before it is committed.
A grandchild waits for the child.
"""

from collections.abc import Iterator

from tests.model.checker import Model, State, Step, then
from tests.model.transactions import database, deadlock, end, free, lock, read, write

CALLER, LISTENER = "caller", "listener"
BAD, FINAL = ("Failed", "Cancelled"), ("Succeeded", "Failed", "Cancelled")


class Parents(Model):
    """The ends of parents, and whoever looks at a child after its commit."""

    parents = 2
    comes_late = True  # it is enqueued while they run, else it is there from the first
    may_fail = False
    grandchild = False
    look_waits_for_parents = True  # FOR SHARE
    locks_children = True  # before their parents are counted
    counts_in_later_statement = True
    opens_in_same_transaction = True
    cascades = True
    lost_notices = 0
    sweeps = False

    def begin(self) -> State:
        self.names = tuple("AB"[: self.parents])
        rows: State = dict.fromkeys(self.names, "Processing")
        rows |= {"child": None if self.comes_late else "parked", "grandchild": "parked" if self.grandchild else None}
        places = {f"{name} at": "runs" for name in self.names} | {f"{name} saw": None for name in self.names}
        return {
            **rows,
            **database(rows, [*self.names, CALLER, LISTENER]),
            **places,
            "caller at": "begins" if self.comes_late else "",
            "listener at": "",
            "told": False,
            "crashes": self.crashes,
            "lost notices": self.lost_notices,
        }

    def steps(self, now: State) -> Iterator[Step]:
        for name in self.names:
            yield from self._settle(now, name)
        yield from self._enqueue(now)
        yield from self._look(now)
        if now["child"] == "Enqueued" and free(now, LISTENER, "child"):
            after = then(now, child="Succeeded")
            after["grandchild"] = "Enqueued" if now["grandchild"] == "parked" else now["grandchild"]
            yield Step("", "the child runs, and its own child is opened", after)
        if now["grandchild"] == "Enqueued":
            yield Step("", "the grandchild runs", then(now, grandchild="Succeeded"))

    def _decision(self, now: State, who: str) -> str | None:
        """What the states of its parents make of the child now."""
        states = [read(now, who, name) for name in self.names]
        if any(state in BAD for state in states):
            return "Cancelled"
        return "Enqueued" if all(state == "Succeeded" for state in states) else None

    def _decide(self, after: State, who: str, decision: str | None) -> None:
        if decision is None or read(after, who, "child") != "parked":
            return
        write(after, who, "child", decision)
        if decision == "Cancelled" and self.grandchild and self.cascades:
            write(after, who, "grandchild", "Cancelled")

    def _settle(self, now: State, name: str) -> Iterator[Step]:
        at, saw = now[f"{name} at"], f"{name} saw"
        if at == "runs":
            for to in ("Succeeded", "Failed") if self.may_fail else ("Succeeded",):
                if free(now, name, name):
                    place = "looks" if self.opens_in_same_transaction else "has ended"
                    after = write(then(now, **{f"{name} at": place}), name, name, to)
                    if not self.counts_in_later_statement:
                        after[saw] = (now["child"], self._decision(after, name))
                    if not self.opens_in_same_transaction:
                        end(after, name)
                    yield Step("finish.FINISH", f"{name} ends {to}", after)
        elif at == "has ended":
            if now["crashes"]:
                yield Step("", "who ended it is killed", then(now, crashes=0, **{f"{name} at": ""}), fault=True)
            yield Step("parents.after_ends", f"{name}: BEGIN again", then(now, **{f"{name} at": "looks"}))
        elif at == "looks":
            child = now["child"] if self.counts_in_later_statement else now[saw][0]
            if child != "parked":
                after = then(now, **{f"{name} at": "writes", saw: None})
                yield Step("parents.CHILDREN", f"{name}: no child waits", after)
            elif not self.locks_children:
                yield Step("parents.CHILDREN", f"{name}: sees its child", then(now, **{f"{name} at": "counts"}))
            elif free(now, name, "child"):
                after = lock(then(now, **{f"{name} at": "counts"}), name, "child")
                yield Step("parents.LOCK_CHILDREN", f"{name}: has its child", after)
        elif at == "counts":
            decision = self._decision(now, name) if self.counts_in_later_statement else now[saw][1]
            after = then(now, **{f"{name} at": "writes", saw: decision})
            yield Step("parents.UNFINISHED", f"{name}: the child is to be {decision or 'left'}", after)
        elif at == "writes" and (now[saw] is None or free(now, name, "child")):
            after = then(now, **{f"{name} at": "", saw: None})
            self._decide(after, name, now[saw])
            yield Step("parents.FALL", f"{name}: writes it; COMMIT", end(after, name))

    def _enqueue(self, now: State) -> Iterator[Step]:
        if now["caller at"] == "begins":
            after = write(then(now, **{"caller at": "is open"}), CALLER, "child", "parked")
            yield Step("parents.DEPEND", "caller: BEGIN; enqueues the child, parked", after)
        elif now["caller at"] == "is open":
            after = end(then(now, told=True, **{"caller at": ""}), CALLER)
            yield Step("insert.insert_new", "caller: COMMIT; who listens is told", after)

    def _look(self, now: State) -> Iterator[Step]:
        at = now["listener at"]
        if now["told"] and now["lost notices"]:
            yield Step("", "the notification is lost", then(now, told=False, **{"lost notices": 0}), fault=True)
        forgotten = self.sweeps and now["child"] == "parked" and self._decision(now, LISTENER) is not None
        if at == "" and now["told"]:
            yield Step("parents.check_parents", "somebody hears of it", self._begun(now, told=False))
        elif at == "" and forgotten and now["caller at"] == "":
            yield Step("forgotten.open_parents", "the sweep finds the child", self._begun(now))
        elif at == "locks":
            if not self.look_waits_for_parents:
                yield Step("parents.LOCK_PARENTS", "look: locks nobody", then(now, **{"listener at": "children"}))
            elif all(free(now, LISTENER, name, shared=True) for name in self.names):
                after = lock(then(now, **{"listener at": "children"}), LISTENER, *self.names, shared=True)
                yield Step("parents.LOCK_PARENTS", "look: BEGIN; has the parents FOR SHARE", after)
        elif at == "children" and free(now, LISTENER, "child"):
            after = lock(then(now, **{"listener at": "decides"}), LISTENER, "child")
            yield Step("parents.LOCK_CHILDREN", "look: has the child", after)
        elif at == "decides":
            decision = self._decision(now, LISTENER)
            after = then(now, **{"listener at": ""})
            self._decide(after, LISTENER, decision)
            yield Step("parents.UNFINISHED", f"look: the child is {decision or 'left'}; COMMIT", end(after, LISTENER))

    @staticmethod
    def _begun(now: State, **changes: object) -> State:
        return then(now, **changes, **{"listener at": "locks"})

    def broken(self, now: State) -> str | None:
        if now["child"] in ("Enqueued", "Succeeded") and any(now[name] in BAD for name in self.names):
            return "a child runs although its parent did not"
        return None

    def stuck(self, now: State) -> str | None:
        if sentence := deadlock(now):
            return sentence
        if now["child"] not in FINAL:
            return f"a child waits for ever: its parents have ended (it is {now['child']})"
        if now["grandchild"] == "parked":
            return f"a child waits for ever: its parents have ended (its parent, a child itself, is {now['child']})"
        return None
