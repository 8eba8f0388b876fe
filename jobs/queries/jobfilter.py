"""Which jobs a list, a count or a bulk run is about: one object, and what it means as conditions.

A filter is a union of branches. The `base` of a branch is served by one index in the order of ids, or is so rare that
the order costs nothing; the rest is looked at row by row. `jobs.queries.walking` walks branches within a time.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q

from jobs.bounds import is_type
from jobs.models import KnownType
from jobs.queries.cursor import first_id_of
from jobs.queries.payloadtext import payload_says
from jobs.registry import catalogue
from jobs.states import PARKED, State, Waiting

# An id carries the enqueuing machine's clock, `created_at` the database's: how far the two may stand apart while the
# primary key still narrows a search by instants.
SKEW = timedelta(hours=1)
TYPES_OF_A_PREFIX = 20
# Shorter ones would be found in the keys of half the table.
ID_PREFIX = 6
HEX_DIGITS = 32


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs; None asks nothing.

    `state` is the column; `shown` is what the screens call it: "Enqueued" includes the parked jobs, "Scheduled" has an
    instant. `search` is an id, or exactly a type, a queue or a unique key; `keys` is besides those the beginning of an
    id or of a type, a tag, an idempotency or a concurrency key; `text` stands in the payload. `worker` is the name of
    the one that runs them now; `attempts` and `priority` are at least so much. `waiting` is what they wait for (a
    value of Waiting), `key` their concurrency key.
    """

    state: str | None = None
    type: str | None = None
    queue: str | None = None
    tag: str | None = None
    search: str | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    shown: str | None = None
    keys: str | None = None
    text: str | None = None
    worker: str | None = None
    attempts: int | None = None
    priority: int | None = None
    error_type: str | None = None
    origin: str | None = None
    recurring: UUID | None = None
    finished_from: datetime | None = None
    waiting: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """A part of a filter: `base` by an index, `rest` row by row. `slow`: only a walk is safe, hits may be rare."""

    base: Q
    rest: Q
    slow: bool

    @property
    def all(self) -> Q:
        """Both."""
        return self.base & self.rest


def _millis(instant: datetime) -> int:
    return int(instant.timestamp() * 1000)


def _shift(instant: datetime, by: timedelta) -> datetime:
    try:
        return instant + by
    except OverflowError:
        return instant


def created_between(start: datetime | None, end: datetime | None, *, narrow: bool = True) -> Q:
    """Created at `start` or later and before `end`; narrowed by the primary key too, which an estimate must not be:
    the planner takes the two for independent."""
    condition = Q()
    if start is not None:
        floor = Q(id__gte=first_id_of(_millis(_shift(start, -SKEW)))) if narrow else Q()
        condition &= Q(created_at__gte=start) & floor
    if end is not None:
        ceiling = Q(id__lt=first_id_of(_millis(_shift(end, SKEW)))) if narrow else Q()
        condition &= Q(created_at__lt=end) & ceiling
    return condition


def tagged(tag: str) -> Q:
    """Has the tag; worded so that its index, which holds no job without tags, serves it."""
    return Q(tags__contains=[tag]) & ~Q(tags=[])


def _id_prefix(text: str) -> Q | None:
    """Ids that begin so; the dashes may be left out."""
    digits = text.replace("-", "").lower()
    if not ID_PREFIX <= len(digits) < HEX_DIGITS or set(digits) - set("0123456789abcdef"):
        return None
    low, high = digits.ljust(HEX_DIGITS, "0"), digits.ljust(HEX_DIGITS, "f")
    return Q(id__gte=UUID(low), id__lte=UUID(high))


def types_like(prefix: str) -> list[str]:
    """The names of known types that begin so: as many as a search looks for."""
    if not is_type(prefix):
        return []
    seen = KnownType.objects.filter(name__startswith=prefix).order_by("name").values_list("name", flat=True)
    registered = [name for name in catalogue.names() if name.startswith(prefix)]
    return sorted({*seen[:TYPES_OF_A_PREFIX], *registered})[:TYPES_OF_A_PREFIX]


def exact_branches(search: str) -> list[Q]:
    """What the API's search means, each a condition with an index of its own. The text is compared, never a pattern."""
    found = [Q(unique_key=search)]
    if is_type(search):
        found += [Q(type=search), Q(queue=search)]
    with suppress(ValueError):
        found.append(Q(id=UUID(search)))
    return found


