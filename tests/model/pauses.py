"""A pause of a type, a tag or a key: who claims, who parks for it, who lifts it, a person or the clock.

The job is "Enqueued", "Processing" (it was started) or "parked". The pause is "none", "in force" or "over", its row
there and its time passed. One claimer, who also parks what he meets; one who lifts; maybe a caller who enqueues.
"""

from collections.abc import Iterator

from tests.model.checker import Model, State, Step, then
from tests.model.transactions import database, end, free, lock, write

CLAIMER, LIFTER = "claimer", "lifter"


class Pauses(Model):
    """A gate with a row of its own: the breaker of a type has the same shape (see `breakers`)."""

    tested_in_claim = True  # in the claim's own statement, else looked up before
    parks_under_lock = True  # whoever parks locks the pause's row FOR SHARE and reads it again
    wakes_in_later_statement = True  # who lifts takes the row away first, and looks who waits in a later statement
    expires = False  # it ends by its `until`, and the leader lifts it
    leader_lifts = True
    starts_paused = True
    sweeps = False  # the leader looks for what is parked at a pause that is gone

    def begin(self) -> State:
        rows = {"job": "Enqueued", "pause": "in force" if self.starts_paused else "none"}
        return {
            **rows,
            **database(rows, [CLAIMER, LIFTER]),
            "claimer at": "idle",
            "saw a pause": None,
            "lifter at": "idle",
            "lifter saw": None,
            "pauses left": int(not self.starts_paused),
            "wrong": None,
        }

    def steps(self, now: State) -> Iterator[Step]:
        yield from self._claimer(now)
        yield from self._lifter(now)
        if now["pauses left"] and now["pause"] == "none":
            after = then(now, pause="in force", **{"pauses left": 0})
            yield Step("pauses.PAUSE", "somebody pauses; COMMIT", after, fault=True)
        if self.expires and now["pause"] == "in force":
            yield Step("", "the time of the pause is over", then(now, pause="over"))

    def _claimer(self, now: State) -> Iterator[Step]:
        at = now["claimer at"]
        in_force = now["pause"] == "in force"
        if at == "idle" and now["job"] == "Enqueued":
            if not self.tested_in_claim and now["saw a pause"] is None:
                yield Step("", "the worker looks which pauses there are", then(now, **{"saw a pause": in_force}))
            elif free(now, CLAIMER, "job"):
                saw = in_force if self.tested_in_claim else now["saw a pause"]
                after = lock(then(now, **{"saw a pause": saw}), CLAIMER, "job")
                if not saw:
                    after = end(write(after, CLAIMER, "job", "Processing"), CLAIMER)
                    after |= {"saw a pause": None, "wrong": "a paused job was started" if in_force else None}
                    yield Step("claim.CLAIM_NEXT", "claims: sees no pause, the job is started; COMMIT", after)
                elif self.parks_under_lock:
                    after = end(after, CLAIMER) | {"claimer at": "parks"}
                    yield Step("claim.LEFT_OUT", "claims: sees a pause, leaves the job out; COMMIT", after)
                else:
                    after["claimer at"] = "writes"
                    yield Step("pauses.PARK_NAMED", "parks: BEGIN; sees a pause, has the job", after)
        elif at == "parks" and free(now, CLAIMER, "pause", shared=True):
            if in_force:
                after = lock(then(now, **{"claimer at": "has the pause"}), CLAIMER, "pause", shared=True)
                yield Step("pauses.LOCK_NAMED", "parks: BEGIN; the pause FOR SHARE: it is there", after)
            else:
                after = end(then(now, **{"claimer at": "idle", "saw a pause": None}), CLAIMER)
                yield Step("pauses.LOCK_NAMED", "parks: BEGIN; the pause FOR SHARE: it is gone; COMMIT", after)
        elif at == "has the pause" and free(now, CLAIMER, "job"):
            after = lock(then(now, **{"claimer at": "writes"}), CLAIMER, "job")
            yield Step("outbox.NAMED_JOBS", "parks: has the job", after)
        elif at == "writes":
            after = write(then(now, **{"claimer at": "idle", "saw a pause": None}), CLAIMER, "job", "parked")
            yield Step("pauses.PARK_NAMED", "parks: the job waits for the pause; COMMIT", end(after, CLAIMER))

    def _lifter(self, now: State) -> Iterator[Step]:
        at = now["lifter at"]
        may = now["pause"] == ("over" if self.expires else "in force") and (self.leader_lifts or not self.expires)
        verb = "pauses.EXPIRE" if self.expires else "pauses.RESUME"
        if at == "idle" and may and not self.wakes_in_later_statement:
            after = then(now, **{"lifter at": "begun", "lifter saw": now["job"]})
            yield Step(verb, f"lifts: one statement begins, which sees the job {now['job']}", after)
        elif (at == "begun" or (at == "idle" and may)) and free(now, LIFTER, "pause"):
            if self.expires and at == "idle" and now["lock of pause"] is not None:
                return  # SKIP LOCKED: somebody parks for it
            after = write(then(now, **{"lifter at": "wakes" if at == "begun" else "looks"}), LIFTER, "pause", "none")
            yield Step(verb, "lifts: takes the pause away", after)
        elif at == "looks":
            after = then(now, **{"lifter at": "wakes", "lifter saw": now["job"]})
            yield Step("pauses.WAKE", f"lifts: sees the job {now['job']}", after)
        elif at == "wakes":
            after = then(now, **{"lifter at": "idle", "lifter saw": None})
            if now["lifter saw"] == "parked" and free(now, LIFTER, "job"):
                write(after, LIFTER, "job", "Enqueued")
            woken = "wakes the job" if now["lifter saw"] == "parked" else "wakes nobody"
            yield Step("gates.woken", f"lifts: {woken}; COMMIT", end(after, LIFTER))
        left = now["job"] == "parked" and now["pause"] == "none" and free(now, LIFTER, "job")
        if self.sweeps and left and at == "idle":
            yield Step("pauses.LEFT_BEHIND", "the leader finds the job at no pause", then(now, job="Enqueued"))

    def broken(self, now: State) -> str | None:
        return now["wrong"]

    def stuck(self, now: State) -> str | None:
        if now["job"] != "Processing" and now["pause"] != "in force":
            return f"a job sleeps, and no pause is in force: it is {now['job']}"
        return None
