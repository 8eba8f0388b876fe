"""What the models share: the schema of the tables and small builders of constraints. No behaviour."""

from collections.abc import Iterable

from django.db.models import CheckConstraint, Q

SCHEMA = "turno"
NAME_200 = r"^[a-z0-9._-]{1,200}$"
NAME_100 = r"^[a-z0-9._-]{1,100}$"


def table(name: str) -> str:
    """The quoted, schema-qualified table name that Django passes through unchanged."""
    return f'"{SCHEMA}"."{name}"'


def check(name: str, condition: Q) -> CheckConstraint:
    """A named CHECK."""
    return CheckConstraint(name=name, condition=condition)


def iff(left: Q, right: Q) -> Q:
    """True exactly when both conditions hold or neither does."""
    return (left & right) | (~left & ~right)


def queue_name(field: str) -> Q:
    """`field` may name a queue: its letters, and none of the names that a broker keeps for what failed."""
    return Q(**{f"{field}__regex": NAME_100}) & ~Q(**{field: "dead-letter"}) & ~Q(**{f"{field}__endswith": "_error"})


def one_of(field: str, values: Iterable[str]) -> Q:
    """`field` is set and one of the values: never NULL, which a CHECK would let pass."""
    return Q(**{f"{field}__isnull": False, f"{field}__in": [str(value) for value in values]})
