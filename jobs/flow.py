"""What people do to the flow of work: pause and resume a queue, a type, a tag or a key; settings of queues and types.

Thin over `jobs.transitions`, with the checks that every door shares.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from django.utils.translation import gettext as _

from jobs import events, transitions
from jobs.bounds import CONCURRENCY, KEY_LENGTH, PRIORITIES, QUEUE_SLOTS, REASON_LENGTH, TAG_LENGTH, is_type
from jobs.errors import NotFound, Text, refused_fields
from jobs.models import KnownType
from jobs.ratelimit import Limits, RateLimit, parse_rate
from jobs.registry import catalogue
from jobs.requests import check_instant, check_queue, check_text, check_whole
from jobs.text import clean
from jobs.transitions import Pause, QueueSettings

__all__ = [
    "KEEP",
    "SCOPES",
    "Limits",
    "Pause",
    "QueueSettings",
    "pause",
    "reset_limits",
    "resume",
    "set_limits",
    "set_queue",
]

SCOPES = ("queue", "type", "tag", "key")


class Keep(Enum):
    """Says of a setting that it stays as it is."""

    KEEP = "keep"


KEEP: Final = Keep.KEEP


class _Problems:
    """What is wrong with the fields of a call, by field."""

    def __init__(self) -> None:
        self._found: dict[str, list[Text]] = {}

    def report(self, name: str, text: str) -> None:
        """Note it."""
        self._found.setdefault(name, []).append(text)

    def under(self, name: str) -> Callable[[str, str], None]:
        """A `report` that calls the field `name`, whatever the check calls it."""
        return lambda _name, text: self.report(name, text)

    def raise_all(self) -> None:
        """Raises Invalid when there is something."""
        if self._found:
            raise refused_fields(self._found)


def _check_target(scope: object, value: object, problems: _Problems) -> None:
    report = problems.under("value")
    if scope not in SCOPES:
        problems.report("scope", _one_of_scopes())
    elif value is None:
        problems.report("value", _("Say what."))
    elif scope == "queue":
        check_queue(value, report)
    elif scope == "type":
        if not is_type(value):
            problems.report("value", _("Expected 1 to 200 characters of a-z, 0-9, '.', '_' and '-'."))
    else:
        check_text("value", value, TAG_LENGTH if scope == "tag" else KEY_LENGTH, report)


def pause(
    scope: str, value: str, *, reason: str = "", until: datetime | None = None, actor: str | None = None
) -> Pause:
    """Pause a queue, type, tag or key until `until` (an aware datetime; None: until somebody resumes it).

    What runs goes on; nothing of it starts any more. One that is paused already gets these words, person and end.
    Raises Invalid with `errors` by field (scope, value, until).
    """
    problems = _Problems()
    _check_target(scope, value, problems)
    check_instant(until, problems.under("until"))
    problems.raise_all()
    said = clean(reason, REASON_LENGTH)
    end = None if until is None else until.astimezone(UTC)
    made = transitions.pause(scope, value, reason=said, actor=actor, until=end)
    if made is None:
        raise refused_fields({"until": [_("Expected an instant in the future.")]})
    events.changed(topics=("queues", "jobs"))
    return made


def resume(scope: str, value: str, *, actor: str | None = None) -> Pause:
    """Lift a pause: what it held back goes on, by priority and age. Answers what it was.

    Raises Invalid for a scope that there is not (`errors` by field), and NotFound when nothing of that name is paused,
    whether or not it could be. `actor` is for whoever keeps a record.
    """
    if scope not in SCOPES:
        raise refused_fields({"scope": [_one_of_scopes()]})
    lifted = transitions.resume(scope, value) if value.isprintable() else None  # nothing else is ever paused
    if lifted is None:
        raise NotFound(_("The %(scope)s %(value)s is not paused.") % {"scope": _scope(scope), "value": value})
    events.changed(topics=("queues", "jobs"))
    return lifted


def _one_of_scopes() -> str:
    return _("Expected one of: %(names)s.") % {"names": ", ".join(SCOPES)}


def _scope(scope: str) -> str:
    return {"queue": _("queue"), "type": _("type"), "tag": _("tag"), "key": _("key")}[scope]


def set_queue(
    name: str,
    *,
    slots: int | Keep | None = KEEP,
    default_priority: int | Keep | None = KEEP,
    actor: str | None = None,
) -> QueueSettings:
    """Change the settings of a queue; None takes one back, KEEP leaves it.

    `slots`: how many jobs of it each of its workers runs at once, from 0 (none) to 1000; workers follow within a beat,
    and what runs goes on. `default_priority`: of jobs enqueued from now on to which neither the request nor their type
    gives one. Raises Invalid with `errors` by field (name, slots, default_priority). `actor` as in `resume`.
    """
    problems = _Problems()
    check_queue(name, problems.under("name"))
    given = {"slots": slots, "default_priority": default_priority}
    changes = {field: value for field, value in given.items() if not isinstance(value, Keep)}
    check_whole("slots", changes.get("slots"), QUEUE_SLOTS, problems.report)
    check_whole("default_priority", changes.get("default_priority"), PRIORITIES, problems.report)
    problems.raise_all()
    made = transitions.set_queue(
        name, slots=changes.get("slots"), default_priority=changes.get("default_priority"), changes=changes.keys()
    )
    events.changed(topics=("queues",))
    return made


def set_limits(
    type_name: str, *, max_running: int | None, rate_limit: RateLimit | str | None, actor: str | None = None
) -> Limits:
    """Change the limits of a type in the whole cluster: how many run at once, and how many start in a span of time,
    such as "100/m".

    None is no limit. They hold at once, and until `reset_limits`. Raises Invalid with `errors` by field (max_running,
    rate_limit), and NotFound for a type that nobody has seen.
    """
    problems = _Problems()
    check_whole("max_running", max_running, CONCURRENCY, problems.report)
    rate = None
    if rate_limit is not None:
        try:
            rate = parse_rate(rate_limit)
        except ValueError as error:
            problems.report("rate_limit", str(error))
    problems.raise_all()
    _require_type(type_name)
    made = Limits(max_running, rate)
    transitions.set_limits(type_name, made, actor=actor or "")
    events.changed(topics=("queues",))
    return made


def reset_limits(type_name: str, *, actor: str | None = None) -> Limits:
    """Let the limits that workers declare for a type hold again; answers them. Raises NotFound as `set_limits`."""
    _require_type(type_name)
    made = transitions.reset_limits(type_name)
    events.changed(topics=("queues",))
    return made


def _require_type(name: str) -> None:
    catalogue.load()
    if catalogue.get(name) is None and not (is_type(name) and KnownType.objects.filter(name=name).exists()):
        raise NotFound(_("There is no job type %(name)s.") % {"name": name})
