"""Why a waiting job does not run, in sentences: what stands in its way, and what would help."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dashboard import wording
from dashboard.timeline import WAITS, actor_name
from jobs.queries.circuits import CircuitRow
from jobs.queries.pauses import PauseRow
from jobs.queries.waiting import COUNTED, Hindrances, Message
from jobs.states import TIMED, State, Waiting


@dataclass(frozen=True, slots=True)
class Why:
    """One reason: `mark` is a mark's name, `text` the sentence, `note` what to add, `code` a command that would help;
    `left` (seconds) is a countdown beside the text, `since` a clock that goes on from there."""

    mark: str
    text: str
    note: str = ""
    code: str = ""
    left: float | None = None
    since: float | None = None


def why(job: Mapping[str, Any], found: Hindrances | None) -> list[Why]:
    """The reasons, the strongest first; empty for a job that does not wait."""
    if job["state"] == State.SCHEDULED and job["waiting_for"] in TIMED:
        return [_timed(job)]
    if found is None:
        return []
    if job["state"] == State.SCHEDULED:
        parked = [_parked(job, found)]
    else:  # it is parked when its turn comes, unless it is the one that is tried
        parked = [_behind_a_breaker(found.circuit)] if found.circuit and found.circuit.probe != job["id"] else []
    sent = _message(found.message) if found.message is not None else []
    ends = _ends(job, found) if job["waiting_for"] == Waiting.UNKNOWN_TYPE else []
    return [*parked, *map(_paused, found.pauses), *_unserved(job, found), *ends, *sent, *_place(job, found)]


def _timed(job: Mapping[str, Any]) -> Why:
    note = wording.stamp(job["run_at"])
    return Why("scheduled", str(WAITS[Waiting(job["waiting_for"])]), note, left=max(0.0, job["due_in"] or 0.0))


def _parked(job: Mapping[str, Any], found: Hindrances) -> Why:
    waiting = Waiting(job["waiting_for"])
    if waiting is Waiting.UNKNOWN_TYPE and found.type_served:
        return Why("queued", str(WAITS[waiting]), _("One has it now: it goes back to its queue within a minute."))
    if waiting is Waiting.UNKNOWN_TYPE:
        note = _("It goes back to its queue by itself as soon as a live worker of the queue has it.")
        return Why("queued", str(WAITS[waiting]), note, since=found.grace.unserved_for if found.grace else None)
    if waiting is Waiting.CIRCUIT:
        return _behind_a_breaker(found.circuit)
    note = _("Gate: %(gate)s") % {"gate": job["gate"]} if job["gate"] else ""
    return Why("paused" if waiting is Waiting.PAUSE else "queued", str(WAITS[waiting]), note)


def _behind_a_breaker(circuit: CircuitRow | None) -> Why:
    if circuit is None:
        return Why("queued", _("The breaker of its type has closed."), _("It goes back to its queue in a moment."))
    what = {
        "failures": wording.number(circuit.failures),
        "executions": wording.number(circuit.executions),
        "span": wording.limit(circuit.span),
    }
    note = _("%(failures)s of %(executions)s executions failed within %(span)s.") % what
    if circuit.retry_in is None:
        tried = _("One job is being tried; when it succeeds, the others go on.")
        return Why("queued", _("The breaker of its type is half-open."), f"{note} {tried}", since=circuit.open_for)
    if circuit.retry_in == 0:
        return Why("queued", _("The breaker of its type lets one job through in a moment."), note)
    return Why("queued", _("The breaker of its type is open. One job is tried in"), note, left=circuit.retry_in)


def _paused(pause: PauseRow) -> Why:
    what = {"value": pause.value, "span": wording.span(pause.since_for // 60 * 60 or pause.since_for)}
    text = {
        "queue": _("Queue %(value)s has been paused for %(span)s."),
        "type": _("Type %(value)s has been paused for %(span)s."),
        "tag": _("Tag %(value)s has been paused for %(span)s."),
        "key": _("Key %(value)s has been paused for %(span)s."),
    }[pause.scope] % what
    notes = [pause.reason] if pause.reason else []
    if pause.who:
        notes.append(_("By %(who)s.") % {"who": actor_name(pause.who)})
    if pause.until is not None:
        notes.append(_("Until %(instant)s.") % {"instant": wording.stamp(pause.until)})
    return Why("paused", text, " · ".join(notes))


def _message(message: Message) -> list[Why]:
    """Where its message is: a worker of this transport hears of the job by it alone."""
    if message.waiting and message.failures:
        said = _("The broker does not take its message; it is sent again.")
        return [Why("failure", said, message.error and _(message.error), left=message.retry_in)]
    if message.waiting:
        return [Why("queued", _("It waits to be announced to the broker."), since=message.age)]
    if message.age is None:  # just announced, or by a version that did not say so
        return []
    return [Why("queued", _("Its message is with the broker."), since=message.age)]


def _unserved(job: Mapping[str, Any], found: Hindrances) -> Iterator[Why]:
    if not found.queue_served:
        yield Why(
            "failure",
            _("No live worker serves the queue %(queue)s.") % {"queue": job["queue"]},
            _("It runs as soon as one starts:"),
            f"python manage.py runworker --queues {job['queue']}:4",
        )
    elif not found.type_served:
        note = _("Its handler's module is missing there, can't be imported, or --types leaves it out.")
        if found.unloaded:
            note = _("Handler not loadable: %(modules)s.") % {"modules": "; ".join(found.unloaded)}
        yield Why("failure", _("No live worker of this queue has the type %(type)s.") % {"type": job["type"]}, note)


def _ends(job: Mapping[str, Any], found: Hindrances) -> list[Why]:
    """When a job of an unknown type is given up."""
    if found.grace is not None:
        note = _("Unless a worker of the queue %(queue)s has its type before.") % {"queue": job["queue"]}
        return [Why("scheduled", _("It ends as failed in"), note, left=found.grace.fails_in)]
    if not found.queue_served or any(pause.scope == "queue" for pause in found.pauses):
        return [Why("paused", _("It does not end as failed while no worker takes jobs of its queue."))]
    return []


def _place(job: Mapping[str, Any], found: Hindrances) -> Iterator[Why]:
    if found.ahead is None:
        return
    if found.ahead > COUNTED:
        text = _("More than %(n)s jobs are ahead of it in the queue.") % {"n": wording.number(COUNTED)}
    elif found.ahead:
        text = ngettext(
            "%(n)s job is ahead of it in the queue.", "%(n)s jobs are ahead of it in the queue.", found.ahead
        ) % {"n": wording.number(found.ahead)}
    else:
        text = _("It is the next one of its queue.")
    note = ""
    if found.queue_served and found.slots and found.busy >= found.slots:
        note = ngettext(
            "The only slot that live workers have for this queue is busy.",
            "All %(n)s slots that live workers have for this queue are busy.",
            found.slots,
        ) % {"n": wording.number(found.slots)}
    elif found.queue_served and found.type_served and not found.pauses and not found.ahead and not _unsent(found):
        note = _("A worker takes it in a moment.")
    yield Why("queued", text, note)


def _unsent(found: Hindrances) -> bool:
    return found.message is not None and found.message.waiting
