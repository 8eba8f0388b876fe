"""What a browser has of the board, told in one header: a tag a row, in the order of its page.

The browser sends back what it was last told, so any process can say what changed since, and which workers came or
left, without remembering anybody. A row has two tags: of its cells, and of the words that go with them.
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

ID, CELLS, META = 5, 5, 3
LANES, HEADS = 4, 5
ROW = ID + CELLS + META
MOST_ROWS = 500
TOKEN = re.compile(
    rf"(?P<lanes>[\w-]{{{LANES}}})(?P<heads>[\w-]{{{HEADS}}})\.(?P<rows>(?:[\w-]{{{ROW}}}){{0,{MOST_ROWS}}})", re.ASCII
)


def short(value: str, size: int) -> str:
    """`size` characters (at most 8) that stand for `value`."""
    digest = blake2b(value.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return urlsafe_b64encode(digest).decode()[:size]


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of one row: of its cells, of its words."""

    cells: str
    meta: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What a browser shows: tags of the columns and heads, and of each row by the short form of its worker's id."""

    lanes: str
    heads: str
    rows: Mapping[str, Tags]

    def header(self) -> str:
        """As it travels."""
        rows = "".join(f"{id_}{tags.cells}{tags.meta}" for id_, tags in self.rows.items())
        return f"{self.lanes}{self.heads}.{rows}"

    def distrusted(self) -> "Seen":
        """The same rows, each of which is to be sent again."""
        return Seen(self.lanes, "", dict.fromkeys(self.rows, Tags("-" * CELLS, "-" * META)))


def parse(header: str | None) -> Seen | None:
    """What came back, or None for nothing and for what is none of ours."""
    found = TOKEN.fullmatch(header or "")
    if found is None:
        return None
    text = found["rows"]
    rows = {
        text[at : at + ID]: Tags(text[at + ID : at + ID + CELLS], text[at + ID + CELLS : at + ROW])
        for at in range(0, len(text), ROW)
    }
    return Seen(found["lanes"], found["heads"], rows)
