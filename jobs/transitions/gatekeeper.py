"""The gates of keys, limits and rates, locked and counted: asked for one job after the other, all or nothing for each.

The gates of a job, in the order in which they are asked: concurrency key, limit of the type, rate of the type (which is
paid last, and only by one that starts: who is woken gets its slots and a promise). Nobody holds the slot of one gate
and waits for another: two jobs that did so for each other would wait for ever.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db.backends.utils import CursorWrapper

from jobs.serving import IN_FORCE, QUEUE_PAUSED, WOKEN
from jobs.states import Waiting
from jobs.transitions import keys
from jobs.transitions.keys import KEY, LIMITED, TYPE, Slot
from jobs.transitions.rates import Budget
from jobs.transitions.sql import arrays, fetch, unnest

LIMITS = f"""
SELECT 'limit', 'type', name FROM ({LIMITED}) AS limited WHERE name = ANY(%(types)s::text[])
UNION ALL
SELECT 'limit', 'rate', type FROM turno.rates WHERE type = ANY(%(types)s::text[])
"""
RATES = """
SELECT type, allowed, "window", spent, extract(epoch FROM clock_timestamp())::float8 FROM turno.rates
WHERE type = ANY(%(types)s::text[]) ORDER BY type FOR NO KEY UPDATE
"""
TAKEN = "SELECT key_id, slot, job_id, dispatch_id FROM turno.concurrency_slots WHERE key_id = ANY(%(keys)s::bigint[])"
# How many of each type were woken and have not started, be it that their workers are busy.
PROMISED = f"""
SELECT e.type, count(*) FROM turno.jobs AS e WHERE {WOKEN} AND e.type = ANY(%(types)s::text[]) GROUP BY e.type
"""
MOST = "SELECT name, max_running FROM turno.job_types WHERE name = ANY(%(types)s::text[])"
TAKE = f"""
INSERT INTO turno.concurrency_slots (job_id, dispatch_id, key_id, slot)
SELECT job, held_by, key, number FROM {unnest("s", keys.SLOTS)} ORDER BY key, number
"""
SPEND = f"""
UPDATE turno.rates AS r SET spent = i.spent::jsonb FROM {unnest("i", {"type": "text", "spent": "text"})}
WHERE r.type = i.type
"""
# What else holds jobs of these types, keys and tags back, and stays until the transaction ends; what somebody changes
# just now is left to whoever meets it next. And the queues of which nobody takes anything.
OTHERS = f"""
SELECT 'pause', scope, value FROM (
    SELECT p.scope, p.value FROM turno.pauses AS p
    WHERE {IN_FORCE} AND (
        p.scope = 'type' AND p.value = ANY(%(types)s::text[]) OR p.scope = 'key' AND p.value = ANY(%(keys)s::text[])
        OR p.scope = 'tag' AND p.value = ANY(%(tags)s::text[])
    )
    ORDER BY p.id FOR SHARE SKIP LOCKED
) AS paused
UNION ALL
SELECT 'circuit', 'type', type FROM (
    SELECT type FROM turno.circuits WHERE state <> 'closed' AND type = ANY(%(types)s::text[])
    ORDER BY type FOR SHARE SKIP LOCKED
) AS broken
UNION ALL
SELECT 'queue', 'queue', p.value FROM turno.pauses AS p WHERE {QUEUE_PAUSED} AND p.value = ANY(%(queues)s::text[])
"""
LIMITS_AND_OTHERS = f"{LIMITS} UNION ALL {OTHERS}"
# Whether any job at all may be held back by any of those: asked together with other things, it mostly spares asking.
BESIDES = f"""
SELECT true WHERE EXISTS ({LIMITED}) OR EXISTS (SELECT FROM turno.rates) OR EXISTS (SELECT FROM turno.pauses)
    OR EXISTS (SELECT FROM turno.circuits WHERE state <> 'closed')
