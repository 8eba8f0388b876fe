"""What the models share: the schema of the tables and small builders of constraints. No behaviour."""

from collections.abc import Iterable

from django.db.models import BooleanField, CheckConstraint, F, Func, Q, Value
from django.db.models.functions import Length
from django.db.models.lookups import LessThanOrEqual

from jobs.bounds import DEAD_LETTER, ERROR_SUFFIX, LETTERS, QUEUE_LENGTH, TYPE_LENGTH

SCHEMA = "turno"


def table(name: str) -> str:
    """The quoted, schema-qualified table name that Django passes through unchanged."""
    return f'"{SCHEMA}"."{name}"'


def check(name: str, condition: Q) -> CheckConstraint:
    """A named CHECK.

    Each statement that writes a table reads all of its checks anew, so that every node and every letter of them is paid
    for each time (decision 75). What is unknown passes: nothing says `IS NULL OR` of a column that is compared.
    """
    return CheckConstraint(name=name, condition=condition)


def _said(joiner: str, *parts: F | Func | Q | Value, end: str = "") -> Q:
    """The parts as one condition, in the words of PostgreSQL."""
    return Q(Func(*parts, template=f"(%(expressions)s{end})", arg_joiner=joiner, output_field=BooleanField()))


def iff(left: Q, right: Q) -> Q:
    """True exactly when both conditions hold or neither does. Of no condition may it be unknown whether it holds."""
    return _said(" = ", left, right)


def holds(condition: Q) -> Q:
    """True when the condition is, else false: also when it is unknown."""
    return _said("", condition, end=" IS TRUE")


def among(field: str | Func, values: Iterable[str]) -> Q:
    """`field` is one of the values; unknown when it is NULL. One constant for all, not a node for each."""
    return _said(" = ANY (", F(field) if isinstance(field, str) else field, _array(values), end=")")


def none_of(field: str, values: Iterable[str]) -> Q:
    """`field` is not one of the values; unknown when it is NULL."""
    return _said(" <> ALL (", F(field), _array(values), end=")")


def differs(field: str, value: str) -> Q:
    """`field` is not the value; unknown when it is NULL."""
    return _said(" <> ", F(field), Value(str(value)))


def _array(values: Iterable[str]) -> Value:
    """The literal of an array of texts without double quotation marks and backslashes."""
    return Value("{" + ",".join(f'"{value}"' for value in values) + "}")


def type_name(field: str) -> Q:
    """`field` may name a job type (`jobs.bounds.is_type`).

    By its letters and by its length: PostgreSQL takes twenty times as long for a pattern that counts.
    """
    return Q(LessThanOrEqual(Length(F(field)), TYPE_LENGTH)) & Q(**{f"{field}__regex": f"^[{LETTERS}]+$"})


def queue_name(field: str) -> Q:
    """`field` may name a queue (`jobs.bounds.is_queue`). One pattern, for what it must not have."""
    fits = Q(LessThanOrEqual(Length(F(field)), QUEUE_LENGTH)) & none_of(field, ["", DEAD_LETTER])
    return fits & _said(" !~ ", F(field), Value(f"[^{LETTERS}]|{ERROR_SUFFIX}$"))


def one_of(field: str, values: Iterable[str]) -> Q:
    """`field` is set and one of the values, for the condition of an index, in the planner's own words."""
    return Q(**{f"{field}__isnull": False, f"{field}__in": [str(value) for value in values]})
