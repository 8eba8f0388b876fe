"""How the promises stand: what the leader's last look has found, told of each promise and of each of its statements."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.utils.translation import gettext as _

from jobs import queries
from jobs.conf import conf
from jobs.invariants import INVARIANTS, Invariant, Promise

OLD = 180.0  # seconds: of three looks none has come


class Standing(StrEnum):
    """Of a promise or a statement: kept, broken, or nobody knows."""

    KEPT = "kept"
    BROKEN = "broken"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Statement:
    """An invariant in words, as the last look has it. Of a broken one: how many break it (`more`: that many at least),
    some of their ids, the instant `since` which it is so, and what to do (`advice`)."""

    name: str
    says: str
    standing: Standing
    advice: str
    count: int = 0
    more: bool = False
    examples: tuple[str, ...] = ()
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """A promise with its statements, the broken ones first."""

    name: Promise
    standing: Standing
    statements: tuple[Statement, ...]

    @property
    def says(self) -> str:
        """The promise in the reader's language."""
        return self.name.says

    @property
    def broken(self) -> list[Statement]:
        """Its statements that do not hold."""
        return [one for one in self.statements if one.standing is Standing.BROKEN]


@dataclass(frozen=True, slots=True)
class Promises:
    """All three, with the look that this is known by. `standing`: the worst of them. `old`: that look is too old to say
    anything of now, so that nothing but what was broken is known."""

    standing: Standing
    told: tuple[Told, ...]
    look: queries.Look | None
    old: bool
    hours: Sequence[queries.Hour]
    storm: queries.Storm | None


def promises(found: queries.Promises | None = None) -> Promises:
    """How they stand, in the reader's language; `found` is what is known already. Raises a database error when the
    database is away."""
    found = queries.promises() if found is None else found
    look = found.last
    old = look is not None and look.age > OLD
    told = tuple(_told(promise, look, old) for promise in Promise)
    return Promises(_worst([one.standing for one in told]), told, look, old, found.hours, found.storm)


def says(name: str) -> str:
    """What the invariant of this name says, in the reader's language; the name of one that there is no more."""
    return next((_(one.says) for one in INVARIANTS if one.name == name), name)


def _told(promise: Promise, look: queries.Look | None, old: bool) -> Told:
    broker = conf().messaging.broker
    asked = [one for one in INVARIANTS if one.promise is promise and (broker or not one.broker)]
    statements = [_statement(one, look, old) for one in asked]
    statements.sort(key=lambda one: one.standing is not Standing.BROKEN)  # else as they are written
    return Told(promise, _worst([one.standing for one in statements]), tuple(statements))


def _statement(one: Invariant, look: queries.Look | None, old: bool) -> Statement:
    broken = next((found for found in look.broken if found.name == one.name), None) if look is not None else None
    words = _(one.says), _(one.advice)
    if broken is not None:
        return Statement(
            one.name, words[0], Standing.BROKEN, words[1], broken.count, broken.more, broken.examples, broken.since
        )
    asked = look is not None and not old and one.name not in look.unanswered and (look.attended or not one.soon)
    return Statement(one.name, words[0], Standing.KEPT if asked else Standing.UNKNOWN, words[1])


def _worst(standings: Sequence[Standing]) -> Standing:
    for worst in (Standing.BROKEN, Standing.UNKNOWN):
        if worst in standings:
            return worst
    return Standing.KEPT
