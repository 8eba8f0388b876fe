"""What people do to a job: cancel, requeue, run now, delete. Thin over `jobs.transitions`: verdicts become errors."""

from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from jobs import transitions
from jobs.bounds import REASON_LENGTH
from jobs.errors import Conflict, NotFound
from jobs.outcomes import Verdict
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
    ("delete", "state"): gettext_lazy("Only a finished job can be deleted; this one is %(state)s. Cancel it first."),
}


def missing(id_: UUID) -> NotFound:
    """What is said of a job that is not there."""
    return NotFound(_("There is no job %(id)s, or not any more.") % {"id": id_})


def _settled(act: str, id_: UUID, verdicts: list[Verdict]) -> Verdict:
    verdict = verdicts[0]
    if verdict.problem == "not_found" or verdict.state is None:
        raise missing(id_)
    if verdict.problem is not None:
        state = str(verdict.state)
        raise Conflict(str(REFUSALS[act, verdict.problem]) % {"state": state}, state=state, reason=verdict.problem)
    return verdict


def cancel(id_: UUID, *, actor: str | None = None, reason: str | None = None) -> Verdict:
    """Cancel a job. Waiting: at once. Running: asked for, its worker stops it (`requested`).

    Raises NotFound, or Conflict with the `state` of a job that has already ended.
    """
    said = None if reason is None else clean(reason, REASON_LENGTH)
    return _settled("cancel", id_, transitions.cancel([id_], actor=actor, reason=said))


def requeue(id_: UUID, *, actor: str | None = None) -> Verdict:
    """Run a failed or cancelled job again. Raises NotFound, or Conflict (`state`, or another job's unique key)."""
    return _settled("requeue", id_, transitions.requeue([id_], actor=actor))


def run_now(id_: UUID, *, actor: str | None = None) -> Verdict:
    """Start a scheduled job without waiting for its instant. Raises NotFound, or Conflict (`state`, or a gate)."""
    return _settled("run_now", id_, transitions.run_now([id_], actor=actor))


def delete(id_: UUID) -> Verdict:
    """Delete a finished job with its history. Raises NotFound, or Conflict with the `state` of an active one."""
    return _settled("delete", id_, transitions.delete([id_]))
