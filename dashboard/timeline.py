"""Every step of a job's life in words: reasons, outcomes, what it waits for. No code of the engine has none."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from jobs import wording
from jobs.states import Outcome, Reason, State
from jobs.wording import span

# What a change says under the state's word; `{worker}` and `{who}` are names, `{span}` a length of time.
REASONS: dict[Reason, Promise] = {
    Reason.CREATED: gettext_lazy("created"),
    Reason.DUE: gettext_lazy("its instant came"),
    Reason.RUN_NOW: gettext_lazy("run now, without waiting for its instant"),
    Reason.GATE_OPENED: gettext_lazy("what it waited for is free"),
    Reason.CLAIMED: gettext_lazy("a worker took it"),
    Reason.PARKED: gettext_lazy("parked: it waits and no attempt is counted"),
    Reason.LOCK_BUSY: gettext_lazy("its lock was held elsewhere; no attempt is counted"),
    Reason.NOT_ALONE: gettext_lazy("it must run alone, and its worker had other jobs; no attempt is counted"),
    Reason.SUCCEEDED: gettext_lazy("the handler returned"),
    Reason.RETRY: gettext_lazy("the attempt failed; another one follows"),
    Reason.SNOOZED: gettext_lazy("the handler asked to run later; no attempt is counted"),
    Reason.CIRCUIT_OPEN: gettext_lazy("breaker open; no attempt is counted"),
    Reason.WORKER_LOST: gettext_lazy("the worker stopped answering"),
    Reason.RELEASED: gettext_lazy("the worker stopped; no attempt is counted"),
    Reason.TAKEN_BACK: gettext_lazy("the worker died; its job was taken back at once"),
    Reason.ATTEMPTS_USED_UP: gettext_lazy("attempts used up; went to the dead letters"),
    Reason.PERMANENT: gettext_lazy("an error that no repetition repairs; went to the dead letters"),
    Reason.LOST_TOO_OFTEN: gettext_lazy("lost its worker too often; went to the dead letters"),
    Reason.BUSINESS: gettext_lazy("the handler said that it failed; not repeated"),
    Reason.RESULT_NOT_STORED: gettext_lazy("its result could not be stored; went to the dead letters"),
    Reason.NEVER_REPEATED: gettext_lazy(
        "broken off, and a job of this type is never repeated; went to the dead letters"
    ),
    Reason.UNKNOWN_TYPE: gettext_lazy("no worker knows this type; went to the dead letters"),
    Reason.CANCELLED: gettext_lazy("cancelled"),
    Reason.PARENT_FAILED: gettext_lazy("a job that it waited for did not succeed"),
    Reason.REQUEUED: gettext_lazy("requeued, attempts counted from zero"),
}
OUTCOMES: dict[Outcome, Promise] = {
    Outcome.SUCCEEDED: pgettext_lazy("outcome", "Succeeded"),
    Outcome.FAILED: pgettext_lazy("outcome", "Failed"),
    Outcome.TIMED_OUT: pgettext_lazy("outcome", "Timed out"),
    Outcome.CANCELLED: pgettext_lazy("outcome", "Cancelled"),
    Outcome.WORKER_LOST: pgettext_lazy("outcome", "Worker lost"),
    Outcome.INTERRUPTED: pgettext_lazy("outcome", "Interrupted"),
    Outcome.SNOOZED: pgettext_lazy("outcome", "Snoozed"),
    Outcome.BUSINESS: pgettext_lazy("outcome", "Business failure"),
}
OUTCOME_MARKS: dict[Outcome, str] = {
    Outcome.SUCCEEDED: "success",
    Outcome.FAILED: "failure",
    Outcome.TIMED_OUT: "failure",
    Outcome.CANCELLED: "cancelled",
    Outcome.WORKER_LOST: "cancelled",
    Outcome.INTERRUPTED: "cancelled",
    Outcome.SNOOZED: "scheduled",
    Outcome.BUSINESS: "failure",
}
SHOWN = 6


@dataclass(frozen=True, slots=True)
class Step:
    """A line of the time line. `said`: why, in words; `detail`: what the error or the person said, literally; `parent`:
    the id of the job that this one fell with."""

    key: int
    state: str
    at: datetime
    said: str
    detail: str
    by: str
    parent: UUID | None = None

    @property
    def when(self) -> str:
        """The second of today, the minute of another day."""
        local = timezone.localtime(self.at)
        return f"{local:%H:%M:%S}" if local.date() == timezone.localdate() else wording.day(self.at)


def outcome_word(outcome: str, error_type: str | None) -> str:
    """How an attempt ended: a plain failure by its error's class, which says more than the word."""
    if outcome in {Outcome.FAILED, Outcome.BUSINESS} and error_type:
        return error_type
    return str(OUTCOMES[Outcome(outcome)])


