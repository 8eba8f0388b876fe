"""Why a waiting job does not run, in sentences: what stands in its way, and what would help.

The one rule, for the API and the screens alike. Whatever came or went between two looks is said as it was seen.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from jobs import wording
from jobs.queries.circuits import CircuitRow
from jobs.queries.gates import COUNTED as MOST_BEFORE
from jobs.queries.gates import Gate, Other
from jobs.queries.pauses import PauseRow
from jobs.queries.waiting import COUNTED, Hindrances, Message, due_in, hindrances
from jobs.states import PARKED, TIMED, State, Waiting

WAITS: dict[Waiting, Promise] = {
    Waiting.DUE: gettext_lazy("It waits for its instant."),
    Waiting.RETRY: gettext_lazy("The last attempt failed; it waits before the next one."),
    Waiting.SNOOZE: gettext_lazy("Its handler asked to run later."),
    Waiting.LOCK: gettext_lazy("Its lock was held elsewhere; it tries again in a moment."),
    Waiting.PARENTS: gettext_lazy("It waits for other jobs to end first."),
    Waiting.CONCURRENCY_KEY: gettext_lazy("All places of its concurrency key are taken."),
    Waiting.TYPE_LIMIT: gettext_lazy("As many jobs of this type run as may run at once."),
    Waiting.RATE: gettext_lazy("As many jobs of this type have started as may start in this span."),
    Waiting.PAUSE: gettext_lazy("What it belongs to is paused."),
    Waiting.CIRCUIT: gettext_lazy("The breaker of its type is open."),
    Waiting.UNKNOWN_TYPE: gettext_lazy("No worker knows its type."),
}


@dataclass(frozen=True, slots=True)
class Why:
    """One reason: `mark` is a mark's name, `text` the sentence, `note` what to add, `code` a command that would help;
    `left` (seconds) is a countdown beside the text, `since` a clock that goes on from there. `kind`: what it is, for
    programs: a value of Waiting, or queue_unserved, type_unserved, gives_up, message or place. `help`: what would let
    the job run; `others`: the jobs that it waits for, and `more` how many there are besides."""

    kind: str
    mark: str
    text: str
    note: str = ""
    code: str = ""
    left: float | None = None
    since: float | None = None
    help: str = ""
    others: Sequence[Other] = ()
    more: int = 0


def explained(job: Mapping[str, Any]) -> list[Why]:
    """Why this job (its columns) does not run, as it is seen now; empty for one that does not wait."""
    return why(job, hindrances(dict(job)))


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
        if found.gate is not None:
            parked.append(_behind_a_limit(job, Waiting.CONCURRENCY_KEY, found.gate, found))
    sent = _message(found.message) if found.message is not None else []
    ends = _ends(job, found) if job["waiting_for"] == Waiting.UNKNOWN_TYPE else []
    return [*parked, *map(_paused, found.pauses), *_unserved(job, found), *ends, *sent, *_place(job, found)]


def _timed(job: Mapping[str, Any]) -> Why:
    waiting = Waiting(job["waiting_for"])
    left = job["due_in"] if "due_in" in job else due_in(dict(job))
    helps = _("Run now starts it without waiting.")
    return Why(
        waiting, "scheduled", str(WAITS[waiting]), wording.stamp(job["run_at"]), left=max(0.0, left or 0.0), help=helps
    )


def _parked(job: Mapping[str, Any], found: Hindrances) -> Why:
    if job["waiting_for"] not in PARKED:  # of a later version, in a cluster that is being upgraded
        return Why(str(job["waiting_for"]), "queued", str(job["waiting_for"]), since=found.since_for)
    waiting = Waiting(job["waiting_for"])
    if waiting is Waiting.UNKNOWN_TYPE:
        return _unknown(found)
    if waiting is Waiting.CIRCUIT:
        return _behind_a_breaker(found.circuit)
    if waiting is Waiting.PAUSE:
        gone = "" if found.pauses else _("It has been resumed: the job goes back to its queue in a moment.")
        return Why(waiting, "paused", str(WAITS[waiting]), gone, since=found.since_for)
    gate = found.gate or Gate()
    if waiting is Waiting.PARENTS:
        return _behind_parents(gate, found)
    return _behind_a_limit(job, waiting, gate, found)


def _unknown(found: Hindrances) -> Why:
    waiting = Waiting.UNKNOWN_TYPE
    if found.type_served:
        note = _("One has it now: it goes back to its queue within a minute.")
        return Why(waiting, "queued", str(WAITS[waiting]), note)
    note = _("It goes back to its queue by itself as soon as a live worker of the queue has it.")
    return Why(waiting, "queued", str(WAITS[waiting]), note, since=found.grace.unserved_for if found.grace else None)


def _behind_parents(gate: Gate, found: Hindrances) -> Why:
    waiting, note = Waiting.PARENTS, _("They have ended: it goes to its queue in a moment.")
    helps = ""
    if gate.taken:
        note = ngettext("%(n)s of them has not ended.", "%(n)s of them have not ended.", gate.taken) % {
            "n": wording.number(gate.taken)
        }
        helps = _("It goes on by itself when the last of them ends.")
    return Why(
        waiting, "queued", str(WAITS[waiting]), note, since=found.since_for, help=helps, others=gate.others,
        more=gate.more,
    )  # fmt: skip


def _behind_a_limit(job: Mapping[str, Any], waiting: Waiting, gate: Gate, found: Hindrances) -> Why:
    """A key, a type's limit or its rate: what is taken of how much, who has it, how many go before."""
    free = _("There is room now: it goes on in a moment.")
    told = {"gate": job["gate"] or job["concurrency_key"] or "", "taken": wording.number(gate.taken)}
    text, helps, left = str(WAITS[waiting]), "", None
    if waiting is Waiting.RATE:
        note, left = free, gate.rate.opens_in if gate.rate else None
        if gate.rate is not None and left is not None:
            told |= {"allowed": wording.number(gate.rate.allowed), "span": wording.limit(gate.rate.window)}
            text += " " + _("The next one may start in")
            note = _("%(allowed)s may start within %(span)s, and as many have.") % told
            helps = _("A higher rate of the type %(gate)s lets more start.") % told
        elif gate.rate is not None and gate.rate.promised:
            text = _("The starts that are left in this span are kept for jobs that were let through before it.")
            note = _("They wait for a worker.")
    elif gate.limit is None or gate.taken < gate.limit:
        note = free
    elif waiting is Waiting.CONCURRENCY_KEY:
        told["limit"] = wording.number(gate.limit)
        note = _("%(gate)s: %(taken)s of %(limit)s in use.") % told
        helps = _("It goes on by itself when one of these jobs ends; cancelling one lets it go on sooner.")
    else:
        told["limit"] = wording.number(gate.limit)
        note = _("Type %(gate)s: %(taken)s of %(limit)s in use.") % told
        helps = _("It goes on by itself when one of these jobs ends; a higher limit of the type lets more run at once.")
    before = _before(gate)
    return Why(
        waiting, "queued", text, note if left is not None or not before else f"{note} {before}",
        left=left, since=None if left is not None else found.since_for, help=helps, others=gate.others, more=gate.more,
    )  # fmt: skip


