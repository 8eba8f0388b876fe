"""The editor of a recurring job: what was typed, what is wrong with it by field, saving it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from dashboard import reads
from dashboard.schedulewords import MISFIRES, OVERLAPS
from dashboard.zone import label, zone_of
from jobs import jsonvalues, schedules
from jobs.bounds import PRIORITIES
from jobs.cron import zone_names
from jobs.errors import Conflict, Invalid, Refused
from jobs.queries.schedules import ScheduleRow, schedule
from jobs.registry import catalogue
from jobs.schedules import Wanted
from jobs.text import clean

NAMES = ("name", "type", "cron", "timezone", "overlap", "misfire", "payload", "queue", "priority")
LONGEST = 2000  # characters of a field; of the payload its own limit
LONGEST_PAYLOAD = 1024 * 1024
MOST_TYPES = 2000


@dataclass(slots=True)
class Form:
    """What stands in the fields, and what is wrong: `errors` by field, `alert` with the whole (title, what to do).

    `seen` is the digest of what was stored when the form was opened.
    """

    values: dict[str, str]
    seen: str = ""
    errors: dict[str, list[str]] = field(default_factory=dict)
    alert: tuple[str, str] | None = None

    @property
    def wrong(self) -> int:
        """How many fields are to be corrected."""
        return len(self.errors)

    @property
    def places(self) -> list[tuple[str, list[str]]]:
        """What is wrong with each field but the payload."""
        return [(name, self.errors.get(name, [])) for name in NAMES if name != "payload"]

    @property
    def wrong_members(self) -> list[tuple[str, list[str]]]:
        """What is wrong with the payload, by its own fields ("" for the whole)."""
        found = [(name.partition("."), texts) for name, texts in self.errors.items()]
        return [(parts[2], texts) for parts, texts in found if parts[0] == "payload"]


def blank(data: Mapping[str, str]) -> Form:
    """An empty form; what the address names (`tipo`) stands in it already."""
    type_ = clean(data.get("tipo", ""), 200)
    values = dict.fromkeys(NAMES, "") | {"overlap": "skip", "misfire": "once", "type": type_}
    values["timezone"] = timezone.get_current_timezone_name()
    values["payload"] = skeleton(type_)
    return Form(values)


def of_row(row: ScheduleRow) -> Form:
    """A form with what is stored."""
    values = {name: getattr(row, name) for name in NAMES if name != "payload"}
    shown = {name: "" if value is None else str(value) for name, value in values.items()}
    return Form(shown | {"payload": json.dumps(row.payload, indent=2, ensure_ascii=False)}, digest(row))


def digest(row: ScheduleRow) -> str:
    """What stands for all that the form edits: firing changes nothing of it, and somebody else's edit does."""
    values = [getattr(row, name) for name in NAMES]
    return hashlib.blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=9).hexdigest()


def of_post(data: Mapping[str, str]) -> Form:
    """A form with what was typed, as it was typed."""
    values = {name: data.get(name, "")[: LONGEST_PAYLOAD if name == "payload" else LONGEST] for name in NAMES}
    return Form(values, data.get("seen", "")[:64])


def wanted(form: Form) -> Wanted:
    """What the form asks for. Raises Invalid, with everything that is wrong by field."""
    values = {name: value.strip() for name, value in form.values.items()}
    errors: dict[str, Sequence[Any]] = {}
    payload: Any = {}
    try:
        payload = jsonvalues.loads((values["payload"] or "{}").encode("utf-8", "surrogatepass"))
    except Invalid as refused:
        errors["payload"] = refused.errors["body"]
    asked = Wanted(
        name=values["name"],
        type=values["type"],
        cron=values["cron"],
        timezone=values["timezone"],
        payload=payload,
        queue=values["queue"] or None,
        priority=_priority(values["priority"], errors),
        overlap=values["overlap"],
        misfire=values["misfire"],
    )
    try:
        schedules.check(asked)
    except Invalid as refused:
        found = {
            name: texts
            for name, texts in refused.errors.items()
            if "payload" not in errors or name.partition(".")[0] != "payload"
        }
        errors = {**found, **errors}
    if errors:
        raise Invalid(_("Some fields are to be corrected."), errors=errors)
    return asked


