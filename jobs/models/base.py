"""What the models share: the schema of the tables and small builders of constraints. No behaviour."""

from collections.abc import Iterable

from django.db.models import BooleanField, CheckConstraint, F, Func, Q
from django.db.models.functions import Length
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual

from jobs.bounds import DEAD_LETTER, ERROR_SUFFIX, LETTERS, QUEUE_LENGTH, TYPE_LENGTH

SCHEMA = "turno"


def table(name: str) -> str:
    """The quoted, schema-qualified table name that Django passes through unchanged."""
    return f'"{SCHEMA}"."{name}"'


def check(name: str, condition: Q) -> CheckConstraint:
    """A named CHECK."""
    return CheckConstraint(name=name, condition=condition)


def iff(left: Q, right: Q) -> Q:
    """True exactly when both conditions hold or neither does. Of no condition may it be unknown whether it holds."""
    return Q(Func(left, right, template="(%(expressions)s)", arg_joiner=" = ", output_field=BooleanField()))


def _name(field: str, length: int) -> Q:
    """1 to `length` of the letters of names. Said by what it lacks, and by its length: PostgreSQL takes twenty times as
    long for a pattern that counts, and looks at these rules at each change of a job."""
    sized = Q(GreaterThanOrEqual(Length(F(field)), 1)) & Q(LessThanOrEqual(Length(F(field)), length))
    return sized & ~Q(**{f"{field}__regex": f"[^{LETTERS}]"})


def type_name(field: str) -> Q:
    """`field` may name a job type (`jobs.bounds.is_type`)."""
    return _name(field, TYPE_LENGTH)


def queue_name(field: str) -> Q:
    """`field` may name a queue (`jobs.bounds.is_queue`)."""
    return _name(field, QUEUE_LENGTH) & ~Q(**{field: DEAD_LETTER}) & ~Q(**{f"{field}__endswith": ERROR_SUFFIX})


def one_of(field: str, values: Iterable[str]) -> Q:
    """`field` is set and one of the values: never NULL, which a CHECK would let pass."""
    return Q(**{f"{field}__isnull": False, f"{field}__in": [str(value) for value in values]})