def steps(job: Mapping[str, Any], changes: Sequence[Mapping[str, Any]], names: Mapping[int, str]) -> list[Step]:
    """The time line, newest first, of changes that come oldest first; `names`: of the workers, by execution."""
    told = []
    for place, change in enumerate(changes):
        before = changes[place - 1] if place else None
        after = changes[place + 1] if place + 1 < len(changes) else None
        said = _said(job, change, before, after, names.get(change["execution"] or 0, ""))
        state = str(State.ENQUEUED) if _parked(change) else change["to_state"]
        parent, by = _parent(change), wording.actor_name(change["actor"])
        detail = "" if parent else change["detail"] or ""
        told.append(Step(change["id"], state, change["at"], said, detail, by, parent))
    return told[::-1]


def _parent(change: Mapping[str, Any]) -> UUID | None:
    with suppress(ValueError):
        return UUID(change["detail"] or "") if change["reason"] == Reason.PARENT_FAILED else None
    return None


def _parked(change: Mapping[str, Any]) -> bool:
    return change["to_state"] == State.SCHEDULED and change["reason"] in (Reason.PARKED, Reason.CIRCUIT_OPEN)


def _said(
    job: Mapping[str, Any],
    change: Mapping[str, Any],
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    worker: str,
) -> str:
    """The reason in words, with the names and spans that are stored; without them the plain reason."""
    try:
        reason = Reason(change["reason"])
    except ValueError:  # of a later version, in a cluster that is being upgraded
        return str(change["reason"])
    if reason is Reason.CREATED:
        said = _created(job)
    elif change["to_state"] == State.SCHEDULED and reason in {Reason.RETRY, Reason.WORKER_LOST, Reason.SNOOZED}:
        said = _later(job, change, after, reason)
    else:
        said = _by_worker(change, before, reason, worker) if worker else ""
    return said or str(REASONS[reason])


def _created(job: Mapping[str, Any]) -> str:
    if job["recurring_name"]:
        return _("created by %(origin)s") % {"origin": job["recurring_name"]}
    if job["rerun_of"]:
        return _("created as a rerun of another job")
    return _("created by %(origin)s") % {"origin": job["origin"]} if job["origin"] else ""


def _later(job: Mapping[str, Any], change: Mapping[str, Any], after: Mapping[str, Any] | None, reason: Reason) -> str:
    """Until when it waited: until what followed, or until the instant that stands in the job now."""
    until = after["at"] if after is not None else job["run_at"]
    if until is None:
        return ""
    wait = {"span": span(max(0.0, (until - change["at"]).total_seconds()))}
    if reason is Reason.SNOOZED:
        return _("the handler asked to run in %(span)s; no attempt is counted") % wait
    return _("another attempt in %(span)s (backoff)") % wait


def _by_worker(change: Mapping[str, Any], before: Mapping[str, Any] | None, reason: Reason, worker: str) -> str:
    who = {"worker": worker}
    if reason is Reason.CLAIMED and before is not None and before["to_state"] == State.ENQUEUED:
        waited = (change["at"] - before["at"]).total_seconds()
        return _("%(worker)s took it after %(span)s in the queue") % {**who, "span": span(waited)}
    sentences: dict[Reason, Promise] = {
        Reason.CLAIMED: gettext_lazy("%(worker)s took it"),
        Reason.WORKER_LOST: gettext_lazy("%(worker)s stopped answering"),
        Reason.TAKEN_BACK: gettext_lazy("%(worker)s died; its job was taken back at once"),
        Reason.RELEASED: gettext_lazy("%(worker)s stopped; no attempt is counted"),
    }
    return str(sentences[reason]) % who if reason in sentences else ""
