"""A slot that came free is handed over: who waits for it is woken with all that it needs in its hand, or waits on.

Who frees a slot has its key locked already, and can wait for no other gate in order. Of those the woken one needs too
it takes what nobody has locked; where that is not enough whoever leads is told, and opens the gate after the commit.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from django.db.backends.utils import CursorWrapper

from jobs.states import Waiting
from jobs.transitions import keys
from jobs.transitions.gatekeeper import BESIDES, Coming, Gated, Gates, NotLocked, Stop
from jobs.transitions.keys import Woken
from jobs.transitions.sql import GATES, arrays, fetch, notify, unnest
from jobs.transitions.successors import Successors
from jobs.transitions.together import Posed, Rows, together

COLUMNS = "type, queue, tags, concurrency_key, concurrency_limit"  # of a parked job
SPARE = 4  # parked jobs that are looked at beyond those that there is room for
TURNS = 20  # looks at one key in one transaction: each finds what stands behind those that have gone to another gate

# Without a list of keys: those that the transaction has locked by keys.LOCK_HELD.
OF_KEYS = f"COALESCE(%(keys)s::bigint[], {keys.LOCKED_HERE})"
# Of locked keys what is taken, and who is about to take some of the rest.
COMING = f"""
SELECT k.id, k.kind, k.value, ARRAY(SELECT s.slot FROM turno.concurrency_slots AS s WHERE s.key_id = k.id),
    e.queue, e.type, e.priority, e.lately, count(e.queue)
FROM turno.concurrency_keys AS k LEFT JOIN LATERAL ({keys.COMING}) AS e ON true
WHERE k.id = ANY (ARRAY(SELECT unnest({OF_KEYS})))
GROUP BY k.id, e.queue, e.type, e.priority, e.lately
"""
# By the index of what is parked at these gates, and no other: the state is tested where the rows are written.
WAITS = """
SELECT id, {columns}, priority, created_at FROM turno.jobs
WHERE waiting_for = '{waiting_for}' AND gate = k.value AND id <> ALL(%(seen)s::uuid[])
ORDER BY priority DESC, created_at, id LIMIT %(depth)s{lock}
"""
CANDIDATES = """
SELECT k.id AS key, j.*
FROM turno.concurrency_keys AS k CROSS JOIN LATERAL ({of_keys}) AS j
WHERE k.kind = 'key' AND k.id = ANY({of})
UNION ALL
SELECT k.id AS key, j.*
FROM turno.concurrency_keys AS k CROSS JOIN LATERAL ({of_types}) AS j
WHERE k.kind = 'type' AND k.id = ANY({of})
ORDER BY priority DESC, created_at, id
"""


def _candidates(lock: str) -> str:
    waits = {
        "of": OF_KEYS,
        "of_keys": WAITS.format(waiting_for="concurrency_key", lock=lock, columns=COLUMNS),
        "of_types": WAITS.format(waiting_for="type_limit", lock=lock, columns=COLUMNS),
    }
    return CANDIDATES.format(**waits)


PEEK = _candidates("")
NEXT = _candidates(" FOR NO KEY UPDATE SKIP LOCKED")
WAITED_AT = f"""
SELECT kind, value FROM {unnest("i", keys.KEYS)}
WHERE CASE kind
    WHEN 'key' THEN EXISTS (SELECT FROM turno.jobs WHERE waiting_for = 'concurrency_key' AND gate = value OFFSET 0)
    ELSE EXISTS (SELECT FROM turno.jobs WHERE waiting_for = 'type_limit' AND gate = value OFFSET 0) END
