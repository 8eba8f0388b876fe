"""Where a page ended. Ids are time-ordered (UUIDv7), so a list is walked by id: stable, whatever is added meanwhile."""

import re
from dataclasses import dataclass
from typing import Final
from uuid import UUID

NEWEST: Final = "-created"
OLDEST: Final = "created"
_LETTERS = {NEWEST: "n", OLDEST: "o"}
_ORDERS = {letter: order for order, letter in _LETTERS.items()}
PATTERN = r"^[no][0-9a-f]{32}$"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last id of a page, and the order in which the list is walked."""

    order: str
    id: UUID

    def __str__(self) -> str:
        return _LETTERS[self.order] + self.id.hex

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """The cursor that `str()` wrote. Raises ValueError for anything else."""
        if not re.fullmatch(PATTERN, text):
            raise ValueError("not a cursor")
        return cls(_ORDERS[text[0]], UUID(text[1:]))


def first_id_of(milliseconds: int) -> UUID:
    """The smallest UUIDv7 of an instant, in milliseconds since 1970."""
    bounded = min(max(milliseconds, 0), (1 << 48) - 1)
    return UUID(int=bounded << 80)
