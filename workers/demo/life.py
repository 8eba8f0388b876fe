"""The life of the demonstration: its workers beat, its jobs go on, end and follow each other, until Ctrl-C.

There is no process behind these workers and no handler runs; everything is written by the verbs that real workers use.
The silent worker stays silent, and its jobs lost, so that there is always something to look at.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID, uuid4

import orjson
from django.db import connections

from jobs import presence, transitions
from jobs.conf import conf
from jobs.ids import new_id
from jobs.outcomes import Ending, ErrorInfo
from jobs.states import Outcome, Reason, State, Waiting
from jobs.transitions.insert import NewJob, insert
from workers.demo.kinds import BY_NAME, KINDS, Kind, any_kind

TURN = 1.0  # seconds between two looks at everything
BEAT, RENEW = 4.0, 10.0
HELD = 40.0  # seconds of silence after which the silent worker's last sign of life is put forward again
FRESH = 20.0
ARRIVALS = 0.9  # new jobs a second, of what the slots could do
WORKERS = """
SELECT id, name, host, boot_id, pid_namespace, pid, pid_started, version, queues::text, types, state,
    extract(epoch FROM now() - seen_at)::float8
FROM turno.workers WHERE boot_id LIKE 'demo-%%' AND state <> 'Offline' ORDER BY name
"""
RUNNING = """
SELECT id, dispatch_id, type, queue, slot, progress, extract(epoch FROM now() - claimed_at)::float8
FROM turno.jobs WHERE worker_id = %(worker)s::uuid AND state = 'Processing' ORDER BY id
"""
HUSH = "UPDATE turno.workers SET seen_at = now() - %(age)s::float8 * interval '1 second' WHERE id = %(id)s::uuid"


@dataclass
class Run:
    """A job in a slot; it ends `left` seconds from now, of `whole`. `said` is the last progress that was written."""

    id: UUID
    token: UUID
    kind: Kind
    queue: str
    slot: int
    whole: float
    left: float
    said: int


@dataclass
class Person:
    """A worker of the demonstration and what it runs, by token; `silent` ones do nothing."""

    who: presence.Presence
    state: str
    silent: float | None
    runs: dict[UUID, Run] = field(default_factory=dict)


def live(rng: Random, *, moving: bool, clock: Callable[[], float] = time.monotonic) -> None:
    """Beat, and let the jobs go on when `moving`, until KeyboardInterrupt (which is swallowed)."""
    with suppress(KeyboardInterrupt):
        life = Life(rng)
        beat = renew = last = clock()
        life.beat()
        life.renew()
        while True:
            time.sleep(TURN)
            now = clock()
            if now - beat >= BEAT:
                life.beat()
                beat = now
            if now - renew >= RENEW:
                life.renew()
                renew = now
            if moving:
                life.move(now - last)
            last = now


class Life:
    """The workers that are in the table, with what they run."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        # Filling may have taken a while: who is silent shows against the others, not against the clock.
        rows = _fetch(WORKERS, {})
        youngest = min((row[-1] for row in rows), default=0.0)
        self._people: list[Person] = []
        for row in rows:
            *process, queues, types, state, age = row
            who = presence.Presence(*[*process, orjson.loads(queues), types])
            person = Person(who, state, HELD if age - youngest > conf().worker.silent_after else None)
            for id_, token, name, queue, slot, progress, elapsed in _fetch(RUNNING, {"worker": who.id}):
                run = self._run(id_, token, name, queue, slot)
                run.said = progress
                run.left = max(run.whole, elapsed / max(progress, 10) * 100) * (1 - progress / 100) + 2
                run.whole = max(run.whole, run.left)
                person.runs[token] = run
            self._people.append(person)

    def beat(self) -> None:
        """Signs of life; the silent worker's last one is kept within what counts as silent."""
        for person in self._people:
            if person.silent is None:
                presence.beat(person.who, state=person.state)
                continue
            person.silent += BEAT
            if person.silent > HELD:
                person.silent = FRESH
                with connections["default"].cursor() as cursor:
                    cursor.execute(HUSH, {"id": person.who.id, "age": FRESH})

    def renew(self) -> None:
        """Leases, also those that nobody should have: a lost job stays lost."""
        lease = conf().worker.lease_duration
        for person in self._people:
            held = [(run.id, token) for token, run in person.runs.items()]
            seconds = lease if person.silent is None else max(1.0, lease - HELD)
            renewal = transitions.renew(held, worker_id=person.who.id, lease=seconds)
            for token in renewal.lost:
                del person.runs[token]
            for token in renewal.cancelled:
                person.runs[token].left = 0.0

    def move(self, seconds: float) -> None:
        """Let so many seconds pass: jobs go on and end, due ones are promoted, free slots claim, new ones arrive."""
        transitions.promote(limit=50)
        self._arrive(seconds)
        for person in self._people:
            if person.silent is None:
                self._go_on(person, seconds)
                if person.state == "Online":
                    self._claim(person)

    def _run(self, id_: UUID, token: UUID, name: str, queue: str, slot: int) -> Run:
        kind = BY_NAME.get(name, KINDS[0])
        whole = max(1.5, kind.duration(self._rng))
        return Run(id_, token, kind, queue, slot, whole, whole, 0)

    def _go_on(self, person: Person, seconds: float) -> None:
        notes, endings = [], []
        for token, run in person.runs.items():
            run.left -= seconds
            done = 1 - max(0.0, run.left) / run.whole
            if run.left <= 0:
                endings.append(self._ending(run))
            elif run.kind.progress and (percent := int(done * 100)) > run.said:
                run.said = percent
                notes.append(transitions.Note(run.id, token, percent, run.kind.stage(self._rng, done)))
        transitions.note(notes, worker_id=person.who.id)
        for settled in transitions.settle(endings, worker_id=person.who.id) if endings else ():
            person.runs.pop(settled.dispatch_id, None)

    def _ending(self, run: Run) -> Ending:
        measured: dict[str, Any] = {"duration": run.whole}
        if self._rng.random() < 0.03:
            error = ErrorInfo("TransientJobError", "O servidor respondeu 503")
            return Ending(
                run.id, run.token, State.SCHEDULED, Outcome.FAILED, Reason.RETRY, delay=self._rng.uniform(12, 18),
                waiting_for=Waiting.RETRY, error=error, **measured,
            )  # fmt: skip
        result = orjson.dumps(run.kind.result(self._rng)).decode()
        return Ending(
            run.id, run.token, State.SUCCEEDED, Outcome.SUCCEEDED, Reason.SUCCEEDED, result=result, **measured
        )

    def _claim(self, person: Person) -> None:
        taken = {(run.queue, run.slot) for run in person.runs.values()}
        free = [
            (queue, slot)
            for queue, slots in person.who.queues.items()
            for slot in range(1, slots + 1)
            if (queue, slot) not in taken and self._rng.random() < 0.7  # never all at once: the board breathes
        ]
        claims = transitions.claim_next(
            free, types=person.who.types, worker_id=person.who.id, claim_id=uuid4(), label=person.who.label,
            lease=conf().worker.lease_duration,
        )  # fmt: skip
        for claim in claims:
            run = self._run(claim.id, claim.dispatch_id, claim.type, claim.queue, claim.slot)
            person.runs[claim.dispatch_id] = run

    def _arrive(self, seconds: float) -> None:
        slots = sum(sum(p.who.queues.values()) for p in self._people if p.silent is None and p.state == "Online")
        usual = sum(kind.share * kind.usual for kind in KINDS)
        wanted = ARRIVALS * slots / usual * seconds
        count = int(wanted) + (self._rng.random() < wanted % 1)
        queues = {queue for person in self._people for queue in person.who.queues}
        rows = []
        for _ in range(count):
            kind = any_kind(self._rng)
            queue = kind.queue if kind.name not in SPECIAL or SPECIAL[kind.name] not in queues else SPECIAL[kind.name]
            payload = orjson.dumps(kind.payload(self._rng)).decode()
            rows.append(
                NewJob(new_id(), kind.name, queue, payload, 0, 5, 600.0, at_most_once=False, origin="api", owner="key")
            )
        insert(rows)


SPECIAL = {"raspagem.pagina": "crawlers", "file.process": "files"}  # where there are such queues


def _fetch(statement: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connections["default"].cursor() as cursor:
        cursor.execute(statement, params)
        return cursor.fetchall()
