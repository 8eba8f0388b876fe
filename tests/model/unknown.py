"""A job of a type that no worker of its queue has: parked, brought back, given up after a grace that somebody watched.

One worker serves the queue without the type (`other`), one has the type and comes and goes (`knows`); both may be away
for a night, and so may whoever leads. `watched` is the book's row: for how many ticks, and how long ago it was seen.
`missing` is the truth: ticks for which somebody led, the queue was served and the type was not, without a break.

Whoever comes stays until the leader has looked once: what is shorter than two looks apart nobody knows of.
"""

from collections.abc import Iterator

from tests.model.checker import Model, State, Step, then

GRACE, UNWATCHED = 2, 1
LAST, EARLY = 8, 2  # the clock's end, and until when anybody comes or goes: there is time for everything after that


class Unknown(Model):
    """The leader's looks, each at what is committed: the gate is no row."""

    looks_again = True  # the gate is a question, asked again and again
    looks_at_workers = True  # once more before a job is given up
    begins_anew = True  # after a time in which nobody looked; such a row counts for nothing
    forgets = True  # the row goes when a worker has the type
    counts_own_wait = True  # the job itself has waited for so long since it was last enqueued
    comings = 1
    goings = 0
    nights = 0
    requeues = 0

    def begin(self) -> State:
        here = {"other": True, "knows": False, "leads": True}
        clock = {"watched": None, "unseen": 0, "waited": 0, "missing": 0, "looked": False}
        faults = {"comings": self.comings, "goings": self.goings, "nights": self.nights, "requeues": self.requeues}
        return {"job": "Enqueued", **here, **clock, **faults, "wrong": None}

    def steps(self, now: State) -> Iterator[Step]:
        yield from self._workers(now)
        if now["leads"]:
            yield from self._lead(now)
        if now["requeues"] and now["job"] == "Failed":
            yield Step("people.REQUEUE", "a person requeues it", then(now, job="Enqueued", waited=0, requeues=0), True)
        waits = now["job"] in ("Enqueued", "parked") and now["waited"] < LAST
        if waits and (now["looked"] if now["leads"] else now["unseen"] <= UNWATCHED):
            missing = now["leads"] and now["other"] and not now["knows"]
            after = then(now, waited=min(LAST, now["waited"] + 1), unseen=min(LAST, now["unseen"] + 1), looked=False)
            after["missing"] = min(LAST, now["missing"] + 1) if missing else 0
            if now["watched"] is not None:
                after["watched"] = min(LAST, now["watched"] + 1)
            yield Step("", "time passes", after)

    def _workers(self, now: State) -> Iterator[Step]:
        if now["job"] == "Enqueued" and now["knows"]:
            yield Step("claim.CLAIM_NEXT", "who has the type claims it", then(now, job="Processing"))
        if now["job"] == "Enqueued" and now["other"]:
            yield Step("unknown.PARK_UNKNOWN", "who lacks it parks it; COMMIT", then(now, job="parked"))
        early = now["waited"] <= EARLY
        if now["comings"] and not now["knows"] and early:
            after = then(now, knows=True, comings=now["comings"] - 1, missing=0, looked=False)
            yield Step("jobs.presence.beat", "a worker comes that has the type", after, fault=True)
        if now["goings"] and now["knows"] and now["looked"] and early:
            after = then(now, knows=False, goings=now["goings"] - 1)
            yield Step("", "it goes", after, fault=True)
        if now["nights"] and early:
            after = then(now, leads=False, other=False, knows=False, nights=0, missing=0, looked=False)
            yield Step("", "all go home", after, fault=True)
        if not now["leads"] and now["unseen"] > UNWATCHED:
            yield Step("", "the others are back in the morning", then(now, leads=True, other=True))

    def _lead(self, now: State) -> Iterator[Step]:
        waits = now["job"] in ("Enqueued", "parked")
        if waits and not now["looked"]:
            yield Step("unknown.WATCH", "the leader looks", self._watched(now))
        if self.looks_again and now["job"] == "parked" and now["knows"]:
            yield Step("unknown.OPEN_UNKNOWN", "leader: back into its queue", then(now, job="Enqueued", waited=0))
        counts = now["watched"] is not None and (now["unseen"] <= UNWATCHED or not self.begins_anew)
        if counts and now["job"] == "Enqueued" and now["watched"] > 0 and not now["knows"]:
            yield Step("unknown.PARK_UNSERVED", "leader: parked at the head", then(now, job="parked"))
        long = counts and now["watched"] >= GRACE and now["other"] and (not self.looks_at_workers or not now["knows"])
        if long and now["job"] == "parked" and (now["waited"] >= GRACE or not self.counts_own_wait):
            yield Step("unknown.FAIL", "leader: given up, Failed", self._given_up(now))

    def _watched(self, now: State) -> State:
        after = then(now, looked=True)
        if now["other"] and not now["knows"]:
            anew = now["watched"] is None or (self.begins_anew and now["unseen"] > UNWATCHED)
            after |= {"unseen": 0, "watched": 0 if anew else now["watched"]}
        elif self.forgets:
            after["watched"] = None
        else:
            after["unseen"] = 0
        return after

    @staticmethod
    def _given_up(now: State) -> State:
        after = then(now, job="Failed")
        if now["knows"]:
            after["wrong"] = "a job was given up though a worker has its type"
        elif now["missing"] < GRACE:
            after["wrong"] = "a job was given up though its type was not missing for so long"
        elif now["waited"] < GRACE:
            after["wrong"] = "a job was given up before it had waited for so long"
        return after

    def broken(self, now: State) -> str | None:
        return now["wrong"]

    def stuck(self, now: State) -> str | None:
        return None if now["job"] in ("Processing", "Failed") else f"a job waits for ever: it is {now['job']}"