def _priority(text: str, errors: dict[str, Sequence[Any]]) -> int | None:
    if not text:
        return None
    least, most = PRIORITIES
    digits = text.replace("−", "-").removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) < 4 and least <= int(text.replace("−", "-")) <= most:
        return int(text.replace("−", "-"))
    errors["priority"] = [_("Expected a whole number from %(least)d to %(most)d.") % {"least": least, "most": most}]
    return None


def problems(form: Form) -> dict[str, list[str]]:
    """What is wrong with a form, by field; nothing is written."""
    try:
        wanted(form)
    except Invalid as refused:
        return {name: [str(text) for text in texts] for name, texts in refused.errors.items()}
    return {}


def save(form: Form, row: ScheduleRow | None, actor: str) -> str:
    """Store what the form asks for; its name. Raises Invalid by field, or Conflict where somebody else has saved it
    since the form was opened. That it fires meanwhile, or is disabled, is no conflict."""
    asked = wanted(form)
    if row is None:
        schedules.create(asked, actor=actor)
        return asked.name
    for last in (False, False, False, False, True):
        if form.seen and digest(row) != form.seen:
            raise _moved()
        try:
            schedules.update(row.id, asked, seen=row.updated_at, actor=actor)
        except Conflict as refused:
            again = schedule(row.id) if refused.extra.get("reason") == "seen" and not last else None
            if again is None:
                raise
            row = again
        else:
            break
    return asked.name


def _moved() -> Conflict:
    text = _(
        "Somebody else has saved it since you opened it. What you typed is still here: look at what is stored in"
        " another tab, then load this page again and repeat what you need."
    )
    return Conflict(text, reason="seen")


def refuse(form: Form, refused: Refused) -> None:
    """Put into the form what a refusal says."""
    form.errors = {name: [str(text) for text in texts] for name, texts in refused.errors.items()}
    if not form.errors:
        form.alert = (str(refused.title), str(refused.detail))


def skeleton(type_: str) -> str:
    """What a payload of this type begins with: its required fields, with the examples that the type gives."""
    schema = _schema(type_)
    made = {}
    for name, told in schema.get("properties", {}).items():
        if name in schema.get("required", ()) and isinstance(told, dict):
            made[name] = next(iter(told.get("examples", ())), "")
    return json.dumps(made, indent=2, ensure_ascii=False)


def _schema(type_: str) -> dict[str, Any]:
    found = catalogue.get(type_) if type_ else None
    return found.schema() if found is not None else {}


@dataclass(frozen=True, slots=True)
class Member:
    """A field of the payload as the type declares it."""

    name: str
    kind: str
    required: bool
    text: str


def members(type_: str) -> list[Member]:
    """The fields that a type's payload has."""
    schema = _schema(type_)
    required = set(schema.get("required", ()))
    found = []
    for name, told in list(schema.get("properties", {}).items())[:60]:
        if isinstance(told, dict):
            found.append(Member(name, _kind(told), name in required, _said(told)))
    return found


def _said(told: Mapping[str, Any]) -> str:
    """What a field is for, in the active language where the catalogues have it."""
    text = str(told.get("description", ""))[:300]
    return _(text) if text else ""


def _kind(told: Mapping[str, Any]) -> str:
    """What kind of value a field takes, as its schema says it: the words that JSON schema has for it."""
    if isinstance(told.get("enum"), list):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in told["enum"][:8])
    if "const" in told:
        return json.dumps(told["const"], ensure_ascii=False)
    if isinstance(told.get("anyOf"), list):
        return " | ".join(dict.fromkeys(_kind(one) for one in told["anyOf"] if isinstance(one, dict)))
    if "$ref" in told:
        return "object"
    kind = told.get("type", "any")
    return str(told.get("format") or (" | ".join(kind) if isinstance(kind, list) else kind))


def choices(form: Form) -> dict[str, Any]:
    """What the selects offer."""
    types = sorted({*catalogue.names(), *([form.values["type"]] if form.values["type"] else [])})[:MOST_TYPES]
    near = dict.fromkeys([timezone.get_current_timezone_name(), "UTC", "America/Sao_Paulo"])
    zones = [(name, label(found)) for name in near if (found := zone_of(name))]
    return {
        "types": types,
        "zones": zones,
        "other_zones": sorted(zone_names() - near.keys()),
        "overlaps": list(OVERLAPS.items()),
        "misfires": list(MISFIRES.items()),
        "queues": sorted({depth.queue for depth in reads.depths()}),
        "most_priority": PRIORITIES[1],
        "least_priority": PRIORITIES[0],
    }
