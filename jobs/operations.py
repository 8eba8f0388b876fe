"""What people do to jobs and dead letters. Thin over `jobs.transitions`: of one, a refusal becomes an error."""

from collections.abc import Sequence
from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobs import events, transitions
from jobs.bounds import PRIORITIES, REASON_LENGTH
from jobs.errors import Conflict, NotFound, Text, refused_fields
from jobs.models import Job
from jobs.outcomes import Verdict
from jobs.reasons import explained
from jobs.requests import check_whole
from jobs.text import clean

# (act, problem) -> what the person is told; `%(state)s` is the job's current state.
REFUSALS: dict[tuple[str, str], Promise] = {
    ("cancel", "state"): gettext_lazy("The job has already ended (%(state)s); there is nothing to cancel."),
    ("requeue", "state"): gettext_lazy("Only a failed or cancelled job can be requeued; this one is %(state)s."),
    ("requeue", "unique_key"): gettext_lazy(
        "Another active job holds this job's unique key; wait for it or cancel it."
    ),
    ("run_now", "state"): gettext_lazy("Only a scheduled job can be run now; this one is %(state)s."),
    ("run_now", "gate"): gettext_lazy(
        "The job does not wait for an instant; it starts when what it waits for allows it."
    ),
    ("reprioritise", "state"): gettext_lazy("Only a job that waits can get another priority; this one is %(state)s."),
    ("letter", "resolved"): gettext_lazy("Somebody has already requeued or discarded this dead letter."),
    ("letter", "state"): gettext_lazy("Its job has not failed any more (%(state)s)."),
    ("letter", "unique_key"): gettext_lazy("Another active job holds this job's unique key; wait for it or cancel it."),
    ("delete", "state"): gettext_lazy("Only a finished job can be deleted; this one is %(state)s. Cancel it first."),
}


def missing(id_: UUID) -> NotFound:
    """What is said of a job that is not there."""
    return NotFound(_("There is no job %(id)s, or not any more.") % {"id": id_})


def missing_letter(id_: UUID) -> NotFound:
    """What is said of a dead letter that is not there."""
    return NotFound(_("There is no dead letter %(id)s, or not any more.") % {"id": id_})


def _settled(act: str, id_: UUID, verdicts: list[Verdict]) -> Verdict:
    verdict = verdicts[0]
    if verdict.problem == "not_found" or verdict.state is None:
        raise missing_letter(id_) if act == "letter" else missing(id_)
    if verdict.problem is not None:
        state = str(verdict.state)
        raise Conflict(str(REFUSALS[act, verdict.problem]) % {"state": state}, state=state, reason=verdict.problem)
    return verdict


def _told(verdicts: list[Verdict], *topics: str) -> list[Verdict]:
    """Screens hear of what was changed; they would learn of no id otherwise."""
    applied = [verdict.id for verdict in verdicts if verdict.applied]
    if applied:
        events.changed(jobs=applied, topics=topics)
    return verdicts


def cancel(id_: UUID, *, actor: str | None = None, reason: str | None = None) -> Verdict:
    """Cancel a job. Waiting: at once. Running: asked for, its worker stops it (`requested`).

    Raises NotFound, or Conflict with the `state` of a job that has already ended.
    """
    said = None if reason is None else clean(reason, REASON_LENGTH)
    return _settled("cancel", id_, _told(transitions.cancel([id_], actor=actor, reason=said)))


def requeue(id_: UUID, *, actor: str | None = None) -> Verdict:
    """Run a failed or cancelled job again. Raises NotFound, or Conflict (`state`, or another job's unique key)."""
    return _settled("requeue", id_, _told(transitions.requeue([id_], actor=actor), "letters"))


def run_now(id_: UUID, *, actor: str | None = None) -> Verdict:
    """Start a scheduled job without waiting for its instant. Raises NotFound, or Conflict: its `state`, or the gate
    that it is parked at (`waiting_for`, `gate`)."""
    try:
        return _settled("run_now", id_, _told(transitions.run_now([id_], actor=actor)))
    except Conflict as refusal:
        row = Job.objects.filter(id=id_).values().first() if refusal.extra.get("reason") == "gate" else None
        if row is not None:
            refusal.extra |= {"waiting_for": row["waiting_for"], "gate": row["gate"]}
            refusal.detail = " ".join([str(refusal.detail), *(why.text for why in explained(row)[:1])])
        raise


def reprioritise(id_: UUID, priority: int, *, actor: str | None = None) -> Verdict:
    """Give a waiting job another priority. Raises NotFound, Invalid, or Conflict (`state`). `actor` is for whoever
    keeps a record."""
    errors: dict[str, list[Text]] = {}
    check_whole("priority", priority, PRIORITIES, lambda name, text: errors.setdefault(name, []).append(text))
    if errors:
        raise refused_fields(errors)
    return _settled("reprioritise", id_, _told(transitions.reprioritise([id_], priority), "queues"))


def delete(id_: UUID) -> Verdict:
    """Delete a finished job with its history. Raises NotFound, or Conflict with the `state` of an active one."""
    return _settled("delete", id_, _told(transitions.delete([id_]), "letters"))


def _letters_told(verdicts: list[Verdict]) -> list[Verdict]:
    if any(verdict.applied for verdict in verdicts):
        events.changed(jobs=None, topics=["letters"])
    return verdicts


def requeue_letter(id_: UUID, *, actor: str | None = None) -> Verdict:
    """Requeue a dead letter's job. Raises NotFound, or Conflict (`reason`: resolved, state, unique_key)."""
    return _settled("letter", id_, requeue_letters([id_], actor=actor))


def discard_letter(id_: UUID, *, actor: str | None = None) -> Verdict:
    """Discard a dead letter; its job stays Failed. Raises NotFound, or Conflict (`reason`: resolved)."""
    return _settled("letter", id_, discard_letters([id_], actor=actor))


def requeue_letters(ids: Sequence[UUID], *, actor: str | None = None) -> list[Verdict]:
    """Requeue the jobs of a few dead letters (a batch: hundreds, no more); a verdict each, in order."""
    return _letters_told(transitions.requeue_letters(ids, actor=actor))


def discard_letters(ids: Sequence[UUID], *, actor: str | None = None) -> list[Verdict]:
    """Discard a few dead letters (a batch: hundreds, no more); a verdict each, in order."""
    return _letters_told(transitions.discard(ids, actor=actor))
