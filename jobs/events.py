"""Nudges for screens: `changed` says what a committed transaction changed; at most four messages a second a process.

A nudge is a hint. It never raises into its caller and never waits: a thread of its own folds what comes and sends it,
the first at once. What cannot be sent is folded into the next try, and forgotten at the end of the process. After a
fork the child begins anew; a worker's child processes say nothing at all (`silence`): their worker speaks for them.
"""

import atexit
import logging
import os
import queue
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from django.db import connections, transaction

from jobs.backoff import Backoff
from jobs.carriers import ByLayer, ByNotify
from jobs.nudge import Nudge
from jobs.text import first_line

log = logging.getLogger(__name__)
INTERVAL = 0.25  # seconds between two messages
IDLE = 10.0  # seconds without a nudge after which the connection is given back
LONGEST_PAUSE = 5.0
FLUSH = 1.0  # seconds at the end of a process


class _Sender(threading.Thread):
    """Folds what is handed in and sends it. Its outbox may be written in the middle of anything, a destructor too."""

    def __init__(self, outbox: "queue.SimpleQueue[Nudge | threading.Event]") -> None:
        super().__init__(name="turno-screens", daemon=True)
        self._outbox = outbox
        self.hurry = threading.Event()  # the process ends
        self._ended: threading.Event | None = None  # who waits for that
        self._pending = Nudge()
        self._ready = 0.0  # the instant from which the next message may be sent
        self._notify = ByNotify()
        self._layer = ByLayer()
        self._backoff = Backoff(LONGEST_PAUSE)
        self._away = False

    def run(self) -> None:
        while True:
            # What comes while nothing may be sent wakes nobody: whoever said it wants the processor for other things.
            self.hurry.wait(max(0.0, self._ready - time.monotonic()))
            if not self._fold():
                self._close()
            elif self._ended is not None:
                self._end(self._ended)
                return
            elif time.monotonic() >= self._ready:
                self._send()

    def _fold(self) -> bool:
        """Take in all that is there, and wait for it where nothing is to be sent; False when nothing came."""
        wait = 0.0 if self._pending else IDLE
        with suppress(queue.Empty):
            while self._ended is None:
                item = self._outbox.get(timeout=wait) if wait else self._outbox.get_nowait()
                wait = 0.0
                if isinstance(item, threading.Event):
                    self._ended = item
                else:
                    self._pending.add(item)
        return bool(self._pending) or self._ended is not None

    def _send(self) -> None:
        try:
            self._carry(self._pending)
        except Exception as error:  # noqa: BLE001  (a hint: whatever hinders it)
            self._ready = time.monotonic() + max(INTERVAL, self._backoff.delay())
            if not self._away:
                log.warning("screens.unheard", extra={"error": first_line(error)})
            self._away = True
            return
        self._pending = Nudge()
        self._ready = time.monotonic() + INTERVAL
        self._backoff.reset()
        self._away = False

    def _carry(self, nudge: Nudge) -> None:
        if self._layer.configured() and not self._layer.resting:
            try:
                self._layer.send(nudge)
                return
            except Exception as error:  # noqa: BLE001  (NOTIFY is there)
                log.warning("screens.layer_away", extra={"error": first_line(error)})
        self._notify.send(nudge)

    def _end(self, ended: threading.Event) -> None:
        if self._pending and not self._away:
            self._send()
        self._close()
        ended.set()

    def _close(self) -> None:
        self._notify.close()
        self._layer.close()


class _Outbox:
    """What this process has to say; its thread starts with the first word."""

    def __init__(self) -> None:
        self.silent = False
        self._begin()

    def _begin(self) -> None:
        self._items: queue.SimpleQueue[Nudge | threading.Event] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._sender: _Sender | None = None

    after_fork = _begin

    def put(self, nudge: Nudge) -> None:
        if self.silent:
            return
        self._items.put(nudge)
        # Never waits for the lock: whoever holds it starts the thread, and that may be this thread, further up.
        if not self._speaking() and self._starting.acquire(blocking=False):
            try:
                if not self._speaking():
                    sender = _Sender(self._items)
                    sender.start()
                    self._sender = sender
            finally:
                self._starting.release()

    def _speaking(self) -> bool:
        return self._sender is not None and self._sender.is_alive()

    def close(self, timeout: float) -> None:
        sender, self._sender = self._sender, None
        if sender is not None and sender.is_alive():
            ended = threading.Event()
            self._items.put(ended)
            sender.hurry.set()
            ended.wait(timeout)


_outbox = _Outbox()
os.register_at_fork(after_in_child=_outbox.after_fork)


def changed(*, jobs: Iterable[Any] | None = (), workers: Iterable[Any] | None = (), topics: Iterable[str] = ()) -> None:
    """Tell the screens that these jobs and workers changed, and these `topics` (`jobs.nudge.TOPICS`).

    Call it after the commit; within a transaction of the default connection it waits for that one's. Ids are UUIDs or
    their text; None, or a topic "jobs" or "workers" without ids: too many to name. Returns at once and never raises.
    """
    if _outbox.silent:
        return
    try:
        nudge = _nudge(jobs, workers, topics)
        if not nudge:
            return
        connection = connections["default"]
        if connection.in_atomic_block:
            transaction.on_commit(lambda: _outbox.put(nudge), robust=True)
        else:
            _outbox.put(nudge)
    except Exception:
        log.exception("screens.not_told")


def _nudge(jobs: Iterable[Any] | None, workers: Iterable[Any] | None, topics: Iterable[str]) -> Nudge:
    named = set(topics)
    job_ids = None if jobs is None else [str(id_) for id_ in jobs]
    worker_ids = None if workers is None else [str(id_) for id_ in workers]
    if not job_ids and "jobs" in named:
        job_ids = None
    if not worker_ids and "workers" in named:
        worker_ids = None
    if job_ids is None or job_ids:
        named.add("jobs")
    if worker_ids is None or worker_ids:
        named.add("workers")
    return Nudge(named, job_ids, worker_ids)


def silence(silent: bool = True) -> None:
    """Say nothing from this process: it is a worker's child, or a test's."""
    _outbox.silent = silent


def close(timeout: float = FLUSH) -> None:
    """Send what waits and give the connection back; at most `timeout` seconds. A later nudge begins again."""
    with suppress(Exception):
        _outbox.close(timeout)


atexit.register(close)
