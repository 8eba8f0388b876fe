"""The gates of flow control, as the leader keeps them: opened when somebody says so, at their time, and swept."""

import logging
import threading
from time import monotonic
from uuid import UUID

from jobs import events, transitions
from jobs.announcements import can_listen
from jobs.conf import conf
from jobs.transitions.keys import KEY, TYPE
from workers.connections import ENGINE

log = logging.getLogger(__name__)
SWEEP = 2.0  # seconds between two sweeps
AGE = 3.0  # seconds: what is parked for less is on its way to whoever was told of it
MOST = 10_000  # gates that are remembered between two runs; beyond, the sweep finds them
SHORTEST = 0.005  # seconds


class Gates:
    """`hear` what a notification says, on any thread; `run_once` opens what was heard of, and what is due."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heard: set[str] = set()
        self._after = self._after_child = ""
        self._suspects: frozenset[tuple[str, str]] = frozenset()
        self._swept = 0.0
        self._nearest: float | None = None

    def hear(self, payload: str) -> None:
        """A gate that may have room: "key:…", "type:…", "id:" and a key's id, "parents:" and a child."""
        with self._lock:
            if len(self._heard) < MOST:
                self._heard.add(payload)

    def run_once(self) -> int:
        """Open what was heard of, what rates let through now, and every SWEEP seconds whatever else has room."""
        with self._lock:
            heard, self._heard = self._heard, set()
        settings = conf()
        limit = settings.recovery.batch_size
        try:
            moved = self._open(heard, limit)
        except BaseException:
            for payload in heard:
                self.hear(payload)
            raise
        woken, self._nearest = transitions.open_rates(limit=limit, using=ENGINE)
        moved += woken
        if monotonic() - self._swept >= SWEEP:
            moved += self._sweep(limit, settings.worker.silent_after)
            self._swept = monotonic()
        if moved:
            events.changed(topics=("jobs", "queues"))
        return moved

    def interval(self) -> float:
        """Seconds to sleep: until a rate lets the next one through, at most until the next sweep."""
        return SWEEP if self._nearest is None else max(SHORTEST, min(SWEEP, self._nearest))

    def _open(self, heard: set[str], limit: int) -> int:
        named: set[tuple[str, str]] = set()
        ids: set[int] = set()
        children: set[UUID] = set()
        for payload in heard:
            kind, _, value = payload.partition(":")
            try:
                if kind in {KEY, TYPE} and value:
                    named.add((kind, value))
                elif kind == "id":
                    ids.add(int(value))
                elif kind == "parents":
                    children.add(UUID(value))
            except ValueError:  # anybody may NOTIFY anything
                log.warning("gates.not_understood", extra={"payload": payload[:100]})
        opened = transitions.open_keys(sorted(named), limit=limit, using=ENGINE)
        opened += transitions.open_ids({id_ for id_ in ids if 0 <= id_ < 2**63}, limit=limit, using=ENGINE)
        return opened + (transitions.check_parents(sorted(children), using=ENGINE) if children else 0)

    def _sweep(self, limit: int, silent_after: float) -> int:
        """Where nobody can listen this is how gates are opened, and what it finds is no fault."""
        transitions.seat_running(using=ENGINE)
        idle = transitions.free_idle(limit=limit, silent_after=silent_after, using=ENGINE)
        age = AGE if can_listen() else 0.0
        found, self._after, self._suspects = transitions.sweep(
            after=self._after, age=age, limit=limit, suspects=self._suspects if age else None, using=ENGINE
        )
        children, self._after_child = transitions.open_parents(
            limit=limit, after=self._after_child, unseen_for=age, using=ENGINE
        )
        if age and found + children:
            transitions.count_found(found + children, using=ENGINE)
            log.warning("gates.swept", extra={"keys": found, "children": children})
        return idle + found + children