def _before(gate: Gate) -> str:
    if not gate.before:
        return ""
    if gate.before > MOST_BEFORE:
        return _("More than %(n)s others go on before it.") % {"n": wording.number(MOST_BEFORE)}
    return ngettext("%(n)s other goes on before it.", "%(n)s others go on before it.", gate.before) % {
        "n": wording.number(gate.before)
    }


def _behind_a_breaker(circuit: CircuitRow | None) -> Why:
    if circuit is None:
        return Why(
            Waiting.CIRCUIT,
            "queued",
            _("The breaker of its type has closed."),
            _("It goes back to its queue in a moment."),
        )
    what = {
        "failures": wording.number(circuit.failures),
        "executions": wording.number(circuit.executions),
        "span": wording.limit(circuit.span),
    }
    note = _("%(failures)s of %(executions)s executions failed within %(span)s.") % what
    if circuit.retry_in is None:
        tried = _("One job is being tried; when it succeeds, the others go on.")
        return Why(
            Waiting.CIRCUIT,
            "queued",
            _("The breaker of its type is half-open."),
            f"{note} {tried}",
            since=circuit.open_for,
        )
    if circuit.retry_in == 0:
        return Why(Waiting.CIRCUIT, "queued", _("The breaker of its type lets one job through in a moment."), note)
    return Why(
        Waiting.CIRCUIT,
        "queued",
        _("The breaker of its type is open. One job is tried in"),
        note,
        left=circuit.retry_in,
    )


