"""What a row of the catalogue is: a model with its flags, and what is expected of it."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.model.checker import MOST, Model, Verdict, check


@dataclass(frozen=True)
class Case:
    """A model in which `what` may happen: it holds."""

    model: type[Model]
    what: str
    flags: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.model.__name__.lower()}: {self.what}"


@dataclass(frozen=True)
class Mutant(Case):
    """The same without the guards `removed`: it breaks `promise`.

    `shown_by`: the rows of the table of laws whose removed guards break the real thing, by their names; a test is named
    by its file and function.
    """

    removed: tuple[str, ...] = ()
    promise: str = ""
    shown_by: tuple[str, ...] = ()


def made(case: Case) -> Model:
    """The model of a case."""
    removed = case.removed if isinstance(case, Mutant) else ()
    return case.model(**case.flags, **dict.fromkeys(removed, False))


@cache
def _searched(number: int, most: int) -> Verdict:
    return check(made(_CASES[number]), most=most)


_CASES: dict[int, Case] = {}


def searched(case: Case, *, most: int = MOST) -> Verdict:
    """What the search finds; it is made once in a process."""
    _CASES[id(case)] = case
    return _searched(id(case), most)