def key_branches(keys: str) -> list[Q]:
    """What the screen's search by id, type, queue, key and tag means; each with an index of its own."""
    found = exact_branches(keys)
    found += [Q(concurrency_key=keys), Q(idempotency_key=keys), tagged(keys)]
    prefix = _id_prefix(keys)
    if prefix is not None:
        found.append(prefix)
    return found + [Q(type=name) for name in types_like(keys) if name != keys]


def _waits(wanted: JobFilter) -> Q:
    """Waits for just that; under a tab that has none of those, nothing."""
    parked = wanted.waiting in PARKED
    tab = State.ENQUEUED if parked else State.SCHEDULED
    if wanted.shown not in {None, tab} or wanted.state not in {None, State.SCHEDULED}:
        return Q(state="")
    condition = Q(state=State.SCHEDULED.value, waiting_for=wanted.waiting)
    gates: dict[str | None, str | None] = {
        Waiting.CONCURRENCY_KEY: wanted.key, Waiting.TYPE_LIMIT: wanted.type, Waiting.RATE: wanted.type,
    }  # fmt: skip
    gate = gates.get(wanted.waiting)
    return condition if gate is None else condition & Q(gate=gate)


def _states(wanted: JobFilter) -> list[Q]:
    if wanted.waiting is not None:
        return [_waits(wanted)]
    if wanted.state is not None:
        return [Q(state=wanted.state)]
    if wanted.shown == State.ENQUEUED:
        return [Q(state=State.ENQUEUED.value), Q(state=State.SCHEDULED.value, run_at__isnull=True)]
    if wanted.shown == State.SCHEDULED:
        return [Q(state=State.SCHEDULED.value, run_at__isnull=False)]
    return [Q(state=wanted.shown)] if wanted.shown is not None else [Q()]


def _rare(wanted: JobFilter) -> Q:
    """What no index serves in the order of ids."""
    rest = Q()
    if wanted.attempts is not None:
        running = Q(state=State.PROCESSING.value, attempts_used__gte=wanted.attempts - 1)
        rest &= Q(attempts_used__gte=wanted.attempts) | running
    if wanted.priority is not None:
        rest &= Q(priority__gte=wanted.priority)
    for column in ("error_type", "origin"):
        if getattr(wanted, column) is not None:
            rest &= Q(**{column: getattr(wanted, column)})
    if wanted.recurring is not None and (wanted.search is not None or wanted.keys is not None):
        rest &= Q(recurring_job_id=wanted.recurring)
    if wanted.text is not None:
        rest &= payload_says(wanted.text)
    return rest


def branches(wanted: JobFilter, *, narrow: bool = True) -> list[Branch]:
    """The filter as branches; a job may stand in several."""
    rest = _rare(wanted)
    slow = bool(rest)
    rest &= created_between(wanted.created_from, wanted.created_to, narrow=narrow)
    if wanted.finished_from is not None:
        rest &= Q(finished_at__gte=wanted.finished_from)
    columns = [Q(**{column: value}) for column in ("type", "queue") if (value := getattr(wanted, column)) is not None]
    if wanted.tag is not None:
        columns.insert(0, tagged(wanted.tag))
    if wanted.key is not None:
        columns.insert(0, Q(concurrency_key=wanted.key))
    if wanted.worker is not None:
        columns.insert(0, Q(state=State.PROCESSING.value, worker_label__name=wanted.worker))
    searched = [Q()]
    if wanted.search is not None:
        searched = exact_branches(wanted.search)
    elif wanted.keys is not None:
        searched = key_branches(wanted.keys)
    elif wanted.recurring is not None:
        searched = [Q(recurring_job_id=wanted.recurring)]
    return [_branch(search, state, columns, rest, slow) for state in _states(wanted) for search in searched]


def _branch(search: Q, state: Q, columns: list[Q], rest: Q, slow: bool) -> Branch:
    """The narrowest condition that has an index of its own is the base."""
    few = bool(state) and state != Q(state=State.SUCCEEDED.value)
    by_index = [part for part in (search, *([state] if few else []), *columns, state) if part]
    base = by_index[0] if by_index else Q()
    for part in by_index[1:]:
        rest &= part
    return Branch(base, rest, slow)


def conditions(wanted: JobFilter, *, narrow: bool = True) -> list[Q]:
    """The whole filter as conditions for counting: no job meets two of them, each counts a job once."""
    found = branches(wanted, narrow=narrow)
    searches = len(found) // len(_states(wanted))
    whole = []
    for first in range(0, len(found), searches):
        one = found[first].all
        for branch in found[first + 1 : first + searches]:
            one |= branch.all
        whole.append(one)
    return whole