def _paused(pause: PauseRow) -> Why:
    what = {"value": pause.value, "span": wording.limit(_steady(pause.since_for))}
    text = {
        "queue": _("Queue %(value)s has been paused for %(span)s."),
        "type": _("Type %(value)s has been paused for %(span)s."),
        "tag": _("Tag %(value)s has been paused for %(span)s."),
        "key": _("Key %(value)s has been paused for %(span)s."),
    }[pause.scope] % what
    notes = [pause.reason] if pause.reason else []
    if pause.who:
        notes.append(_("By %(who)s.") % {"who": wording.actor_name(pause.who)})
    if pause.until is not None:
        notes.append(_("Until %(instant)s.") % {"instant": wording.stamp(pause.until)})
    resumes = (
        _("It goes on by itself then; resuming lets it go on now.") if pause.until else _("Somebody has to resume it.")
    )
    return Why(Waiting.PAUSE, "paused", text, " · ".join(notes), help=resumes)


def _steady(seconds: float) -> float:
    """Whole seconds, and from a minute on whole minutes: what would be another text each second is another fragment."""
    return seconds // 60 * 60 or max(1.0, seconds // 1)


def _message(message: Message) -> list[Why]:
    """Where its message is: a worker of this transport hears of the job by it alone."""
    if message.waiting and message.failures:
        said = _("The broker does not take its message; it is sent again.")
        return [Why("message", "failure", said, message.error and _(message.error), left=message.retry_in)]
    if message.waiting:
        return [Why("message", "queued", _("It waits to be announced to the broker."), since=message.age)]
    if message.age is None:  # just announced, or by a version that did not say so
        return []
    return [Why("message", "queued", _("Its message is with the broker."), since=message.age)]


def _unserved(job: Mapping[str, Any], found: Hindrances) -> Iterator[Why]:
    if found.closed:  # whoever starts another worker gives it no slot either
        what = {"queue": job["queue"]}
        said = _("The queue %(queue)s has been given 0 slots: no worker starts anything of it.") % what
        helps = _("Give it slots again, on the screen of the queues or by PUT /api/queues/%(queue)s.") % what
        yield Why("queue_unserved", "paused", said, help=helps)
    elif not found.queue_served:
        yield Why(
            "queue_unserved",
            "failure",
            _("No live worker serves the queue %(queue)s.") % {"queue": job["queue"]},
            _("It runs as soon as one starts:"),
            f"python manage.py runworker --queues {job['queue']}:4",
        )
    elif not found.type_served:
        note = _("Its handler's module is missing there, can't be imported, or --types leaves it out.")
        if found.unloaded:
            note = _("Handler not loadable: %(modules)s.") % {"modules": "; ".join(found.unloaded)}
        said = _("No live worker of this queue has the type %(type)s.") % {"type": job["type"]}
        yield Why("type_unserved", "failure", said, note)


def _ends(job: Mapping[str, Any], found: Hindrances) -> list[Why]:
    """When a job of an unknown type is given up."""
    if found.grace is not None:
        note = _("Unless a worker of the queue %(queue)s has its type before.") % {"queue": job["queue"]}
        return [Why("gives_up", "scheduled", _("It ends as failed in"), note, left=found.grace.fails_in)]
    if not found.queue_served or any(pause.scope == "queue" for pause in found.pauses):
        return [Why("gives_up", "paused", _("It does not end as failed while no worker takes jobs of its queue."))]
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
    note = helps = ""
    if found.queue_served and found.slots and found.busy >= found.slots:
        helps = _("Another worker, or more slots for this queue, would let it run sooner.")
        note = ngettext(
            "The only slot that live workers have for this queue is busy.",
            "All %(n)s slots that live workers have for this queue are busy.",
            found.slots,
        ) % {"n": wording.number(found.slots)}
    elif (
        found.queue_served and found.type_served and not (found.closed or found.pauses or found.ahead or _unsent(found))
    ):
        note = _("A worker takes it in a moment.")
    more = max(0, found.busy - len(found.running)) if found.running else 0
    yield Why("place", "queued", text, note, help=helps, others=found.running, more=more)


def _unsent(found: Hindrances) -> bool:
    return found.message is not None and found.message.waiting
