"""What needs a person, in one sentence a kind: what the cards of the Painel say at greater length."""

from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobs.queries import Concern, Kind
from jobs.wording import span
from workers.doctor.base import Level, Line, listed

type Facts = dict[str, Any]
# Of each kind: the sentence, and what to do.
WORDS: dict[Kind, Callable[[Facts], tuple[str, str]]] = {
    Kind.BROKER_AWAY: lambda f: (
        _("The broker (%(servers)s) is away.") % {"servers": listed(f["servers"])},
        _("Start it, or correct messaging.urls: messages wait in the outbox meanwhile."),
    ),
    Kind.REDIS_AWAY: lambda f: (
        _("%(down)d of %(servers)d Redis servers are away.") % f,
        _("Start them, or correct redis.urls."),
    ),
    Kind.WORKER_LOST: lambda f: (
        ngettext(
            "The worker %(name)s gives no sign of life and holds %(jobs)d job.",
            "The worker %(name)s gives no sign of life and holds %(jobs)d jobs.",
            f["jobs"],
        )
        % {"name": f["name"] or "?", "jobs": f["jobs"]},
        _("They return by themselves when its lease has ended; look at its machine."),
    ),
    Kind.QUEUE_UNSERVED: lambda f: (
        ngettext(
            "No worker serves the queue %(queue)s, in which %(waiting)d job waits.",
            "No worker serves the queue %(queue)s, in which %(waiting)d jobs wait.",
            f["waiting"],
        )
        % f,
        _("Start a worker with this queue in worker.queues."),
    ),
    Kind.TYPE_UNKNOWN: lambda f: (
        ngettext(
            "No worker of the queue %(queue)s knows the type %(type)s; %(waiting)d job waits for one.",
            "No worker of the queue %(queue)s knows the type %(type)s; %(waiting)d jobs wait for one.",
            f["waiting"],
        )
        % f,
        _("Start a worker whose handlers have it."),
    ),
    Kind.CIRCUIT_OPEN: lambda f: (
        ngettext(
            "The breaker of %(type)s is open for %(span)s; %(waiting)d job waits behind it.",
            "The breaker of %(type)s is open for %(span)s; %(waiting)d jobs wait behind it.",
            f["waiting"],
        )
        % {"type": f["type"], "waiting": f["waiting"], "span": span(f["open_for"])},
        _("See to what this type calls: one job is tried from time to time, and closes it."),
    ),
    Kind.SUSPECT: lambda f: (
        ngettext(
            "A job of the type %(type)s lost its worker %(lost_count)d time: %(job)s.",
            "A job of the type %(type)s lost its worker %(lost_count)d times: %(job)s.",
            f["lost_count"],
        )
        % f,
        _("It may be what kills them: look at its handler before it is tried again."),
    ),
    Kind.MODULE_BROKEN: lambda f: (
        _("The module %(module)s can't be imported: %(error)s.") % {"module": f["module"], "error": f["error"]},
        _("Correct it, and restart the workers."),
    ),
    Kind.HANDLER_STUCK: lambda f: (
        _("The handler %(type)s does not stop on %(worker)s.") % f,
        _("The line that it stands in is on the screen Workers."),
    ),
    Kind.OUTBOX_LATE: lambda f: (
        ngettext(
            "%(waiting)d message waits for the broker, %(failing)d refused.",
            "%(waiting)d messages wait for the broker, %(failing)d of them refused.",
            f["waiting"],
        )
        % f,
        _("The broker says why: %(error)s") % {"error": f["last_error"] or "–"},
    ),
    Kind.WORKER_TROUBLED: lambda f: (
        _("Workers have trouble with %(part)s: %(error)s (%(names)s).")
        % {"part": f["part"], "error": f["error"], "names": listed(f["seen_by"])},
        _("Look at the logs of these workers."),
    ),
    Kind.CAUSE_GREW: lambda f: (
        ngettext(
            "%(added)d job of %(type)s failed in the last hour: %(error)s.",
            "%(added)d jobs of %(type)s failed in the last hour for one cause: %(error)s.",
            f["added"],
        )
        % {"added": f["added"], "type": f["type"], "error": f["error_type"] or f["message"] or "?"},
        _("See one of them on the screen Dead letters, and requeue all of the cause at once."),
    ),
    Kind.PAUSED: lambda f: (
        _("Paused for %(span)s: %(scope)s %(value)s.") % {**f, "span": span(f["since_for"])},
        _("Resume it on the screen Queues when the reason has gone."),
    ),
}


def told(concern: Concern) -> Line:
    """The concern as a line."""
    says, advice = WORDS[concern.kind](concern.facts)
    return Line(Level.ATTENTION, str(concern.kind), says, advice, {"subject": concern.subject})
