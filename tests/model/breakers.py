"""The breaker of a type: jobs parked behind it, one probe at a time in the whole cluster, and what moves it.

The breaker is (state, its probe): "open", "half-open" or "closed". It begins open, with two jobs parked; `old` runs,
since before it opened. A third job comes into its queue while all this goes on. Two lead at once. Jobs: "parked",
"Enqueued", "Processing" (claimed since), or "over".
"""

from collections.abc import Iterator

from tests.model.checker import Model, State, Step, then
from tests.model.transactions import database, deadlock, end, free, lock, write

LEADERS = ("leader 1", "leader 2")
WORKER, PARKER = "worker", "parker"
OPEN, HALF, CLOSED = "open", "half-open", "closed"


class Breakers(Model):
    """Claims, parks, probes, ends: the statements that read or write a breaker."""

    tested_in_claim = True
    locked_while_probed = True  # the breaker's row, from the choice of a probe on
    only_the_probe_moves_it = True  # and no end of another execution
    moves_with_the_end = True  # the breaker is moved by the statement that writes the probe's end
    stale_are_missed = True  # the leader opens a breaker anew whose probe came to nothing
    parks_under_lock = True
    wakes_at_close = True
    sweeps = True  # the leader wakes what is parked for breakers that are closed
    reason_has_an_age = True  # what ended before it closed last does not open it again
    fails = False  # a probe may fail
    cancels = 0  # somebody cancels a probe before it is claimed
    trips = 0  # a window with failures from before it closed
    newcomer = True

    def begin(self) -> State:
        self.jobs = ("job 1", "job 2", "job 3")
        rows: State = {"breaker": (OPEN, "")} | dict.fromkeys(self.jobs, "parked")
        rows["job 3"] = "Enqueued" if self.newcomer else "over"
        more = {"due": False, "old": "Processing", "wrong": None}
        places = {f"{who} chose": "" for who in LEADERS} | {"parker has": "", "went well": "", "wakes": False}
        faults = {"cancels": self.cancels, "trips": self.trips, "crashes": self.crashes}
        return {**rows, **database(rows, [*LEADERS, WORKER, PARKER]), **more, **places, **faults}

    def steps(self, now: State) -> Iterator[Step]:
        for who in LEADERS:
            yield from self._probe(now, who)
        yield from self._claim(now)
        yield from self._park(now)
        yield from self._end(now)
        yield from self._world(now)

    def _probe(self, now: State, who: str) -> Iterator[Step]:
        state, probe = now["breaker"]
        chosen = now[f"{who} chose"]
        ready = free(now, who, "breaker") or not self.locked_while_probed
        if not chosen and state == OPEN and now["due"] and ready:
            for job in self.jobs:
                if now[job] == "parked" and free(now, who, job):
                    after = lock(then(now, **{f"{who} chose": job}), who, job)
                    if self.locked_while_probed:
                        lock(after, who, "breaker")
                    yield Step("probes.PROBE", f"{who}: BEGIN; chooses {job} as the probe", after)
                    break
        elif chosen and free(now, who, "breaker"):
            after = write(then(now, **{f"{who} chose": ""}), who, "breaker", (HALF, chosen))
            after = end(write(after, who, chosen, "Enqueued"), who)
            yield Step("probes.PROBE", f"{who}: {chosen} is let through; COMMIT", after)
        useless = state == HALF and now[probe] not in ("Enqueued", "Processing")
        if useless and self.stale_are_missed and free(now, who, "breaker"):
            after = self._moved(now, OPEN)
            if now["went well"] == probe:
                after["wrong"] = "a breaker never closes: its probe went well, and nobody was told"
            yield Step("probes.STALE", f"{who}: the probe came to nothing, opened anew", after)

    @staticmethod
    def _moved(now: State, to: str) -> State:
        return then(now, breaker=(to, ""), due=False)

    def _claim(self, now: State) -> Iterator[Step]:
        state, probe = now["breaker"]
        for job in self.jobs:
            passes = state == CLOSED or (state == HALF and probe == job)
            if now[job] == "Enqueued" and free(now, WORKER, job) and (passes or not self.tested_in_claim):
                after = then(now, **{job: "Processing"})
                others = [name for name in self.jobs if name != job and now[name] == "Processing"]
                if state != CLOSED and others:
                    after["wrong"] = f"two probes at once: {job} was started beside {others[0]}"
                elif not passes:
                    after["wrong"] = f"a job of a type whose breaker is {state} was started: {job}"
                yield Step("circuits.KEPT_BACK", f"{job} is claimed", after)

    def _park(self, now: State) -> Iterator[Step]:
        (state, probe), job = now["breaker"], now["parker has"]
        if not job:
            for name in self.jobs:
                kept = state != CLOSED and name != probe
                if kept and now[name] == "Enqueued" and free(now, PARKER, name):
                    if not self.parks_under_lock:
                        after = lock(then(now, **{"parker has": name}), PARKER, name)
                        yield Step("circuits.MET", f"park: BEGIN; {name} is kept back, has it", after)
                    elif free(now, PARKER, "breaker", shared=True):
                        after = lock(then(now, **{"parker has": name}), PARKER, "breaker", shared=True)
                        after = lock(after, PARKER, name)
                        yield Step("circuits.LOCK_GATES", f"park: BEGIN; the breaker FOR SHARE; has {name}", after)
        else:
            after = write(then(now, **{"parker has": ""}), PARKER, job, "parked")
            yield Step("circuits.PARK_WAITING", f"park: {job} is parked; COMMIT", end(after, PARKER))

    def _end(self, now: State) -> Iterator[Step]:
        state, probe = now["breaker"]
        for job in (*self.jobs, "old"):
            if now[job] != "Processing":
                continue
            is_probe = state == HALF and probe == job
            for well in (True, False) if self.fails or job == "old" else (True,):
                moves = state != CLOSED and (is_probe or not self.only_the_probe_moves_it)
                if moves and not free(now, WORKER, "breaker"):
                    continue
                after = then(now, **{job: "over"})
                if is_probe and well:
                    after["went well"] = job
                if moves and self.moves_with_the_end:
                    after |= self._moved(after, CLOSED if well else OPEN)
                    after["wakes"] = well and self.wakes_at_close
                if moves and not is_probe:
                    after["wrong"] = f"a breaker was moved by somebody else's end: {job}'s"
                yield Step("finish.FINISH", f"{job} ends {'well' if well else 'badly'}", after)
        if now["wakes"]:
            yield Step("circuits.wake", "who closed it wakes who waits", self._woken(now))
            if now["crashes"]:
                yield Step("", "who closed it is killed", then(now, wakes=False, crashes=0), fault=True)
        waits = any(now[job] == "parked" and free(now, LEADERS[0], job) for job in self.jobs)
        if self.sweeps and state == CLOSED and not now["wakes"] and waits:
            yield Step("circuits.open_circuits", "the leader wakes who waits", self._woken(now))

    def _woken(self, now: State) -> State:
        """SKIP LOCKED: a row that somebody has is left to the leader's next look."""
        woken = {job: "Enqueued" for job in self.jobs if now[job] == "parked" and free(now, LEADERS[0], job)}
        return then(now, wakes=False, **woken)

    def _world(self, now: State) -> Iterator[Step]:
        state, probe = now["breaker"]
        if state == OPEN and not now["due"]:
            yield Step("", "it has been open for long enough", then(now, due=True))
        if now["cancels"] and state == HALF and now[probe] == "Enqueued" and free(now, WORKER, probe):
            yield Step(
                "people.CANCEL", f"somebody cancels {probe}", then(now, cancels=0, **{probe: "over"}), fault=True
            )
        if now["trips"] and state == CLOSED and free(now, WORKER, "breaker"):
            after = then(now, trips=0)
            if not self.reason_has_an_age:
                after |= self._moved(after, OPEN) | {"wrong": "a breaker was opened for what was before it closed"}
            yield Step("circuits.TRIP", "a window with failures from before it closed", after, fault=True)

    def broken(self, now: State) -> str | None:
        return now["wrong"]

    def stuck(self, now: State) -> str | None:
        if sentence := deadlock(now):
            return sentence
        waits = [job for job in self.jobs if now[job] != "over"]
        if not waits:
            return None
        state, _probe = now["breaker"]
        return f"a job sleeps behind a breaker that is {state}, and nobody will move either: {waits[0]}"
