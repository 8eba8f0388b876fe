"""The screen Promessas: three promises as sentences, their statements below, two days by the hour, the last storm."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dashboard.shared import PATIENT, shared
from dashboard.verdict import Verdict
from jobs import queries
from jobs.invariants import Promise
from jobs.promises import Promises, Standing, Statement, Told, promises, says
from jobs.wording import count, span

MARKS = {Standing.KEPT: "success", Standing.BROKEN: "failure", Standing.UNKNOWN: "cancelled"}
# What these statements name is no job, though a concurrency key may look like one.
OF_OTHERS = {
    "key_is_not_crowded", "probe_ends", "schedule_fires", "guards_stand", "messages_leave", "successes_are_counted",
}  # fmt: skip
A_ROW = 24  # hours
STEP, SIDE = 10, 8  # of the drawing: from one hour to the next, and an hour's square


@dataclass(frozen=True, slots=True)
class Broken:
    """A statement that does not hold. `ids`: text and, where it is one, the job; `age` in seconds, None: unknown."""

    statement: Statement
    ids: tuple[tuple[str, UUID | None], ...]
    age: float | None

    @property
    def said(self) -> str:
        """How many break it."""
        found = count(self.statement.count) + ("+" if self.statement.more else "")
        return ngettext("%(n)s breaks it", "%(n)s break it", self.statement.count) % {"n": found}


@dataclass(frozen=True, slots=True)
class Card:
    """A promise with its mark, its statements that do not hold, and the others."""

    name: Promise
    says: str
    mark: str
    standing: str
    broken: tuple[Broken, ...]
    others: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Square:
    """An hour in the drawing, at `x` and `y`; `shape` is its class: ok, ko or none."""

    x: int
    y: int
    shape: str


@dataclass(frozen=True, slots=True)
class TwoDays:
    """The drawing of the hours, the oldest first, in rows of a day, and what it says in words."""

    squares: tuple[Square, ...]
    width: int
    height: int
    looks: int
    bad: int


@dataclass(frozen=True, slots=True)
class Storm:
    """The last storm: the faults by kind, the most frequent first, and what was broken afterwards, in words."""

    report: queries.Storm
    faults: tuple[tuple[str, int], ...]
    struck: int
    broken: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Screen:
    """All that the screen shows; `old`: the last look says nothing of now."""

    verdict: Verdict
    cards: tuple[Card, ...]
    look: queries.Look | None
    old: bool
    days: TwoDays
    storm: Storm | None


def screen() -> Screen:
    """What is known now, which all viewers share for a few seconds. Raises a database error when it is away."""
    found = promises(shared("promises", PATIENT, queries.promises))
    return Screen(
        _verdict(found),
        tuple(_card(told, found.look) for told in found.told),
        found.look,
        found.old,
        _days(found.hours),
        None if found.storm is None else _storm(found.storm),
    )


def _verdict(found: Promises) -> Verdict:
    broken = sum(told.standing is Standing.BROKEN for told in found.told)
    if broken:
        words = ngettext("%(n)s of three is broken", "%(n)s of three are broken", broken) % {"n": count(broken)}
        return Verdict("failure", words)
    if found.look is None:
        return Verdict("cancelled", _("Nobody has looked yet"))
    if found.old:
        return Verdict("cancelled", _("Nobody has looked for %(span)s") % {"span": span(found.look.age)})
    if any(told.standing is Standing.UNKNOWN for told in found.told):
        return Verdict("cancelled", _("Not all could be looked at"))
    return Verdict("success", _("All three are kept"))


def _card(told: Told, look: queries.Look | None) -> Card:
    words = {Standing.KEPT: _("kept"), Standing.BROKEN: _("broken"), Standing.UNKNOWN: _("not known")}
    broken = tuple(_broken(one, look) for one in told.broken)
    others = tuple(one for one in told.statements if one.standing is not Standing.BROKEN)
    return Card(told.name, told.says, MARKS[told.standing], words[told.standing], broken, others)


def _broken(one: Statement, look: queries.Look | None) -> Broken:
    age = None
    if look is not None and one.since is not None:
        age = look.age + (look.at - one.since).total_seconds()
    jobs = one.name not in OF_OTHERS
    return Broken(one, tuple((text, _job(text) if jobs else None) for text in one.examples), age)


def _job(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _days(hours: Sequence[queries.Hour]) -> TwoDays:
    squares = tuple(
        Square(place % A_ROW * STEP, place // A_ROW * STEP, "none" if not hour.looks else "ko" if hour.bad else "ok")
        for place, hour in enumerate(hours)
    )
    rows = -(-len(hours) // A_ROW)
    looks, bad = sum(hour.looks for hour in hours), sum(hour.bad for hour in hours)
    return TwoDays(squares, A_ROW * STEP - STEP + SIDE, rows * STEP - STEP + SIDE, looks, bad)


def _storm(report: queries.Storm) -> Storm:
    faults = tuple(sorted(report.faults.items(), key=lambda pair: (-pair[1], pair[0])))
    return Storm(report, faults, sum(report.faults.values()), tuple(says(one.name) for one in report.broken))
