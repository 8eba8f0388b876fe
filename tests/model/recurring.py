"""A recurring job: two who lead, one of them maybe frozen between reading and writing, and a person who edits.

The row is (version, next instant, enabled); `fired` are the jobs made, each (instant, version that it was made of).
"""

from collections.abc import Iterator

from tests.model.checker import Model, State, Step, then
from tests.model.transactions import database, deadlock, end, free, read, write

LEADERS = ("leader 1", "leader 2")
LAST = 2  # instants, all of which are due
JAMMED = 3  # refusals of one instant, without an end to come


class Recurring(Model):
    """Read, then fire: the write is of what was read, or it is not done."""

    tests_version = True
    tests_enabled = True  # together with the version, which a person's edit raises
    one_job_an_instant = True
    conflict_goes_on = True  # a duplicate instant inserts nothing, else it is an error
    in_one_transaction = True
    edit = ""  # payload, disable, or back: a save sets the next instant back

    def begin(self) -> State:
        rows = {"row": (1, 1, True), "fired": ()}
        places = {f"{who} {what}": None for who in LEADERS for what in ("at", "read")}
        more = {"edits": bool(self.edit), "crashes": self.crashes, "wrong": None, "refused": 0}
        return {**rows, **database(rows, [*LEADERS, "person"]), **places, **more}

    def steps(self, now: State) -> Iterator[Step]:
        for who in LEADERS:
            yield from self._lead(now, who)
        version, instant, _enabled = now["row"]
        if now["edits"] and free(now, "person", "row") and (self.edit != "back" or instant > 1):
            to = instant - 1 if self.edit == "back" else instant
            after = then(now, edits=False, row=(version + 1, to, self.edit != "disable"))
            yield Step("", f"a person saves ({self.edit}); COMMIT", after, fault=True)

    def _lead(self, now: State, who: str) -> Iterator[Step]:
        at, seen = now[f"{who} at"], now[f"{who} read"]
        _version, instant, enabled = now["row"]
        if at is None and enabled and instant <= LAST:
            after = then(now, **{f"{who} at": "takes", f"{who} read": now["row"]})
            yield Step("fire.DUE", f"{who} reads {now['row']}; COMMIT (and may freeze)", after)
        elif at == "takes" and free(now, who, "row"):
            newest, _instant, enabled = read(now, who, "row")
            if (self.tests_version and newest != seen[0]) or (self.tests_enabled and not enabled):
                after = end(then(now, **{f"{who} at": None, f"{who} read": None}), who)
                yield Step("fire.TAKE", f"{who}: it is not as it was read; COMMIT", after)
                return
            after = write(then(now, **{f"{who} at": "inserts"}), who, "row", (newest + 1, seen[1] + 1, enabled))
            if not self.in_one_transaction:
                end(after, who)
            yield Step("fire.TAKE", f"{who}: the next instant is {seen[1] + 1}", after)
        elif at == "inserts" and (free(now, who, "fired") or not self.one_job_an_instant):
            yield from self._insert(now, who, seen)

    def _insert(self, now: State, who: str, seen: tuple[int, int, bool]) -> Iterator[Step]:
        version, instant, _enabled = seen
        done = then(now, **{f"{who} at": None, f"{who} read": None})
        if now["crashes"]:
            yield Step("", f"{who} is killed", end(done | {"crashes": 0}, who, commit=False), fault=True)
        if self.one_job_an_instant and any(fired == instant for fired, _version in now["fired"]):
            after = end(dict(done), who, commit=self.conflict_goes_on)
            if not self.conflict_goes_on:
                after["refused"] = min(JAMMED, now["refused"] + 1)
            yield Step("insert.INSERT", f"{who}: instant {instant} is there already", after)
            return
        after = dict(done)
        if not now["row"][2]:
            after["wrong"] = f"an instant was fired after its schedule was disabled: {instant}"
        elif self.edit == "payload" and version == 1 and not now["edits"] and self._edited_since(now, who, version):
            after["wrong"] = f"an instant was fired with what had been edited away: {instant}"
        write(after, who, "fired", tuple(sorted([*now["fired"], (instant, version)])))
        yield Step("insert.INSERT", f"{who}: the job of instant {instant}; COMMIT", end(after, who))

    @staticmethod
    def _edited_since(now: State, who: str, version: int) -> bool:
        """Whether what is committed is a person's: each firing and each edit raises the version by one."""
        committed = now["row"][0]
        return committed - version > len(now["fired"])

    def broken(self, now: State) -> str | None:
        instants = [instant for instant, _version in now["fired"]]
        if len(instants) != len(set(instants)):
            return f"an instant was fired twice: {instants}"
        if now["refused"] == JAMMED:
            return "an instant is refused again and again, and the next is never fired"
        return now["wrong"]

    def stuck(self, now: State) -> str | None:
        if sentence := deadlock(now):
            return sentence
        missing = set(range(1, LAST + 1)) - {instant for instant, _version in now["fired"]}
        if now["row"][2] and missing:
            return f"an instant was never fired: {sorted(missing)}"
        return None
