"""What the page of one job shows, worked out once for the page and for its live parts."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from dashboard import stacks
from dashboard.possible import why_not
from dashboard.pretty import Shown, pretty
from dashboard.timeline import OUTCOME_MARKS, SHOWN, outcome_word, steps
from jobs import wording
from jobs.conf import conf
from jobs.queries.glance import Glance
from jobs.reasons import explained
from jobs.registry import catalogue
from jobs.states import FINAL, PARKED, Outcome, State
from jobs.text import signal_name

PARTS = {State.PROCESSING: "running", State.SUCCEEDED: "ended", State.FAILED: "ended", State.CANCELLED: "ended"}


@dataclass(frozen=True, slots=True)
class Attempt:
    """A row of the attempts. `wait` in seconds until the next one, None where none followed; `left` counts down."""

    ordinal: int
    mark: str
    word: str
    worker: str
    worker_id: UUID | None
    started_at: datetime
    duration: float
    wait: float | None
    left: float | None
    notes: list[str]
    chosen: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """The error of an execution, or of the job when `ordinal` is None."""

    ordinal: int | None
    type: str
    message: str
    stack: stacks.Stack | None
    text: str


@dataclass(frozen=True, slots=True)
class Act:
    """A button: `reason` says why it does not apply, "" when it does."""

    reason: str
    form: str = ""


def worker_name(job: Mapping[str, Any]) -> str:
    """The name of the worker that runs the job, as the claim wrote it; its id where the label has none."""
    label = job["worker_label"]
    name = label.get("name") if isinstance(label, dict) else None
    return str(name or job["worker_id"] or "")


def context(found: Glance, *, chosen: int | None = None, every_step: bool = False, may: bool = True) -> dict[str, Any]:
    """What the templates of the page need; `chosen`: the execution whose error and log are shown."""
    job = found.job
    state = State(job["state"])
    parked = state is State.SCHEDULED and job["waiting_for"] in PARKED
    names = {row["ordinal"]: row["worker_name"] or "" for row in found.attempts}
    if state is State.PROCESSING:
        names[job["executions"]] = worker_name(job)
    line = steps(job, found.changes, names)
    return {
        "job": job,
        "state": str(State.ENQUEUED if parked else state),
        "parked": parked,
        "cancelling": state is State.PROCESSING and job["cancel_requested_at"] is not None,
        "final": state in FINAL,
        "acts": acts(job, may=may),
        "part": f"dashboard/tarefa/now_{PARTS.get(state, 'waiting')}.html",
        "worker": worker_name(job),
        "lost": found.returns_in is not None,
        "returns_in": found.returns_in,
        "lease_ago": _lease_ago(job),
        "last": found.attempts[-1] if found.attempts else None,
        "whys": explained(job),
        "cancelled_by": wording.actor_name(job["cancel_requested_by"]),
        "line": line if every_step else line[:SHOWN],
        "every_step": every_step,
        "steps": found.steps,
        "hidden_steps": 0 if every_step else max(0, found.steps - SHOWN),
        "attempts": attempts(found, chosen)[::-1],
        "uncounted": sum(not row["counted"] for row in found.attempts),
        "failure": failure(found, chosen),
        "letter": found.letter,
        "result": pretty(job["result"]) if job["result"] is not None else None,
        "chosen": chosen,
    }


def _lease_ago(job: Mapping[str, Any]) -> float | None:
    """How long ago the lease was renewed: the engine writes its end only, a lease's length ahead."""
    left = job["lease_left"]
    return None if left is None else max(0.0, conf().worker.lease_duration - float(left))


def acts(job: Mapping[str, Any], *, may: bool) -> dict[str, Act]:
    """What can be done to a job in this state, and why the rest can't."""
    state = State(job["state"])
    reasons = why_not(job, cancelling=job["cancel_requested_at"] is not None)
    if not may:
        reasons = dict.fromkeys(reasons, _("Your user may look and not act"))
    forms = {"cancel": "f-stop" if state is State.PROCESSING else "f-cancel", "requeue": "f-requeue"}
    forms |= {"delete": "f-delete", "run_now": "f-now"}
    return {str(act): Act(reason, forms[act]) for act, reason in reasons.items()}


