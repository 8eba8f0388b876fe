"""The edge matrix as data: situations a job may be in, and how each verb is called; `legal` has what may follow."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any
from uuid import UUID, uuid4

from jobs import transitions
from jobs.outcomes import Ending, ErrorInfo, Verdict
from jobs.retry import RetryPolicy
from jobs.states import FailureKind, Outcome, Reason, State, Waiting
from tests.transitions.rows import Made, ago, ahead, execute, make_job, make_letter, make_worker

ASKED = {
    "cancel_requested_at": ago(1),
    "cancel_requested_by": "ana",
    "cancel_reason": "enough",
}
EXPIRED = {"lease_expires_at": ago(60)}
SITUATIONS: dict[str, tuple[State, dict[str, Any]]] = {
    "scheduled": (State.SCHEDULED, {"run_at": ahead(3600), "waiting_for": "due"}),
    "due": (State.SCHEDULED, {"run_at": ago(5), "waiting_for": "retry"}),
    "parked": (State.SCHEDULED, {"waiting_for": "concurrency_key", "gate": "k"}),
    "of an unknown type": (State.SCHEDULED, {"waiting_for": "unknown_type", "gate": "test.echo"}),
    "enqueued": (State.ENQUEUED, {}),
    "processing": (State.PROCESSING, {}),
    "processing, cancel asked": (State.PROCESSING, ASKED),
    "expired": (State.PROCESSING, EXPIRED),
    "expired, cancel asked": (State.PROCESSING, EXPIRED | ASKED),
    "succeeded": (State.SUCCEEDED, {"finished_at": ago(100), "result": {"n": 1}}),
    "failed": (State.FAILED, {"finished_at": ago(100)}),
    "cancelled": (State.CANCELLED, {"finished_at": ago(100), **ASKED}),
}
OWNED = ("processing", "processing, cancel asked", "expired", "expired, cancel asked")


CALLER = UUID(int=0xC0FFEE)


class Fence(Enum):
    """What the caller gets right of the fence: it is the worker CALLER and names a token."""

    RIGHT = "the right fence"
    TOKEN = "another token"
    WORKER = "another worker"
    BOTH = "another token and worker"


@dataclass(frozen=True, slots=True)
class Case:
    """A job in a situation, in a queue of its own, and how the caller names it."""

    situation: str
    fence: Fence
    made: Made

    @property
    def token(self) -> UUID:
        """The token that the caller names: the job's, or one that never was."""
        return self.made.token if self.fence in (Fence.RIGHT, Fence.WORKER) else UUID(int=self.made.id.int ^ 1)

    def __str__(self) -> str:
        return f"a job {self.situation}, with {self.fence.value}"


def make(situation: str, fence: Fence, **columns: Any) -> Case:
    """The job of a situation, committed, in a queue of its own; a failed one has its pending dead letter."""
    state, own = SITUATIONS[situation]
    worker = CALLER if fence in (Fence.RIGHT, Fence.TOKEN) else uuid4()
    made = make_job(state, **({"queue": f"q-{uuid4().hex}", "worker": worker} | own | columns))
    if state is State.FAILED:
        make_letter(made)
    return Case(situation, fence, made)


def missing() -> Case:
    """A job that is not there (any more)."""
    return Case("missing", Fence.RIGHT, Made(uuid4(), uuid4(), CALLER, "no-queue", "test.echo"))


Death = tuple[int | None, int | None, int | None]  # exit code, signal, peak memory of a process of its own


ERROR = ErrorInfo("ValueError", "no such file", "Traceback …", "cause-1")
DURATION = 0.3  # seconds: the bucket that ends at 0.5
BUCKET = 5
DIED: Death = (None, 9, 3 << 32)


def ending(case: Case, to: State, **fields: Any) -> Ending:
    """An ending of the execution that `case` names, as a worker would hand it over."""
    outcome = {State.SUCCEEDED: Outcome.SUCCEEDED, State.CANCELLED: Outcome.CANCELLED}.get(to, Outcome.FAILED)
    reason = {State.SUCCEEDED: Reason.SUCCEEDED, State.CANCELLED: Reason.CANCELLED}.get(to, Reason.RETRY)
    own: dict[str, Any] = {"outcome": outcome, "reason": reason, "duration": DURATION}
    if to is State.SUCCEEDED:
        own |= {"result": '{"rows": 3}'}
    elif to is State.FAILED:
        own |= {"reason": Reason.ATTEMPTS_USED_UP, "error": ERROR, "failure_kind": FailureKind.ERROR}
    elif to is State.SCHEDULED:
        own |= {"delay": 30.0, "waiting_for": Waiting.RETRY, "error": ERROR}
    elif to is State.ENQUEUED:
        own |= {"outcome": Outcome.INTERRUPTED, "reason": Reason.TAKEN_BACK, "counted": False}
    return Ending(case.made.id, case.token, to=to, **(own | fields))


