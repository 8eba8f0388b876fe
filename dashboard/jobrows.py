"""The rows of the list in words: what stands under a job's state, what can be done to it and why not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dashboard.possible import why_not
from dashboard.templatetags.shown import attempt, job_state
from jobs import wording
from jobs.bulk import Act as What
from jobs.queries.payloadtext import preview
from jobs.states import FailureKind, State, Waiting

# Why a parked job waits, in the little room under its state; the job's own page says it in a sentence.
GATES: dict[str, Promise] = {
    Waiting.PARENTS: gettext_lazy("waits for other jobs"),
    Waiting.CONCURRENCY_KEY: gettext_lazy("its key is in use"),
    Waiting.TYPE_LIMIT: gettext_lazy("its type's limit is reached"),
    Waiting.RATE: gettext_lazy("its type's rate is reached"),
    Waiting.PAUSE: gettext_lazy("paused"),
    Waiting.CIRCUIT: gettext_lazy("breaker open"),
    Waiting.UNKNOWN_TYPE: gettext_lazy("unknown type"),
}
FAILURES: dict[str, Promise] = {
    FailureKind.PERMANENT: gettext_lazy("Permanent error"),
    FailureKind.TIMEOUT: gettext_lazy("Timeout"),
    FailureKind.WORKER_LOST: gettext_lazy("Worker lost"),
    FailureKind.INTERRUPTED: gettext_lazy("Interrupted"),
    FailureKind.BUSINESS: gettext_lazy("Business failure"),
    FailureKind.UNKNOWN_TYPE: gettext_lazy("Unknown type"),
}


@dataclass(frozen=True, slots=True)
class Act:
    """Something that can be done to a job. `why`: the reason when it can't be; `url`: the name of its address."""

    name: str
    label: Promise
    icon: str
    url: str
    why: str


@dataclass(frozen=True, slots=True)
class Row:
    """A job in the list. `sub` is the line under its state, `until` a countdown in it (seconds); `gone`: deleted."""

    job: dict[str, Any]
    state: str
    sub: str
    until: float | None
    progress: int | None
    preview: str
    attempt: int
    acts: Sequence[Act]
    gone: bool = False

    @property
    def can(self) -> str:
        """The acts that apply, for the script that selects."""
        return " ".join(act.name for act in self.acts if not act.why and act.name != "run_now")


def row(job: dict[str, Any]) -> Row:
    """The job (a row of `queries.rows`) in words."""
    sub, until, progress = _sub(job)
    return Row(job, job_state(job), sub, until, progress, preview(job["fields"]), attempt(job), _acts(job))


def rows(found: Sequence[dict[str, Any]], ids: Sequence[UUID]) -> list[Row]:
    """A row for each id: those that are not found any more are deleted, and say so in their place."""
    by_id = {job["id"]: job for job in found}
    return [row(by_id[id_]) if id_ in by_id else _gone(id_) for id_ in ids]


def _gone(id_: UUID) -> Row:
    return Row({"id": id_}, "", _("Deleted"), None, None, "", 0, (), gone=True)


def _sub(job: Mapping[str, Any]) -> tuple[str, float | None, int | None]:
    """The line under the state, the countdown in it, and the progress."""
    state, waiting = job["state"], job["waiting_for"]
    line: str = ""
    if state == State.PROCESSING:
        if job["cancelling"]:
            return _("cancelling"), None, None
        return job["stage"], None, job["progress"] or None
    if state == State.SCHEDULED and job["run_at"] is not None:
        words = {Waiting.RETRY: _("retry in"), Waiting.LOCK: _("tries again in")}
        return words.get(waiting, _("in")), job["due_in"], None
    if state == State.SCHEDULED:
        line = str(GATES.get(waiting, waiting))
        if job["gate"] and waiting in {Waiting.CONCURRENCY_KEY, Waiting.PAUSE}:
            line = f"{line}: {job['gate']}"
    elif state == State.ENQUEUED:
        line = _("queue paused") if job["queue_paused"] else _("first in its queue") if job["first_in_queue"] else ""
    elif state == State.FAILED:
        line = job["error_type"] if job["failure_kind"] == FailureKind.ERROR and job["error_type"] else ""
        line = line or str(FAILURES.get(job["failure_kind"], job["error_type"] or ""))
    elif state == State.CANCELLED and job["cancel_requested_by"]:
        line = _("by %(who)s") % {"who": wording.actor_name(job["cancel_requested_by"])}
    return line, None, None


def _acts(job: Mapping[str, Any]) -> list[Act]:
    reasons = why_not(job, cancelling=job["cancelling"])
    acts = [
        Act("cancel", gettext_lazy("Cancel"), "cancelar", "tarefa-cancelar", reasons[What.CANCEL]),
        Act("requeue", gettext_lazy("Requeue"), "voltar", "tarefa-reenfileirar", reasons[What.REQUEUE]),
        Act("delete", gettext_lazy("Delete"), "lixo", "tarefa-excluir", reasons[What.DELETE]),
    ]
    if job["state"] == State.SCHEDULED:
        acts.insert(0, Act("run_now", gettext_lazy("Run now"), "tocar", "tarefa-executar", reasons[What.RUN_NOW]))
    return acts
