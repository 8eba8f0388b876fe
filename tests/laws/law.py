"""What a row of the table of laws is: a guard, the promise that it keeps, and a scenario that breaks without it."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.laws.guards import All, Guard, Sql


@dataclass(frozen=True)
class Law:
    """A guard of the engine's law `number`; `promise` is in what the scenario says when it breaks."""

    number: int
    guard: str
    promise: str
    layers: tuple[Guard, ...]
    scenario: Callable[[], None]

    def __str__(self) -> str:
        return f"law {self.number}: {self.guard}"


def sql(where: str, *changes: tuple[str, str]) -> Sql:
    """`module.CONSTANT` of the transitions, with these changes."""
    module, constant = where.split(".")
    return Sql(module, constant, changes)


def both(*guards: Guard) -> All:
    """Pieces of one guard."""
    return All(guards)
