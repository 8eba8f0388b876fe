"""Statements with a time of their own: whatever the planner chose, a page is not held up."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import OperationalError, connections, transaction
from django.db.models import QuerySet
from psycopg.errors import QueryCanceled

# One round trip: the old value is read before the new one is set.
LIMIT = "SELECT current_setting('statement_timeout'), set_config('statement_timeout', %s, true)"
BACK = "SELECT set_config('statement_timeout', %s, true)"
LEAST = 0.005
# What is cheap is counted even when something before it was not.
SHARE = 0.01
# A guess below this, where counting took too long, is worth nothing: the planner knows no text and no pair of columns.
WORTH = 1000


class TooSlow(Exception):
    """The statement was cancelled because its time was over."""


@dataclass(frozen=True, slots=True)
class Count:
    """How many. `number` None: not known in the time that there was; `estimated`: from the planner's statistics."""

    number: int | None
    estimated: bool = False


@contextmanager
def within(seconds: float, using: str = "default") -> Iterator[None]:
    """Each statement inside gets so long. Raises TooSlow when one takes longer; what was read before it is good."""
    try:
        with transaction.atomic(using=using), connections[using].cursor() as cursor:
            cursor.execute(LIMIT, [f"{max(seconds, LEAST) * 1000:.0f}ms"])
            (before, _) = cursor.fetchone()
            yield
            cursor.execute(BACK, [before])
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TooSlow from error
        raise


def estimate(rows: QuerySet[Any]) -> int:
    """How many rows the planner expects; it reads none."""
    plan = rows.order_by().explain(format="json")
    return max(0, round(json.loads(plan)[0]["Plan"]["Plan Rows"]))


def counted(
    many: Sequence[QuerySet[Any]],
    most: int,
    seconds: float,
    *,
    guesses: Callable[[], Sequence[QuerySet[Any]]] | None = None,
) -> list[Count]:
    """How many rows each has: exact up to `most` rows, while the `seconds` for all of them last and for SHARE each
    afterwards; else the planner's estimate of `guesses` in their place, where there are any and it is worth it."""
    numbers: list[int | None] = []
    deadline = time.monotonic() + seconds
    while len(numbers) < len(many):
        left = deadline - time.monotonic()
        try:
            with within(max(left, SHARE)):
                numbers.append(many[len(numbers)].order_by()[: most + 1].count())
                while len(numbers) < len(many) and time.monotonic() < deadline:
                    numbers.append(many[len(numbers)].order_by()[: most + 1].count())
        except TooSlow:
            numbers.append(None)
    if guesses is None or all(number is not None and number <= most for number in numbers):
        return [_told(number, most, None) for number in numbers]
    return [_told(number, most, rows) for number, rows in zip(numbers, guesses(), strict=True)]


def _told(number: int | None, most: int, guess: QuerySet[Any] | None) -> Count:
    if number is not None and number <= most:
        return Count(number)
    guessed = 0 if guess is None else estimate(guess)
    if number is not None:
        return Count(max(number, guessed), estimated=True)
    return Count(guessed, estimated=True) if guessed >= WORTH else Count(None)
