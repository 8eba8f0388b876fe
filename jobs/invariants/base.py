"""What an invariant is: a statement that selects whatever breaks it, with its promise, its sentence and its advice."""

from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop


class Promise(StrEnum):
    """The three promises of the house, in their order."""

    LOST = "nothing_lost"
    TWICE = "nothing_twice"
    TRUTH = "truth"

    @property
    def says(self) -> str:
        """The promise, in the reader's language."""
        return _(SAYS[self])


SAYS = {
    Promise.LOST: gettext_noop("No accepted job is lost."),
    Promise.TWICE: gettext_noop("No attempt runs twice."),
    Promise.TRUTH: gettext_noop("What you see is true."),
}


@dataclass(frozen=True, slots=True)
class Invariant:
    """What always holds; or, where it is `soon`, a margin after whatever shook it, while somebody leads.

    `wrong`: the SELECT of the `id` of each thing that breaks it; it may name the tables `looked` and `parked` of
    `jobs.invariants.scope`. `broker`: it is of interest only where a broker carries the work. `says` (what holds) and
    `advice` (what to do when it does not) are messages for gettext.
    """

    name: str
    promise: Promise
    says: str
    advice: str
    wrong: str
    soon: bool = False
    broker: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """An invariant that is broken: by how many (`more`: that many at least), and the ids of five of them at most."""

    name: str
    promise: Promise
    count: int
    examples: tuple[str, ...]
    says: str
    advice: str
    more: bool = False

    def __str__(self) -> str:
        ids = ", ".join(self.examples) + (", …" if self.count > len(self.examples) else "")
        return f"{self.name}: {self.count}{'+' if self.more else ''} ({ids})"