def snooze(case: Case) -> Ending:
    """The job asked to run later: no attempt is counted."""
    fields = {"outcome": Outcome.SNOOZED, "reason": Reason.SNOOZED, "waiting_for": Waiting.SNOOZE}
    return ending(case, State.SCHEDULED, counted=False, error=None, **fields)


def child_lost(case: Case) -> Ending:
    """The worker is alive, and the child process that ran the job is not."""
    fields = {"outcome": Outcome.WORKER_LOST, "reason": Reason.WORKER_LOST, "lost": True, "error": ERROR}
    exit_code, signal, peak_memory = DIED
    fields |= {"exit_code": exit_code, "signal": signal, "peak_memory": peak_memory}
    return ending(case, State.ENQUEUED, counted=True, **fields)


Cases = Sequence[Case]
Answer = dict[UUID, State | None]  # by job: what the verb says that the job is now; None or absent: not touched


@dataclass(frozen=True, slots=True)
class Verb:
    """One call of a verb for many jobs; `fences` are those that its caller can get wrong."""

    call: Callable[[Cases, str], Answer]
    fences: tuple[Fence, ...] = (Fence.RIGHT,)


def claimant() -> dict[str, Any]:
    """Who claims, as the claiming verbs want it."""
    return {"worker_id": CALLER, "claim_id": uuid4(), "label": {"name": "w", "pid": 7}, "lease": 60}


LOSING: dict[str, Any] = {"limit": 100, "policy_of": lambda _: RetryPolicy(), "lost_limit": 3}


def lose(using: str, **options: Any) -> list[transitions.Finished]:
    """Recovery with a grace of 15 s and the default policy."""
    return transitions.expire(**(LOSING | {"grace": 15, "rng": Random(1)} | options), using=using)


def take_back(using: str, worker_id: UUID = CALLER, **options: Any) -> list[transitions.Finished]:
    """The take-back of what the worker CALLER holds, with the default policy."""
    return transitions.take_back(worker_id, **(LOSING | {"rng": Random(1)} | options), using=using)


def _by_token(cases: Cases, tokens: Iterable[UUID]) -> Answer:
    by_token = {case.token: case.made.id for case in cases}
    return {by_token[token]: State.PROCESSING for token in tokens}


def _claim(cases: Cases, using: str) -> Answer:
    wanted = [(case.made.id, case.token, 3) for case in cases]
    return {c.id: State.PROCESSING for c in transitions.claim(wanted, **claimant(), using=using)}


def _claim_next(cases: Cases, using: str) -> Answer:
    offer = [(case.made.queue, 3) for case in cases]
    found = transitions.claim_next(offer, types=["test.echo"], **claimant(), using=using)
    return {c.id: State.PROCESSING for c in found}


def _renew(cases: Cases, using: str) -> Answer:
    held = [(case.made.id, case.token) for case in cases]
    answer = transitions.renew(held, worker_id=CALLER, lease=90, using=using)
    assert not answer.skipped
    assert answer.renewed | answer.lost == {token for _, token in held}
    return _by_token(cases, answer.renewed)


def _note(cases: Cases, using: str) -> Answer:
    notes = [transitions.Note(case.made.id, case.token, progress=40, stage="half") for case in cases]
    return _by_token(cases, transitions.note(notes, worker_id=CALLER, using=using))


def _begin(cases: Cases, using: str) -> Answer:
    held = [(case.made.id, case.token) for case in cases]
    return _by_token(cases, transitions.begin(held, worker_id=CALLER, begun=False, using=using))


def _settling(make_ending: Callable[[Case], Ending]) -> Verb:
    def call(cases: Cases, using: str) -> Answer:
        answer = transitions.settle([make_ending(case) for case in cases], worker_id=CALLER, using=using)
        return _settled(cases, answer)

    return Verb(call, tuple(Fence))


def _settled(cases: Cases, answer: Sequence[transitions.Settled]) -> Answer:
    assert [settled.dispatch_id for settled in answer] == [case.token for case in cases]
    assert not any(settled.again for settled in answer)
    return {case.made.id: settled.state for case, settled in zip(cases, answer, strict=True)}


def _release(cases: Cases, using: str) -> Answer:
    held = [(case.made.id, case.token) for case in cases]
    return {done.id: done.state for done in transitions.release(held, worker_id=CALLER, using=using)}


