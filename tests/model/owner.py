"""The job of `ownership`: its guards and promises, entries into states, ends, the rule of a loss, and recovery."""

from collections.abc import Iterator
from typing import Protocol

from jobs.states import EDGES
from jobs.states import FINAL as FINAL_STATES
from tests.model.checker import Model, State, Step, then

WORKERS = ("1", "2")
LEASE = 2
TRIES = 2
FINAL = frozenset(map(str, FINAL_STATES))
LEGAL = {(str(before), str(to)) for before, to in EDGES if before is not None}


class Guarded(Protocol):
    """The guards of `Ownership` that an end asks for."""

    end_tests_cancel: bool
    new_token: bool


def enter(after: State, to: str, *, new_token: bool) -> State:
    """Into a state, by a legal edge; into the queue with a new token and its message."""
    if (after["state"], to) not in LEGAL:
        after["wrong"] = f"a job went from {after['state']} to {to}"
    after["state"] = to
    if to != "Processing":
        after |= {"owner": "", "lease": 0}
    if to == "Enqueued":
        if new_token:
            after |= {"token": after["next"], "next": after["next"] + 1}
        after["messages"] = tuple(sorted([*after["messages"], after["token"]]))
    return after


def log_end(after: State, token: int, out: str) -> None:
    """The attempt row: one a token."""
    if any(ended == token for ended, _out in after["ends"]):
        after["wrong"] = f"a late owner's end was written: two of token {token}"
    after["ends"] = (*after["ends"], (token, out))


def fails(after: State, *, lost: bool, model: Guarded) -> None:
    """A failed attempt, or a lost one, which comes back at once the first time."""
    after |= {"used": after["used"] + 1, "lost": after["lost"] + lost}
    if after["cancel"] and model.end_tests_cancel:
        to = "Cancelled"
    elif after["used"] >= TRIES:
        to = "Failed"
    else:
        to = "Enqueued" if lost and after["lost"] == 1 else "Scheduled"
    enter(after, to, new_token=model.new_token)


def end_of(after: State, out: str, token: int, *, model: Guarded) -> State:
    """The end of an execution whose fence held."""
    log_end(after, token, out)
    if out == "Failed":
        fails(after, lost=False, model=model)
    elif out == "released":
        to = "Cancelled" if after["cancel"] and model.end_tests_cancel else "Enqueued"
        enter(after, to, new_token=model.new_token)
    else:
        enter(after, out, new_token=model.new_token)
    return after


class Owned(Model):
    """The guards and the faults of `Ownership`, its promises, and whoever finds what nobody holds."""

    # The claim and the fence of an end.
    claim_tests_state = True
    claim_tests_token = True
    fence_tests_token = True
    fence_tests_worker = True
    fence_tests_state = True
    new_token = True  # at each entry into the queue
    end_tests_cancel = True  # every exit but Succeeded becomes Cancelled, in the statement of the end
    requeue_clears_cancel = True
    own_end_is_known = True  # a repeated end finds its own attempt, and is not taken for lost
    # Leases.
    deadline = True  # the child's watchdog ends the handler at it
    deadline_from_send = True  # it counts from before the statement was sent, else from its answer
    grace = 1
    drops_the_dead = True  # what was killed at its deadline is renewed no more
    supervisor = True  # kills a worker at whose deadline something runs that can't be killed alone
    killable = True  # the handler is a child process, else a thread
    # Answers that come late or never, and the end of a process.
    strays = True  # what the table gives this worker and nobody here will run is given back
    strays_heed_flight = True  # but what a claim on its way may have taken
    kills_before_release = True
    kills_before_take_back = True
    # Faults.
    one_worker = False
    freezes = 0
    duplicates = 0
    lost_answers = 0
    cancels = 0
    requeues = 0
    stops = 0
    machines = 0  # a whole machine is frozen, worker, child, watchdog and supervisor together

    def begin(self) -> State:
        job = {"state": "Enqueued", "token": 1, "owner": "", "lease": 0, "used": 0, "lost": 0, "cancel": False}
        way = {"messages": (1,), "next": 2, "ends": (), "wrong": None}
        places: State = {}
        for w in WORKERS:
            places |= {f"{w} at": "idle", f"{w} token": 0, f"{w} sent": 0, f"{w} claim": None, f"{w} runs": 0}
            places |= {f"{w} left": 0, f"{w} frozen": "", f"{w} out": "", f"{w} renewed": None}
        names = ("crashes", "freezes", "duplicates", "lost_answers", "cancels", "requeues", "stops", "machines")
        return {**job, **way, **places, **{name: getattr(self, name) for name in names}}

    def _housekeeping(self, now: State) -> Iterator[Step]:
        if now["state"] == "Processing" and now["lease"] <= -self.grace:
            after = then(now)
            log_end(after, now["token"], "lost")
            fails(after, lost=True, model=self)
            if not self.strays and not any(now[f"{w} token"] == now["token"] for w in WORKERS) and not self.crashes:
                after["wrong"] = "a loss was charged to a job whose worker is well"
            yield Step("expire.EXPIRED", f"recovery: token {now['token']} is lost", after)
        if now["state"] == "Scheduled":
            yield Step(
                "promote.PROMOTE", "its instant has come", enter(then(now), "Enqueued", new_token=self.new_token)
            )
        if now["cancels"] and now["state"] not in FINAL:
            after = then(now, cancels=0, cancel=True)
            if now["state"] != "Processing":
                enter(after, "Cancelled", new_token=True)
            yield Step("people.CANCEL", "somebody cancels it", after, fault=True)
        if now["requeues"] and now["state"] in ("Failed", "Cancelled"):
            after = then(now, requeues=0, used=0, lost=0)
            after["cancel"] = now["cancel"] and not self.requeue_clears_cancel
            yield Step("people.REQUEUE", "somebody requeues it", enter(after, "Enqueued", new_token=True), fault=True)

    def broken(self, now: State) -> str | None:
        if now["1 runs"] and now["2 runs"]:
            return f"two executions live side by side: of token {now['1 runs']} and of token {now['2 runs']}"
        if now["cancel"] and now["state"] in ("Scheduled", "Enqueued"):
            return f"a cancelled job goes on: it is {now['state']}"
        return now["wrong"]

    def stuck(self, now: State) -> str | None:
        return (
            None if now["state"] in FINAL else f"a job waits for ever: it is {now['state']} with token {now['token']}"
        )
