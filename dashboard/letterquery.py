"""The dead letters' filter as an address says it, and back: one reading for the screen and for what is done there."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext as _

from dashboard.reading import Reading, refuse
from jobs.queries.letterfilter import LetterFilter

# Tabs and orders: as they stand in an address -> as `jobs.queries` names them.
TABS = {"pendentes": "pending", "reenfileiradas": "requeued", "descartadas": "discarded"}
ORDERS = {"tarefas": "count", "recentes": "newest"}
NAMES = ("situacao", "busca", "tipo", "fila", "ordem", "causa")
MOST_OFFSET = 5_000
# A cause may have no fingerprint at all, and an address needs something to name it by.
NO_FINGERPRINT = "-"


def cause_key(fingerprint: str) -> str:
    """A fingerprint as it stands in addresses and ids."""
    return fingerprint or NO_FINGERPRINT


def fingerprint(key: str) -> str:
    """The fingerprint that a key in an address names."""
    return "" if key == NO_FINGERPRINT else key


@dataclass(frozen=True, slots=True)
class Asked:
    """What an address asks for: the filter, the tab and the order in the words of `jobs.queries`, what is wrong."""

    filter: LetterFilter
    values: dict[str, str]
    errors: dict[str, str]
    tab: str = "pending"
    order: str = "count"
    offset: int = 0

    def query(self, **changes: str | None) -> str:
        """The query string with some parameters changed (None: without)."""
        kept: Mapping[str, str | None] = {**self.values, **changes}
        return urlencode([(name, kept[name]) for name in NAMES if kept.get(name)])

    @property
    def narrowed(self) -> bool:
        """Anything is asked besides the tab and the order."""
        return any(name in self.values for name in ("busca", "tipo", "fila"))


def parse(query: QueryDict | str) -> Asked:
    """The filter that a query string asks for. Raises nothing: what makes no sense is said and asks nothing."""
    data = QueryDict(query) if isinstance(query, str) else query
    read = Reading(data)
    cause = read.text("causa")
    wanted = LetterFilter(
        fingerprint=None if cause is None else fingerprint(cause),
        type=read.text("tipo"),
        queue=read.text("fila"),
        search=read.text("busca"),
    )
    tab, order = read.one_of("situacao", TABS) or "pending", read.one_of("ordem", ORDERS) or "count"
    start = data.get("desde", "")
    offset = min(int(start), MOST_OFFSET) if start.isascii() and start.isdigit() and len(start) < 6 else 0
    return Asked(wanted, read.values, read.errors, tab, order, offset)


def letter_filter(query: str) -> LetterFilter:
    """The filter of an act over all that match. Raises Invalid for any bad value, and for letters dealt with before."""
    asked = parse(query)
    if asked.tab != "pending":
        asked.errors["situacao"] = _("Nothing can be done to dead letters that were dealt with before.")
    refuse(query, NAMES, asked.errors)
    return asked.filter
