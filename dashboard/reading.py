"""Parameters of an address: what makes sense is kept as it stands, what makes none is said in words beside its name."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.bounds import is_type
from jobs.errors import refused_fields

LONGEST = 200


def instant_of(text: str) -> datetime:
    """An instant in UTC; one without a zone is meant in the viewer's. Raises ValueError."""
    try:
        found = datetime.fromisoformat(text)
        found = found if timezone.is_aware(found) else timezone.make_aware(found)
        found.timestamp()
        return found.astimezone(UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(text) from error


def refuse(query: str, names: Iterable[str], errors: dict[str, str]) -> None:
    """For an act, which must not do what was half understood. Raises Invalid where anything is wrong, or strange."""
    found = dict(errors)
    for name, values in QueryDict(query).lists():
        if name not in names:
            found.setdefault(name[:LONGEST], _("There is no such parameter."))
        elif len(values) > 1:
            found.setdefault(name, _("This parameter may appear only once."))
    if found:
        raise refused_fields({name: [sentence] for name, sentence in found.items()})


@dataclass(slots=True)
class Reading:
    """One query string being read: each method takes one parameter, None for one that is missing or makes no sense."""

    data: QueryDict
    values: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """A text with single blanks, at most LONGEST characters."""
        value = " ".join(self.data.get(name, "").replace("\0", "").split())
        if not value:
            return None
        if len(value) > LONGEST:
            self.errors[name] = _("At most %(n)d characters.") % {"n": LONGEST}
            return None
        self.values[name] = value
        return value

    def wrong(self, name: str, sentence: str) -> None:
        """Say what is wrong with a parameter: its value is not kept."""
        self.values.pop(name, None)
        self.errors[name] = sentence

    def one_of(self, name: str, known: dict[str, Any]) -> Any:
        """What a known word stands for."""
        value = self.text(name)
        if value is None:
            return None
        if value not in known:
            self.wrong(name, _("Expected one of: %(known)s.") % {"known": ", ".join(known)})
        return known.get(value)

    def whole(self, name: str, least: int, most: int) -> int | None:
        """A whole number within bounds."""
        value = self.text(name)
        if value is None:
            return None
        digits = value.removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) < 9 and least <= int(value) <= most:
            return int(value)
        self.wrong(name, _("Expected a whole number from %(least)d to %(most)d.") % {"least": least, "most": most})
        return None

    def instant(self, name: str) -> datetime | None:
        """An instant."""
        value = self.text(name)
        if value is None:
            return None
        try:
            return instant_of(value)
        except ValueError:
            self.wrong(name, _("Expected a date and time such as 2026-01-31T14:00."))
            return None

    def identity(self, name: str) -> UUID | None:
        """A whole id."""
        value = self.text(name)
        try:
            return None if value is None else UUID(value)
        except ValueError:
            self.wrong(name, _("Expected a whole id."))
            return None

    def type(self, name: str) -> str | None:
        """What may be the name of a type."""
        value = self.text(name)
        if value is not None and not is_type(value):
            self.wrong(name, _("A type is made of lower-case letters, digits, dots, hyphens and underscores."))
            return None
        return value
