"""The dead letters' screen: causes with their hours, the example of an open one, tabs with counts, pages of letters."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext_lazy, pgettext_lazy

from dashboard import reads, stacks
from dashboard.bulkwords import ASKED_ABOVE
from dashboard.letterquery import ORDERS, TABS, Asked, cause_key
from dashboard.shared import PATIENT, shared
from jobs import queries
from jobs.queries.causes import Cause, CausePage, LetterCounts, causes, letter_counts
from jobs.queries.letterfilter import LetterFilter
from jobs.queries.letters import LetterCursor, LetterPage, letters
from jobs.wording import count

PAGE = 50
FIRST = 3
BAR_WIDTH, SPARK_HEIGHT, TALLEST, LOWEST = 0.76, 10.0, 9.2, 1.6
TAB_WORDS = {
    "pending": pgettext_lazy("dead letters", "Pending"),
    "requeued": pgettext_lazy("dead letters", "Requeued"),
    "discarded": pgettext_lazy("dead letters", "Discarded"),
}
ORDER_WORDS = {"tarefas": gettext_lazy("Most jobs"), "recentes": gettext_lazy("Most recent")}


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab: its name in `jobs.queries`, its words, the query that shows it, how many it has ("" unknown)."""

    name: str
    words: str
    query: str
    count: str
    here: bool


@dataclass(frozen=True, slots=True)
class Bar:
    """One hour of a spark, in units of its view box."""

    x: str
    y: str
    height: str
    fails: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A cause as a row: `key` stands in ids and addresses, `filter` is what its buttons act on."""

    cause: Cause
    key: str
    filter: str
    bars: list[Bar]
    day: int
    quick: bool
    body: dict[str, Any] | None = None

    @property
    def open(self) -> bool:
        """Whether its example is shown."""
        return self.body is not None


def bars(hourly: Sequence[int]) -> list[Bar]:
    """The hours of a day as bars: an hour without letters is a line on the ground."""
    most = max(hourly, default=0)
    found = []
    for place, number in enumerate(hourly):
        height = max(LOWEST, TALLEST * number / most) if number else 0.5
        x = place + (1 - BAR_WIDTH) / 2
        found.append(Bar(f"{x:.2f}", f"{SPARK_HEIGHT - height:.2f}", f"{height:.2f}", number > 0))
    return found


def tabs(asked: Asked, page: CausePage) -> list[Tab]:
    """The tabs; with a filter only the one that is looked at knows its number."""
    counts: LetterCounts = shared("letter-counts", PATIENT, letter_counts)
    found = []
    for address, name in TABS.items():
        number, estimated = getattr(counts, name), name in counts.estimated
        here = name == asked.tab
        if here and not page.partial:
            number, estimated = page.letters, False
        words = count(number, estimated) if here or not (asked.narrowed or "causa" in asked.values) else ""
        if here and page.partial and asked.narrowed:
            words = f"{count(page.letters)}+"
        situation = None if address == "pendentes" else address
        found.append(Tab(name, str(TAB_WORDS[name]), asked.query(situacao=situation), words, here))
    return found


def body(asked: Asked, cause: Cause) -> dict[str, Any]:
    """What an open cause shows: the newest letter's stack, and the first letters."""
    page = letters(cause.fingerprint, asked.filter, tab=asked.tab, size=FIRST)
    return {
        "stack": stacks.parse(cause.stack),
        "cause": cause,
        "letters": page.items,
        "key": cause_key(cause.fingerprint),
    }


def group(asked: Asked, cause: Cause, *, is_open: bool) -> Group:
    """A cause as a row of the screen."""
    key = cause_key(cause.fingerprint)
    return Group(
        cause,
        key,
        asked.query(causa=key, situacao=None, ordem=None),
        bars(cause.hourly),
        sum(cause.hourly),
        cause.count <= ASKED_ABOVE,
        body(asked, cause) if is_open else None,
    )


def one(asked: Asked, fingerprint: str) -> Cause | None:
    """A cause with the letters that the filter keeps; None when it has none (any more)."""
    page = causes(replace(asked.filter, fingerprint=fingerprint), tab=asked.tab, size=1)
    return page.items[0] if page.items else None


def ordered(items: Sequence[Cause], wanted: Iterable[str]) -> list[Cause]:
    """The causes in the order in which the page has them, new ones after: nothing moves while a group is open."""
    places = {key: place for place, key in enumerate(wanted)}
    return sorted(items, key=lambda cause: places.get(cause_key(cause.fingerprint), len(places)))


def _choices(asked: Asked, page: CausePage) -> dict[str, list[str]]:
    types = {row.name for row in shared("job-types", 10.0, queries.job_types)} | {cause.type for cause in page.items}
    queues = {depth.queue for depth in reads.depths()} | {name for cause in page.items for name in cause.queues}
    return {
        "types": sorted(types | ({asked.filter.type} if asked.filter.type else set())),
        "queues": sorted(queues | ({asked.filter.queue} if asked.filter.queue else set())),
    }


def _causes(asked: Asked) -> CausePage:
    """The page of causes; the one that the screen opens with is the same for all viewers."""
    if (asked.filter, asked.tab, asked.order, asked.offset) == (LetterFilter(), "pending", "count", 0):
        return shared("causes", 1.0, lambda: causes(size=PAGE))
    return causes(asked.filter, tab=asked.tab, sort=asked.order, offset=asked.offset, size=PAGE)


def context(
    asked: Asked, *, opened: Iterable[str] = (), order: Sequence[str] = (), whole: bool = True
) -> dict[str, Any]:
    """The screen, or with `whole` False what its live regions need of it."""
    page = _causes(asked)
    keys = set(opened)
    found = ordered(page.items, order) if order else page.items
    made: dict[str, Any] = {
        "screen": "erros",
        "asked": asked,
        "page": page,
        "tabs": tabs(asked, page),
        "groups": [group(asked, cause, is_open=cause_key(cause.fingerprint) in keys) for cause in found],
        "pending": asked.tab == "pending",
        "lone": "causa" in asked.values,
        "earlier": _paged(asked, asked.offset - PAGE) if asked.offset else "",
        "later": _paged(asked, asked.offset + PAGE) if page.more else "",
    }
    if whole:
        made |= _choices(asked, page)
        made["orders"] = [(name, words) for name, words in ORDER_WORDS.items() if name in ORDERS]
    return made


def _paged(asked: Asked, offset: int) -> str:
    query = asked.query()
    start = f"desde={offset}" if offset > 0 else ""
    return "&".join(part for part in (query, start) if part) or "desde=0"


def cause_context(asked: Asked, cause: Cause, after: LetterCursor | None) -> dict[str, Any]:
    """The page of one cause: its letters from a cursor on."""
    page: LetterPage = letters(cause.fingerprint, asked.filter, tab=asked.tab, size=PAGE, after=after)
    return {
        "screen": "erros",
        "asked": asked,
        "group": group(asked, cause, is_open=False),
        "cause": cause,
        "letters": page.items,
        "stack": stacks.parse(cause.stack),
        "next": page.next_cursor,
        "first": after is None,
        "at": after,
        "pending": asked.tab == "pending",
        "key": cause_key(cause.fingerprint),
    }