def _promote(cases: Cases, using: str) -> Answer:
    due = {case.made.id: State.ENQUEUED for case in cases if case.situation == "due"}
    assert transitions.promote(limit=100, using=using) == len(due)
    return due


def _aside(act: Callable[..., set[UUID]]) -> Verb:
    def call(cases: Cases, using: str) -> Answer:
        moved = act([(case.made.id, case.token) for case in cases], using=using)
        return dict.fromkeys(moved, State.SCHEDULED)

    return Verb(call, (Fence.RIGHT, Fence.TOKEN))


def _open_unknown(cases: Cases, using: str) -> Answer:
    parked = {case.made.id: State.ENQUEUED for case in cases if case.situation == "of an unknown type"}
    make_worker(queues={case.made.queue: 1 for case in cases}, types=["test.echo"])
    try:
        assert transitions.open_unknown(limit=100, silent_after=15, using=using) == len(parked)
    finally:
        execute("DELETE FROM turno.workers")
    return parked


def _long_unserved(cases: Cases) -> None:
    """Every queue of the cases is served, and since yesterday by nobody who has their type."""
    make_worker(queues={case.made.queue: 1 for case in cases}, types=["other"])
    for case in cases:
        execute(
            "INSERT INTO turno.unserved_types (queue, type, since) VALUES (%s, %s, now() - interval '1 day')",
            case.made.queue, case.made.type,
        )  # fmt: skip


def _of_unknown_types(situation: str, to: State, act: Callable[..., list[UUID]], **options: Any) -> Verb:
    def call(cases: Cases, using: str) -> Answer:
        _long_unserved(cases)
        try:
            moved = act(limit=100, silent_after=15, unwatched_after=45, using=using, **options)
        finally:
            execute("DELETE FROM turno.workers")
            execute("DELETE FROM turno.unserved_types")
        assert set(moved) == {case.made.id for case in cases if case.situation == situation}
        return dict.fromkeys(moved, to)

    return Verb(call)


def _by_person(act: Callable[..., list[Verdict]], **options: Any) -> Verb:
    def call(cases: Cases, using: str) -> Answer:
        verdicts = act([case.made.id for case in cases], using=using, **options)
        assert [verdict.id for verdict in verdicts] == [case.made.id for case in cases]
        return {v.id: v.state for v in verdicts if v.applied}

    return Verb(call)


def _purge(cases: Cases, using: str) -> Answer:
    for state in (State.SUCCEEDED, State.FAILED, State.CANCELLED):
        transitions.purge(state, age=50, letters=1e6, limit=9, using=using)
    return {}


TAKEN = (Fence.RIGHT, Fence.WORKER)  # it names no token
VERBS: dict[str, Verb] = {
    "claim": Verb(_claim, (Fence.RIGHT, Fence.TOKEN)),
    "claim_next": Verb(_claim_next),
    "renew": Verb(_renew, tuple(Fence)),
    "note": Verb(_note, tuple(Fence)),
    "begin": Verb(_begin, tuple(Fence)),
    "settle Succeeded": _settling(lambda c: ending(c, State.SUCCEEDED)),
    "settle Failed": _settling(lambda c: ending(c, State.FAILED)),
    "settle retry": _settling(lambda c: ending(c, State.SCHEDULED)),
    "settle snooze": _settling(snooze),
    "settle Enqueued": _settling(lambda c: ending(c, State.ENQUEUED)),
    "settle Cancelled": _settling(lambda c: ending(c, State.CANCELLED)),
    "settle lost": _settling(child_lost),
    "release": Verb(_release, tuple(Fence)),
    "expire": Verb(lambda cases, using: {done.id: done.state for done in lose(using)}),
    "take_back": Verb(lambda cases, using: {done.id: done.state for done in take_back(using)}, TAKEN),
    "promote": Verb(_promote),
    "defer": _aside(transitions.defer),
    "park_unknown": _aside(transitions.park_unknown),
    "open_unknown": Verb(_open_unknown),
    "park_unserved": _of_unknown_types("enqueued", State.SCHEDULED, transitions.park_unserved, unserved_for=15),
    "fail_unknown": _of_unknown_types("of an unknown type", State.FAILED, transitions.fail_unknown, grace=1),
    "cancel": _by_person(transitions.cancel, actor="rui", reason="late"),
    "requeue": _by_person(transitions.requeue, actor="rui"),
    "run_now": _by_person(transitions.run_now, actor="rui"),
    "delete": _by_person(transitions.delete),
    "purge": Verb(_purge),
}
