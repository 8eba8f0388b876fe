"""What the models share: the schema of the tables and small builders of constraints. No behaviour."""

from collections.abc import Iterable

from django.db.models import CheckConstraint, Q

from jobs.bounds import DEAD_LETTER, ERROR_SUFFIX, QUEUE_PATTERN, TYPE_PATTERN

SCHEMA = "turno"


def table(name: str) -> str:
    """The quoted, schema-qualified table name that Django passes through unchanged."""
    return f'"{SCHEMA}"."{name}"'


def check(name: str, condition: Q) -> CheckConstraint:
    """A named CHECK."""
    return CheckConstraint(name=name, condition=condition)


def iff(left: Q, right: Q) -> Q:
    """True exactly when both conditions hold or neither does."""
    return (left & right) | (~left & ~right)


def type_name(field: str) -> Q:
    """`field` may name a job type (`jobs.bounds.is_type`)."""
    return Q(**{f"{field}__regex": TYPE_PATTERN})


def queue_name(field: str) -> Q:
    """`field` may name a queue (`jobs.bounds.is_queue`)."""
    letters = Q(**{f"{field}__regex": QUEUE_PATTERN})
    return letters & ~Q(**{field: DEAD_LETTER}) & ~Q(**{f"{field}__endswith": ERROR_SUFFIX})


def one_of(field: str, values: Iterable[str]) -> Q:
    """`field` is set and one of the values: never NULL, which a CHECK would let pass."""
    return Q(**{f"{field}__isnull": False, f"{field}__in": [str(value) for value in values]})
