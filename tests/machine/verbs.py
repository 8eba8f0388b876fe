"""What workers call: each verb with what it was told and what its answer must agree with."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID, uuid4

from jobs import transitions
from jobs.outcomes import Ending, ErrorInfo
from jobs.states import FailureKind, Outcome, Reason, State, Waiting
from jobs.transitions import Wanted
from tests.laws.guards import keep
from tests.machine.acts import BORN, CLAIMED, Act, P
from tests.machine.house import Held, House
from tests.transitions.edges import lose, take_back

TYPES = ("plain", "limited")
ODD = "odd"  # no worker has it before the end
QUEUES = ("default", "other")
KEYS = {"k1": 1, "k2": 2, "k3": 3}
TAGS = ("red",)
LEASE = 600.0
OVERDUE = 60.0
ERROR = ErrorInfo("ValueError", "no", "", "f")

# What an execution may end as: the fields of an Ending.
ENDINGS: dict[str, dict[str, Any]] = {
    "success": {"to": State.SUCCEEDED, "outcome": Outcome.SUCCEEDED, "reason": Reason.SUCCEEDED},
    "retry": {
        "to": State.SCHEDULED, "outcome": Outcome.FAILED, "reason": Reason.RETRY, "delay": 60.0,
        "waiting_for": Waiting.RETRY, "error": ERROR,
    },
    "timeout": {
        "to": State.SCHEDULED, "outcome": Outcome.TIMED_OUT, "reason": Reason.RETRY, "delay": 60.0,
        "waiting_for": Waiting.RETRY, "error": ERROR,
    },
    "dead": {
        "to": State.FAILED, "outcome": Outcome.FAILED, "reason": Reason.PERMANENT, "error": ERROR,
        "failure_kind": FailureKind.PERMANENT,
    },
    "snooze": {
        "to": State.SCHEDULED, "outcome": Outcome.SNOOZED, "reason": Reason.SNOOZED, "delay": 60.0,
        "waiting_for": Waiting.SNOOZE, "counted": False,
    },
    "cancelled": {"to": State.CANCELLED, "outcome": Outcome.CANCELLED, "reason": Reason.CANCELLED},
    "given back": {
        "to": State.ENQUEUED, "outcome": Outcome.INTERRUPTED, "reason": Reason.TAKEN_BACK, "counted": False,
    },
    "child lost": {
        "to": State.ENQUEUED, "outcome": Outcome.WORKER_LOST, "reason": Reason.WORKER_LOST, "lost": True,
        "error": ERROR, "duration": 0.5,
    },
}  # fmt: skip


def some[T](found: Sequence[T], number: int, most: int) -> list[T]:
    """At most so many of them, from one of them on."""
    if not found:
        return []
    start = number % len(found)
    return [*found[start:], *found[:start]][:most]


def _claiming(house: House, verb: str, worker: UUID, call: Callable[[str, dict[str, Any]], Any], **told: Any) -> Act:
    claim_id = uuid4()
    owner = {"worker_id": worker, "claim_id": claim_id, "label": {"name": "w", "pid": 7}, "lease": LEASE}

    def check(act: Act, claims: Any) -> None:
        started = {(step.job, step.new["dispatch_id"]) for step in act.moved(CLAIMED)}
        act.agrees({(claim.id, claim.dispatch_id) for claim in claims}, started)
        house.held += [Held(claim.id, claim.dispatch_id, worker) for claim in claims]

    return Act(verb, lambda using: call(using, owner), worker=worker, claim_id=claim_id, check=check, **told)


def claim_next(house: House, who: int, slots: int, queue: int, types: Sequence[str] = TYPES) -> Act:
    """A search."""
    offer = [(QUEUES[queue % 2], number) for number in range(1, slots + 1)]

    def call(using: str, owner: dict[str, Any]) -> Any:
        return transitions.claim_next(offer, types=list(types), **owner, using=using)

    return _claiming(house, "claim_next", house.workers[who], call, owns=lambda step, _: step.new["type"] in types)


def claim(house: House, who: int, first: int, most: int) -> Act | None:
    """What messages name, of now and of long ago; what is left out is looked at, and acknowledged after that."""
    named = some(house.old, first, most)
    if not named:
        return None
    wanted = [Wanted(job, token, number) for number, (job, token) in enumerate(named, 1)]

    def call(using: str, owner: dict[str, Any]) -> Any:
        found = transitions.claim(wanted, types=list(TYPES), **owner, using=using)
        got = {claim.dispatch_id for claim in found}
        transitions.left([one for one in wanted if one.token not in got], types=list(TYPES), using=using)
        return found

    ids = frozenset(job for job, _ in named)
    return _claiming(house, "claim", house.workers[who], call, ids=ids, named=frozenset(named))


def _owners(house: House, first: int, most: int) -> tuple[UUID, list[Held]] | None:
    """Some executions of one worker, as it believes."""
    mine = some(house.held, first, len(house.held))
    return (mine[0].worker, [held for held in mine if held.worker == mine[0].worker][:most]) if mine else None


def settle(house: House, first: int, ends: Sequence[str]) -> Act | None:
    """The ends of executions that a worker believes to own; those that it has ended already are ended once more."""
    found = _owners(house, first, len(ends))
    if found is None:
        return None
    worker, held = found
    endings = [Ending(one.job, one.token, **ENDINGS[how]) for one, how in zip(held, ends, strict=False)]

    def check(act: Act, answers: Any) -> None:
        for one, answer in zip(held, answers, strict=True):
            owner, became = house.judge.ended.get(one.token, (None, None))
            if answer.state is None:
                mine = house.world.jobs.get(one.job)
                owned = mine is not None and (mine["state"], mine["dispatch_id"]) == (P, one.token)
                keep(not owned, "an owner was told that its lease is lost, and has it")
            else:
                act.agrees((worker, str(answer.state)), (owner, became))
                mine_now = one.token in {step.old["dispatch_id"] for step in act.left(P) if step.old is not None}
                keep(answer.again != mine_now, "an end was written, and its owner is told of another time")

    became = {ending.dispatch_id: str(ending.to) for ending in endings}
    pairs = frozenset((one.job, one.token) for one in held)
    return Act(
        "settle", lambda using: transitions.settle(endings, worker_id=worker, using=using),
        frozenset(one.job for one in held), pairs, worker, check=check, became=became,
    )  # fmt: skip


def release(house: House, first: int, most: int) -> Act | None:
    """A worker that stops gives back what it has: its handlers have ended."""
    found = _owners(house, first, most)
    if found is None:
        return None
    worker, held = found
    pairs = frozenset((one.job, one.token) for one in held)

    def check(act: Act, answers: Any) -> None:
        act.agrees({done.id for done in answers}, {step.job for step in act.left(P)})

    return Act(
        "release", lambda using: transitions.release(sorted(pairs), worker_id=worker, using=using),
        frozenset(one.job for one in held), pairs, worker, check=check,
    )  # fmt: skip


def strays(house: House, who: int) -> Act:
    """What the table gives to a worker and no claim of it has answered is given back."""
    worker = house.workers[who]

    def call(using: str) -> Any:
        known = {held.token for held in house.held if held.worker == worker}
        found = transitions.strays(worker_id=worker, known=known, using=using)
        known = {held.token for held in house.held if held.worker == worker}
        lost = [(i, t) for i, t, claim in found if claim not in house.claims_in_flight() and t not in known]
        act.named, act.ids = frozenset(lost), frozenset(job for job, _ in lost)
        return transitions.release(lost, worker_id=worker, using=using)

    act = Act("release", call, worker=worker)  # it learns of what it gives back
    return act


def _owner_says(house: House, verb: str, first: int, most: int) -> Act | None:
    """Progress, a renewal, or that handlers begin: of executions that a worker believes to own."""
    found = _owners(house, first, most)
    if found is None:
        return None
    worker, held = found
    pairs = sorted((one.job, one.token) for one in held)

    def call(using: str) -> Any:
        if verb == "renew":
            answer = transitions.renew(pairs, worker_id=worker, lease=LEASE, using=using)
            return answer.renewed, answer.lost
        if verb == "begin":
            mine = transitions.begin(pairs, worker_id=worker, begun=bool(first % 2), using=using)
        else:
            notes = [transitions.Note(job, token, progress=first * 10, stage=str(first)) for job, token in pairs]
            mine = frozenset(transitions.note(notes, worker_id=worker, using=using))
        return mine, {token for _, token in pairs} - mine

    def check(act: Act, answer: Any) -> None:
        mine, lost = answer
        for job, token in pairs:
            row = house.world.jobs.get(job)
            owned = row is not None and (row["state"], row["dispatch_id"], row["worker_id"]) == (P, token, worker)
            keep(owned or token not in mine, f"{verb}: an owner is told that it has what it lost")
            keep(not owned or token not in lost, f"{verb}: an owner is told that it lost what it has")

    ids = frozenset(one.job for one in held)
    return Act(verb, call, ids, frozenset(pairs), worker, check=check)


def owner_says(verb: str) -> Callable[[House, int, int], Act | None]:
    """Of an owner: `renew`, `begin`, `note`."""
    return lambda house, first, most: _owner_says(house, verb, first, most)


def expire(house: House) -> Act:
    """Recovery."""

    def owns(step: Any, before: Any) -> bool:
        return step.old is not None and (before.now - step.old["lease_expires_at"]).total_seconds() > OVERDUE - 1

    return Act("expire", lose, owns=owns, check=_finished)


def taken_back(house: House, number: int) -> Act | None:
    """What a worker has left that is proven dead."""
    if not house.corpses:
        return None
    dead = house.corpses[number % len(house.corpses)]

    def owns(step: Any, _before: Any) -> bool:
        return step.old is not None and step.old["worker_id"] == dead

    return Act("take_back", lambda using: take_back(using, dead), owns=owns, check=_finished)


def _finished(act: Act, answers: Any) -> None:
    act.agrees({(done.id, str(done.state)) for done in answers}, {(step.job, step.to) for step in act.left(P)})


def born(act: Act) -> set[UUID]:
    """The jobs that it has made."""
    return {step.job for step in act.moved(BORN)}
