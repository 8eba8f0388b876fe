"""How a guard is taken away: a piece of SQL in the verbs, an attribute of the engine, a constraint of the database."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from tests.transitions.rows import execute


class BrokenPromise(AssertionError):
    """Something that the engine promises did not hold; the text says which."""


def keep(condition: object, promise: str) -> None:
    """The scenario's way of saying that a promise is kept."""
    if not condition:
        raise BrokenPromise(promise)


class Guard(Protocol):
    """Something that keeps a promise and can be taken away for a while."""

    def removed(self) -> Any: ...


@dataclass(frozen=True)
class Sql:
    """Pieces of an SQL constant of `jobs.transitions`, each replaced wherever it stands; it must stand there."""

    module: str
    constant: str
    changes: tuple[tuple[str, str], ...]

    @contextmanager
    def removed(self) -> Iterator[None]:
        module = import_module(f"jobs.transitions.{self.module}")  # whose name a verb's function hides
        whole = text = getattr(module, self.constant)
        for old, new in self.changes:
            assert old in text, f"{self.constant} has no {old!r}"
            text = text.replace(old, new)
        setattr(module, self.constant, text)
        try:
            yield
        finally:
            setattr(module, self.constant, whole)


@dataclass(frozen=True)
class Attribute:
    """An attribute of a module or class of the engine, replaced by what `instead` makes of it."""

    module: str
    path: str
    instead: Callable[[Any], Any]

    @contextmanager
    def removed(self) -> Iterator[None]:
        owner = import_module(self.module)
        *way, name = self.path.split(".")
        for step in way:
            owner = getattr(owner, step)
        whole = getattr(owner, name)
        setattr(owner, name, self.instead(whole))
        try:
            yield
        finally:
            setattr(owner, name, whole)


@dataclass(frozen=True)
class Constraint:
    """A rule of the database about a table; the table's rows go before it comes back, some may break it."""

    table: str
    drop: str
    add: str

    @contextmanager
    def removed(self) -> Iterator[None]:
        execute(f"ALTER TABLE turno.{self.table} {self.drop}")
        try:
            yield
        finally:
            execute(f"DELETE FROM turno.{self.table}")
            execute(f"ALTER TABLE turno.{self.table} {self.add}")


@dataclass(frozen=True)
class Index:
    """A unique index of the jobs over `columns`, for the rows `where`; jobs go before it comes back."""

    name: str
    columns: str
    where: str

    @contextmanager
    def removed(self) -> Iterator[None]:
        execute(f"DROP INDEX turno.{self.name}")
        try:
            yield
        finally:
            execute("DELETE FROM turno.jobs")
            execute(f"CREATE UNIQUE INDEX {self.name} ON turno.jobs ({self.columns}) WHERE {self.where}")


@dataclass(frozen=True)
class All:
    """Several pieces that are one guard."""

    guards: tuple[Guard, ...]

    @contextmanager
    def removed(self) -> Iterator[None]:
        with without(*self.guards):
            yield


@contextmanager
def without(*guards: Guard) -> Iterator[None]:
    """None of these guards is there."""
    with ExitStack() as stack:
        for guard in guards:
            stack.enter_context(guard.removed())
        yield