ORDER BY kind, value
"""
# Of locked keys those with room for one of the first who wait there.
WITH_ROOM = """
SELECT k.kind, k.value FROM turno.concurrency_keys AS k CROSS JOIN LATERAL (
    SELECT count(*) AS taken FROM turno.concurrency_slots WHERE key_id = k.id
) AS s
WHERE k.id = ANY(%(keys)s::bigint[]) AND CASE k.kind WHEN 'key' THEN EXISTS (
    SELECT FROM (
        SELECT concurrency_limit FROM turno.jobs WHERE waiting_for = 'concurrency_key' AND gate = k.value
        ORDER BY priority DESC, created_at, id LIMIT %(depth)s
    ) AS j WHERE j.concurrency_limit > s.taken
) ELSE NOT EXISTS (SELECT FROM turno.job_types AS t WHERE t.name = k.value AND t.max_running <= s.taken) END
ORDER BY k.kind, k.value
"""
# From one gate to the next: the job's state stays, and what it waits for is said anew.
MOVE_COLUMNS = {"id": "uuid", "waiting_for": "text", "gate": "text"}
MOVE = f"""
UPDATE turno.jobs AS j SET waiting_for = i.waiting_for, gate = i.gate
FROM {unnest("i", MOVE_COLUMNS)} WHERE j.id = i.id AND COALESCE(j.state, '') = 'Scheduled'
"""


class Looked(NamedTuple):
    """What there is to know of locked keys, in a block of `together`: COMING, NEXT and BESIDES."""

    coming: Rows
    candidates: Rows
    besides: Rows
    depth: int  # of each key so many candidates at most

    @classmethod
    def at(cls, said: Posed, keys: Sequence[int] | None, depth: int) -> "Looked":
        """At these keys, or (None) at those that this transaction has locked by `keys.LOCK_HELD`."""
        candidates = {"keys": keys, "depth": depth, "seen": []}
        return cls(said.pose(COMING, {"keys": keys}), said.pose(NEXT, candidates), said.pose(BESIDES, {}), depth)


def pass_on(
    cursor: CursorWrapper,
    freed: Sequence[int],
    locked: Collection[int],
    successors: Successors | None = None,
    looked: Looked | None = None,
) -> int:
    """Wake who waits for the keys `freed` (one entry a slot): at those of `locked` now, at the others whoever leads
    does so after the commit. Of those woken now `successors` start at once. Returns how many these are."""
    later = sorted(set(freed) - set(locked))
    if later:
        tell(cursor, later)
    return hand_over(cursor, [key for key in freed if key in locked], successors=successors, looked=looked)


def tell(cursor: CursorWrapper, ids: Iterable[int]) -> None:
    """Whoever leads shall look at these keys after the commit."""
    notify(cursor, GATES, [f"id:{key}" for key in ids])


def tell_of_keys(cursor: CursorWrapper, names: Collection[str], locked: Collection[int]) -> None:
    """Whoever leads shall look at those of these keys that are not locked here: some may have no row as yet."""
    if names:
        known = keys.find(cursor, ((keys.KEY, name) for name in names))
        notify(cursor, GATES, [f"key:{name}" for name in names if known.get((keys.KEY, name)) not in locked])


def tell_of_rates(cursor: CursorWrapper, stops: Iterable[Stop]) -> None:
    """Whoever leads knows when a rate lets the next one through only if he knows that somebody waits."""
    notify(cursor, GATES, {f"type:{stop.gate}" for stop in stops if stop.waiting is Waiting.RATE})


def hand_over(
    cursor: CursorWrapper,
    freed: Sequence[int],
    *,
    depth: int | None = None,
    held: Mapping[tuple[str, str], int] | None = None,
    asleep: Collection[str] = (),
    successors: Successors | None = None,
    looked: Looked | None = None,
) -> int:
    """Wake the best of those that are parked at keys with room, each with the slots that it will run on; how many.

    The keys are locked by an earlier statement of this transaction. `depth`: how many parked jobs of a key are looked
    at in one turn; without it, a few more than the places that the key is named in `freed`. `held`: what else is locked
    here, by kind and value. `asleep`: queues that nobody takes work from, as if they were paused. `looked`: the first
    look, where it was taken already, after the slots were freed; it may be one at more keys.
    """
    if not freed:
        return 0
    depth = max(map(freed.count, set(freed))) + SPARE if depth is None else depth
    with_room, seen = set(freed), list[UUID]()
    if looked is None:
        with together(cursor) as said:
            looked = Looked.at(said, sorted(with_room), depth)
    known = [row for row in looked.coming if row[0] in with_room]
    rows = [row for row in looked.candidates if row[0] in with_room]
    names = dict(held or {}) | {(kind, value): id_ for id_, kind, value, *_ in known}
    coming: dict[int, list[Coming]] = {}
    taken: dict[int, list[int]] = {id_: numbers for id_, _kind, _value, numbers, *_ in known}
    for id_, _kind, _value, _taken, *some in known:
        if some[-1] and some[0] not in asleep:
            coming.setdefault(id_, []).append(Coming(*some))
    woken = 0
    for turn in range(TURNS):
        if turn:
            waits = {"keys": sorted(with_room), "depth": depth, "seen": seen}
            rows = fetch(cursor, NEXT, waits) if with_room else []
        found = [waiting(row[1:]) for row in rows]
        if not found:
            return woken
        gates = Gates.what_is_free(cursor, found, names, besides=bool(looked.besides))
        gates.paused_queues.update(asleep)
        gates.count(waking=True, coming=coming, taken=taken)
        decided = _decide(gates, found, [row[0] for row in rows])
        woken += let_through(cursor, gates, decided.through, decided.elsewhere, successors)
        if decided.unsure:
            tell(cursor, sorted(with_room))
        # Where fewer were found than were looked for nobody stands behind them.
        at_key, most = Counter(row[0] for row in rows), depth if turn else looked.depth
        with_room = {key for key in with_room - decided.full if at_key[key] >= most}
        names, taken = gates.locked, {}
        seen += [job.id for job in found]
    if with_room:
        tell(cursor, sorted(with_room))
    return woken


def waiting(row: Sequence[Any]) -> Gated:
    """A parked job of a row (id, COLUMNS, priority, since), with the token that it will have."""
    id_, type_, queue, tags, key, key_limit, priority, since = row
    return Gated(id_, uuid4(), type_, key, key_limit, 0, priority, since, queue, frozenset(tags))


class Decided(NamedTuple):
    """Of parked jobs: those that go on, those that another gate stops, those of which a gate was locked elsewhere; and
    the keys that are full."""

    through: list[Gated]
    elsewhere: list[tuple[Gated, Stop]]
    unsure: list[Gated]
    full: set[int]


def _decide(gates: Gates, found: Sequence[Gated], waiting_at: Sequence[int]) -> Decided:
    decided = Decided([], [], [], set())
    for job, own in zip(found, waiting_at, strict=True):
        try:
            stop = gates.ask(job)
        except NotLocked:
            decided.unsure.append(job)
            continue
        if stop is None:
            decided.through.append(job)
        elif gates.locked.get((_kind(stop), stop.gate)) == own:
            decided.full.add(own)
        else:
            decided.elsewhere.append((job, stop))
    return decided


def _kind(stop: Stop) -> str:
    return {"concurrency_key": keys.KEY, "type_limit": keys.TYPE}.get(str(stop.waiting), "")


def let_through(
    cursor: CursorWrapper,
    gates: Gates,
    through: Sequence[Gated],
    elsewhere: Sequence[tuple[Gated, Stop]],
    successors: Successors | None = None,
) -> int:
    """Write what was decided of parked jobs that are locked here: those that go on, and those that wait elsewhere."""
    slots, gates.slots = gates.slots, []  # written with the tokens, below
    gates.write()
    if elsewhere:
        cursor.execute(MOVE, arrays(MOVE_COLUMNS, [(job.id, str(stop.waiting), stop.gate) for job, stop in elsewhere]))
        tell_of_rates(cursor, (stop for _, stop in elsewhere))
    # Who goes on to a paused queue has no slots, and asks its gates when that is resumed: at this moment, maybe.
    free = [job for job in through if job.queue not in gates.paused_queues]
    started = successors.start(cursor, free, slots) if successors else set[UUID]()
    woken = [Woken(job.id, job.token, job.queue not in gates.paused_queues) for job in through if job.id not in started]
    return len(started) + keys.wake(cursor, woken, [slot for slot in slots if slot.job not in started])


def waited_at(cursor: CursorWrapper, wanted: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of these keys (kind, value), sorted, at which somebody waits: of the others nothing has to be known."""
    return fetch(cursor, WAITED_AT, arrays(keys.KEYS, sorted(set(wanted))))


def with_room(cursor: CursorWrapper, wanted: Collection[tuple[str, str]], *, depth: int) -> list[tuple[str, str]]:
    """Those of these keys (kind, value) that have room, looked at under their lock: whoever frees a slot of another one
    after this sees who waits there now."""
    ids = keys.lock(cursor, wanted)
    return fetch(cursor, WITH_ROOM, {"keys": sorted(ids.values()), "depth": depth})


def open_in_order(
    cursor: CursorWrapper, wanted: Collection[tuple[str, str]], *, depth: int, asleep: Collection[str] = ()
) -> int:
    """Lock keys (kind, value), and what those who wait there need besides, in order; wake who there is room for."""
    known = keys.find(cursor, wanted)
    peeked = fetch(cursor, PEEK, {"keys": sorted(known.values()), "depth": depth, "seen": []}) if known else []
    gates = Gates.in_order(cursor, [waiting(row[1:]) for row in peeked], also=wanted)
    ours = [gates.locked[name] for name in wanted]
    return hand_over(cursor, ours, depth=depth, held=gates.locked, asleep=asleep)