"""


class Gated(NamedTuple):
    """A job before its gates; `slot` is that of the worker that wants to run it (0: none yet)."""

    id: UUID
    token: UUID
    type: str
    key: str | None
    key_limit: int | None
    slot: int
    priority: int
    since: Any
    queue: str = ""
    tags: frozenset[str] = frozenset()


class Coming(NamedTuple):
    """So many `jobs` of a key that wait in a queue without a slot; `lately`: they are likely to be claimed at once."""

    queue: str
    type: str
    priority: int
    lately: bool
    jobs: int


class Stop(NamedTuple):
    """The first gate that does not let a job through."""

    waiting: Waiting
    gate: str


class NotLocked(Exception):
    """A gate of the job is not locked here: whoever asks must leave the job to somebody who locks in order."""


class Gates:
    """Make it before the jobs are locked, by `in_order`, or of parked ones, which are locked, by `what_is_free`; then
    `count`, then `ask`, then `write`."""

    def __init__(
        self, cursor: CursorWrapper, named: Mapping[tuple[str, str], int], limits: Iterable[tuple[str, str, str]]
    ) -> None:
        self._cursor = cursor
        self._ids = dict(named)
        found = [(kind, name) for what, kind, name in limits if what == "limit"]
        self._limited = {name for kind, name in found if kind == TYPE}
        self._rated = {name for kind, name in found if kind != TYPE}
        self._budgets: dict[str, Budget] = {}
        self._taken: dict[int, set[int]] = {}
        self._own: set[tuple[UUID, UUID, int]] = set()
        self._waking = False
        self._coming: dict[int, Sequence[Coming]] = {}
        self._pauses: list[tuple[str, str]] = []
        self._broken: set[str] = set()
        self.paused_queues: set[str] = set()
        self.slots: list[Slot] = []
        self.full: dict[str, int] = {}

    @classmethod
    def in_order(cls, cursor: CursorWrapper, wanted: Sequence[Gated], also: Iterable[tuple[str, str]] = ()) -> "Gates":
        """All gates of these jobs, and `also`, waited for in the one order of all."""
        types = {job.type for job in wanted}
        gates = cls(cursor, {}, fetch(cursor, LIMITS, {"types": sorted(types)}))
        named = {(KEY, job.key) for job in wanted if job.key is not None} | {(TYPE, name) for name in gates._limited}
        gates._ids = keys.lock(cursor, {*named, *also})
        gates._lock_rates(types, RATES)
        gates._rated = set(gates._budgets)  # one that is not there was taken away meanwhile
        return gates

    @classmethod
    def what_is_free(
        cls, cursor: CursorWrapper, wanted: Sequence[Gated], held: Mapping[tuple[str, str], int], *, besides: bool
    ) -> "Gates":
        """The gates `held`, which are locked here before, and of the others those that nobody has locked; pauses and
        breakers are heeded too. `besides`: whether there is anything but keys, by BESIDES, after the jobs were locked.
        """
        types = {job.type for job in wanted}
        found = fetch(cursor, LIMITS_AND_OTHERS, _asked(wanted)) if besides else []
        gates = cls(cursor, held, found)
        gates._heed(found)
        named = {(KEY, job.key) for job in wanted if job.key is not None} | {(TYPE, name) for name in gates._limited}
        gates._ids |= keys.lock_free(cursor, named - gates._ids.keys())
        gates._lock_rates(types, f"{RATES} SKIP LOCKED")
        return gates

    def _lock_rates(self, types: Collection[str], how: str) -> None:
        if self._rated:
            rows = fetch(self._cursor, how, {"types": sorted(types)})
            self._budgets = {type_: Budget(*rest) for type_, *rest in rows}
            self._rated |= self._budgets.keys()

    @property
    def locked(self) -> dict[tuple[str, str], int]:
        """The keys that are locked here: their ids by kind and value."""
        return self._ids

    def budget(self, type_: str) -> Budget | None:
        """What is left of a type's rate; None without one."""
        return self._budgets.get(type_)

    def heed_others(self, wanted: Sequence[Gated]) -> None:
        """Of parked jobs, which are locked: look at pauses and breakers too, so that none takes a slot in vain."""
        self._heed(fetch(self._cursor, OTHERS, _asked(wanted)))

    def _heed(self, others: Iterable[tuple[str, str, str]]) -> None:
        for what, scope, value in others:
            if what == "pause":
                self._pauses.append((scope, value))
            elif what == "circuit":
                self._broken.add(value)
            elif what == "queue":
                self.paused_queues.add(value)

    def _held_back(self, job: Gated) -> Stop | None:
        for scope, value in self._pauses:
            if value == {"type": job.type, "key": job.key}.get(scope) or (scope == "tag" and value in job.tags):
                return Stop(Waiting.PAUSE, f"{scope}:{value}")
        return Stop(Waiting.CIRCUIT, job.type) if job.type in self._broken else None

    def count(
        self,
        *,
        waking: bool = False,
        coming: Mapping[int, Sequence[Coming]] | None = None,
        taken: Mapping[int, Collection[int]] | None = None,
    ) -> None:
        """Count what is taken, in a statement after the locks; what `coming` has of a key may be as good as taken.

        `waking`: the jobs are to be woken, and not to be started. None of them pays, and those before them count. Of
        some keys it is known which slots are `taken`, by such a statement.
        """
        taken = taken or {}
        unknown = sorted(set(self._ids.values()) - taken.keys())
        rows = fetch(self._cursor, TAKEN, {"keys": unknown}) if unknown else []
        self._taken = {key: set(taken.get(key, ())) for key in self._ids.values()}
        for key, slot, _job, _token in rows:
            self._taken[key].add(slot)
        self._own = {(job, token, key) for key, _slot, job, token in rows}
        self._coming = dict(coming or {})
        self._waking = waking
        if waking and self._budgets:
            for type_, woken in promised(self._cursor, self._budgets):
                self._budgets[type_].promised = woken
        types = [value for kind, value in self._ids if kind == TYPE]
        self._most = dict(fetch(self._cursor, MOST, {"types": types})) if types else {}

    def ask(self, job: Gated) -> Stop | None:
        """None: all gates let the job through, and what it needs is taken. Else the first that does not.

        A slot that it has in its hand is its own. One of a paused queue needs nothing before it is resumed. Raises
        NotLocked.
        """
        if stop := self._held_back(job):
            return stop
        if job.queue in self.paused_queues:
            return None
        wanted: list[Slot] = []
        for name, waiting, limit in self._slotted(job):
            if name not in self._ids:
                raise NotLocked
            key = self._ids[name]
            if limit is None or (job.id, job.token, key) in self._own:
                continue
            if len(self._taken[key]) + self._before(job, key) >= limit:
                if waiting is Waiting.CONCURRENCY_KEY:
                    self.full[name[1]] = len(self._taken[key])
                return Stop(waiting, name[1])
            wanted.append(Slot(job.id, job.token, key, keys.lowest(self._taken[key])))
        if job.type in self._rated:
            if job.type not in self._budgets:
                raise NotLocked
            budget = self._budgets[job.type]
            if not (budget.promise() if self._waking else budget.take()):
                return Stop(Waiting.RATE, job.type)
        for slot in wanted:
            self._taken[slot.key].add(slot.number)
        self.slots += wanted
        return None

    def _before(self, job: Gated, key: int) -> int:
        """How many are about to take a place of the key before this job could: what was enqueued lately, and whatever
        it would stand behind in its queue, for however long."""
        return sum(
            some.jobs
            for some in self._coming.get(key, ())
            if some.lately or ((some.queue, some.type) == (job.queue, job.type) and some.priority >= job.priority)
        )

    def _slotted(self, job: Gated) -> Iterable[tuple[tuple[str, str], Waiting, int | None]]:
        if job.key is not None:
            yield (KEY, job.key), Waiting.CONCURRENCY_KEY, job.key_limit
        if job.type in self._limited:
            name = TYPE, job.type
            yield name, Waiting.TYPE_LIMIT, self._most.get(job.type) if name in self._ids else None

    def full_keys(self) -> list[tuple[int, str, int]]:
        """The keys that were found full: id, value, and the number of slots that are taken."""
        return [(self._ids[KEY, value], value, held) for value, held in self.full.items()]

    def write(self) -> None:
        """Keep the starts that were paid, and the slots that were given."""
        if self.slots:
            self._cursor.execute(TAKE, arrays(keys.SLOTS, self.slots))
        news = [(type_, orjson.dumps(budget.spent).decode()) for type_, budget in self._budgets.items() if budget.news]
        if news:
            self._cursor.execute(SPEND, arrays(("type", "spent"), news))


def _asked(wanted: Sequence[Gated]) -> dict[str, list[str]]:
    return {
        "types": sorted({job.type for job in wanted}),
        "keys": sorted({job.key for job in wanted if job.key is not None}),
        "tags": sorted({tag for job in wanted for tag in job.tags}),
        "queues": sorted({job.queue for job in wanted}),
    }


def promised(cursor: CursorWrapper, types: Iterable[str]) -> list[tuple[str, int]]:
    """Of each of these types how many were woken and have not started; those of which none was are left out."""
    return fetch(cursor, PROMISED, {"types": sorted(types)})
