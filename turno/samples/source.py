"""A paginated source that lives in this process: what `integration.sync` walks instead of a server."""

import hashlib
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext

from turno.handlers import TransientJobError

NAMES = ("Ana", "Bruno", "Carla", "Davi", "Elisa", "Fábio", "Gabriela", "Hugo", "Íris", "João")
CITIES = ("Belém", "Curitiba", "Goiânia", "Natal", "Recife", "São Paulo", "Vitória")

Record = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Page:
    """Some records, and the cursor of the next page (None after the last)."""

    records: list[Record]
    cursor: str | None


class SimulatedSource:
    """`records` made-up customers in pages; the same seed makes the same ones.

    `transient_rate`: the probability that a request fails with TransientJobError, drawn from seed, page and try.
    """

    def __init__(self, records: int, page_size: int, seed: int, transient_rate: float = 0.0) -> None:
        self._records = [record(number, seed) for number in range(1, records + 1)]
        self._page_size = page_size
        self._seed = seed
        self._rate = transient_rate

    def page(self, cursor: str | None, try_number: int = 1) -> Page:
        """The page at `cursor` (None: the first). Raises TransientJobError, and ValueError for a cursor of no page."""
        start = 0 if cursor is None else _position(cursor)
        if not 0 <= start < len(self._records):
            raise ValueError(f"there is no page at {cursor!r}")
        if _chance(self._seed, "request", start, try_number).random() < self._rate:
            raise TransientJobError(gettext("The source did not answer in time."))
        end = start + self._page_size
        return Page(self._records[start:end], f"after-{end}" if end < len(self._records) else None)


def record(number: int, seed: int) -> Record:
    """One customer as the source has it."""
    rng = _chance(seed, "customer", number)
    return {"id": number, "name": rng.choice(NAMES), "city": rng.choice(CITIES), "points": rng.randint(0, 1000)}


def known_copy(records: int, seed: int, known: float) -> dict[int, str]:
    """What an earlier run left here: digests by id, for a share `known` of the source, some of them out of date.

    One in ten has changed since, and one more in twenty exists here only.
    """
    copy: dict[int, str] = {}
    for number in range(1, records + 1):
        rng = _chance(seed, "copy", number)
        if rng.random() < known:
            copy[number] = digest(record(number, seed)) if rng.random() >= 0.1 else "changed"
    for number in _gone(records, known):
        copy[number] = "gone"
    return copy


def digest(item: Record) -> str:
    """A record's content as a short digest, whatever the order of its fields."""
    text = "\n".join(f"{key}={item[key]}" for key in sorted(item))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _gone(records: int, known: float) -> Iterator[int]:
    yield from range(records + 1, records + 1 + int(records * known / 20))


def _chance(*parts: object) -> random.Random:
    return random.Random(":".join(str(part) for part in parts))  # noqa: S311  (made-up data)


def _position(cursor: str) -> int:
    head, _, number = cursor.rpartition("-")
    return int(number) if head == "after" and number.isdecimal() else -1