def attempts(found: Glance, chosen: int | None) -> list[Attempt]:
    """The executions that ended, oldest first."""
    rows = []
    for place, row in enumerate(found.attempts):
        after = found.attempts[place + 1] if place + 1 < len(found.attempts) else None
        started = after["started_at"] if after is not None else found.job["claimed_at"]
        wait = (started - row["ended_at"]).total_seconds() if started is not None else None
        left = found.job["due_in"] if after is None and found.job["state"] == State.SCHEDULED else None
        took = row["duration"]
        if took is None:
            took = (row["ended_at"] - row["started_at"]).total_seconds()
        rows.append(
            Attempt(
                row["ordinal"],
                OUTCOME_MARKS[Outcome(row["outcome"])],
                outcome_word(row["outcome"], row["error_type"]),
                row["worker_name"] or "",
                row["worker_id"],
                row["started_at"],
                took,
                None if wait is None else max(0.0, wait),
                left,
                _notes(row),
                row["ordinal"] == chosen,
            )
        )
    return rows


def _notes(row: Mapping[str, Any]) -> list[str]:
    """What else is known of an execution: how its process ended, whether it counted, whether its owner came back."""
    notes = []
    if row["tries"] > 1:
        notes.append(_("%(n)d tries within it") % {"n": row["tries"]})
    if row["signal"] is not None:
        notes.append(_("signal %(name)s") % {"name": signal_name(row["signal"]) or row["signal"]})
    elif row["exit_code"] is not None:
        notes.append(_("exit code %(code)d") % {"code": row["exit_code"]})
    if row["peak_memory"] is not None:
        notes.append(_("peak memory %(size)s") % {"size": wording.size(row["peak_memory"])})
    if not row["counted"]:
        notes.append(_("not counted"))
    if row["discarded_at"] is not None:
        late = max(0.0, (row["discarded_at"] - row["ended_at"]).total_seconds())
        notes.append(_("came back %(span)s later; result discarded") % {"span": wording.span(late)})
    return notes


def failure(found: Glance, chosen: int | None) -> Failure | None:
    """The error to show: of the chosen execution; else the last one, while the job has not got over it."""
    job = found.job
    rows: Sequence[Mapping[str, Any]] = [row for row in found.attempts if row["error_type"]]
    if chosen is not None:
        rows = [row for row in rows if row["ordinal"] == chosen]
    elif job["state"] in {State.SUCCEEDED, State.PROCESSING} or not (job["error_type"] or job["failure_kind"]):
        rows = []
    elif not rows:
        message = job["error_message"] or ""
        return Failure(None, job["error_type"] or "", message, None, f"{job['error_type'] or ''}: {message}")
    if not rows:
        return None
    row = rows[-1]
    text = row["stack"] or f"{row['error_type']}: {row['error_message'] or ''}"
    stack = stacks.parse(row["stack"]) if row["stack"] else None
    return Failure(row["ordinal"], row["error_type"], row["error_message"] or "", stack, text)


def schema_of(type_name: str) -> dict[str, Any] | None:
    """The JSON schema of a type's payload, None where the type is not registered here."""
    return catalogue.schema(type_name) if catalogue.get(type_name) is not None else None


def payload(job: Mapping[str, Any]) -> Shown:
    """The payload as it may be shown: fields that the type's schema marks secret are masked."""
    return pretty(job["payload"], schema_of(job["type"]))


def curl(job: Mapping[str, Any], shown: Shown, address: str, *, key: bool) -> str:
    """A command that enqueues the same job. What was masked or cut in the payload is so here too."""
    body: dict[str, Any] = {"type": job["type"], "queue": job["queue"]}
    body |= {name: job[name] for name in ("priority", "unique_key") if job[name]}
    if job["tags"]:
        body["tags"] = job["tags"]
    head = json.dumps(body, ensure_ascii=False)[:-1]
    data = shlex.quote(f'{head}, "payload": {shown.text}}}')
    secret = ' -H "X-Turno-Key: $TURNO_KEY"' if key else ""
    return f"curl -s{secret} -H 'Content-Type: application/json' \\\n  -d {data} {shlex.quote(address)}/api/jobs"
