"""The relay: from the outbox to the broker, several batches in flight. Every worker has one, and any number may run.

Leased, published, deleted when confirmed: wherever it dies between, the lease ends and another relay publishes again.
"""

import asyncio
import logging
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from jobs import transitions
from jobs.ids import new_id
from jobs.sections_broker import Messaging
from jobs.text import first_line
from workers.connections import ENGINE
from workers.transports.across import Across
from workers.transports.base import Broker, BrokerAway, Published
from workers.transports.messages import DeadLetter, Dispatch

log = logging.getLogger(__name__)
IN_FLIGHT = 3  # batches
ROUND = 15  # batches in one call, so that a stop is heard
SILENCE = 10.0  # seconds between two lines of the log on what the broker refuses, which name so many queues
NAMED = 5
LATER = 0.005  # seconds after which it is written that the broker has a message or two
FEW = 3  # messages
REST = 0.01  # seconds after two looks for nothing, doubled by each further one, up to half the interval


@dataclass(frozen=True, slots=True)
class _Flight:
    """A batch on its way: what was leased, and the broker's answer to come (None: it could not be asked)."""

    lock_id: UUID
    rows: Sequence[transitions.OutboxRow]
    messages: Sequence[Dispatch | DeadLetter]
    asked: "Future[list[Published]] | None"


class Relay:
    """Publishes what waits in the outbox. `run_once` and `pause` are a routine's, in a thread; `hear`, called when that
    routine is woken, and `close` are anybody's.

    Every enqueueing wakes the relays of all workers, and one of them finds the message. The others come later the more
    often they find nothing, and as soon as ever once they find something: so a few do the work, and when those are gone
    the rest are awake within half the interval.
    """

    def __init__(
        self,
        broker: Broker,
        loop: asyncio.AbstractEventLoop,
        settings: Messaging,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._line = Across(broker, loop, settings.publish_timeout)
        self._settings = settings
        self._clock = clock
        self._running = threading.Lock()
        self._closed = False
        self._heard = threading.Event()
        self._answered = False  # whether a wake that the routine will follow was followed already
        self._in_vain = 0
        self._rests_until = 0.0
        self._slept_in = False  # whether a wake came in a rest
        self._ended = 0.0
        self._refused: Counter[str] = Counter()  # messages by queue since that was said last
        self._silent_until = 0.0

    def run_once(self) -> int:
        """Publish what waits; returns how many messages were seen to, 0 while there is no broker.

        Raises a database error; what was leased then comes back by itself. Call again at once while it is as many as
        `outbox_batch_size`.
        """
        with self._running:
            now = self._clock()
            answered, self._answered = self._answered and not self._heard.is_set(), False
            if self._closed or not self._line.connected:
                return 0
            self._slept_in = now < self._rests_until
            if self._slept_in or answered:
                return 0
            self._heard.clear()
            flying: deque[_Flight] = deque()
            try:
                done, away = self._round(flying)
            except BaseException:
                self._answered = False  # what it looked for it may not have seen
                for flight in flying:
                    with suppress(Exception):  # the first error is the one that counts
                        self._finish(flight)
                raise
            self._rest(done, away=away, polled=now - self._ended >= self._settings.outbox_interval * 0.8)
            return 0 if away else done

    def hear(self) -> None:
        """There is something new: where it is in the middle of something it looks at once."""
        self._heard.set()

    def pause(self) -> float:
        """Seconds until the next run, unless it is woken before."""
        if self._slept_in:
            return max(0.001, self._rests_until - self._clock())
        return self._settings.outbox_interval * random.uniform(0.9, 1.1)  # noqa: S311  (spreads workers)

    def close(self, timeout: float) -> bool:
        """Take nothing more, and wait for what is in flight; False when that takes longer than `timeout` seconds.

        The broker must still be there. What is cut off is published by another relay when its lease ends.
        """
        self._closed = True
        self._heard.set()
        if not self._running.acquire(timeout=timeout):
            return False
        self._running.release()
        return True

    def _rest(self, done: int, *, away: bool, polled: bool) -> None:
        """What a poll does not find was not announced either: only a wake in vain says that another was faster."""
        self._in_vain = 0 if done or polled else self._in_vain + 1
        longest = self._settings.outbox_interval / 2
        rest = 0.0
        if away:
            rest = longest
        elif self._in_vain >= 2:
            rest = min(longest, REST * 2 ** min(self._in_vain - 2, 20))
        self._ended = self._clock()
        self._rests_until = self._ended + rest

    def _round(self, flying: deque[_Flight]) -> tuple[int, bool]:
        """Batches while they are full, those in flight (`flying`) answered in turn: how many messages, and whether the
        broker went away.

        Of a message alone its worker hears as soon as the broker does. That the broker has it is written a moment
        later, when it is in nobody's way: both write to the job, and want the same processors.
        """
        begun = done = 0
        more, away = True, False
        moment = 0.0  # until when it waits for more
        while more or flying:
            if more and len(flying) < IN_FLIGHT:
                flight, seen = self._send()
                moment = moment if begun else time.monotonic() + LATER
                begun, done = begun + 1, done + seen
                full = seen >= self._settings.outbox_batch_size
                self._answered = self._answered and not full  # there may be more than a round takes
                more = full and begun < ROUND and not self._closed
                if flight.rows:
                    flying.append(flight)
                else:
                    moment = 0.0  # woken in vain
            elif not more and begun < ROUND and all(len(f.rows) <= FEW for f in flying) and self._hears_more(moment):
                more = True
            elif not self._finish(flying.popleft()):
                more, away, moment = False, True, 0.0
        return done, away

    def _hears_more(self, until: float) -> bool:
        """Whether there is something new before that instant."""
        left = until - time.monotonic()
        if self._closed or left < 0 or not self._heard.wait(left) or self._closed:
            return False
        self._heard.clear()
        self._answered = True
        return True

    def _send(self) -> tuple[_Flight, int]:
        lock_id = new_id()
        rows, dropped = transitions.lease_outbox(
            limit=self._settings.outbox_batch_size, lock_id=lock_id, lease=self._settings.outbox_lease, using=ENGINE
        )
        messages = [_message(row) for row in rows]
        try:
            asked = self._line.begin(lambda broker: broker.publish(messages)) if rows else None
        except BrokerAway:
            asked = None
        return _Flight(lock_id, rows, messages, asked), len(rows) + dropped

    def _finish(self, flight: _Flight) -> bool:
        """Write what became of a batch; False when the broker went away."""
        try:
            answers = self._answers(flight)
        except BrokerAway:
            transitions.return_outbox([row.id for row in flight.rows], lock_id=flight.lock_id, using=ENGINE)
            return False
        told = list(zip(flight.rows, answers, strict=True))
        transitions.confirm_outbox(
            [row.id for row, answer in told if answer.error is None], lock_id=flight.lock_id, using=ENGINE
        )
        refused = [(row.id, answer.error) for row, answer in told if answer.error is not None]
        if refused:
            self._say_refused([row.queue for row, answer in told if answer.error is not None], refused[0][1])
            transitions.postpone_outbox(
                refused,
                lock_id=flight.lock_id,
                base=self._settings.outbox_retry_base,
                cap=self._settings.outbox_retry_cap,
                using=ENGINE,
            )
        return True

    def _say_refused(self, queues: Sequence[str], error: str) -> None:
        """Thousands may be refused within seconds: one line tells of all since the last one."""
        self._refused.update(queues)
        if self._clock() >= self._silent_until:
            most = [queue for queue, _count in self._refused.most_common(NAMED)]
            extra = {"messages": self._refused.total(), "queues": most, "error": first_line(error)}
            log.warning("outbox.refused", extra=extra)
            self._refused.clear()
            self._silent_until = self._clock() + SILENCE

    def _answers(self, flight: _Flight) -> list[Published]:
        if flight.asked is None:
            raise BrokerAway
        try:
            return _complete(flight.messages, self._line.answer(flight.asked))
        except BrokerAway:
            raise
        except Exception:  # one message that nobody can publish must not hold up its batch for ever
            log.exception("publish.failed", extra={"messages": len(flight.messages)})
            return [self._alone(message) for message in flight.messages]

    def _alone(self, message: Dispatch | DeadLetter) -> Published:
        try:
            [answer] = _complete([message], self._line.ask(lambda broker: broker.publish([message])))
        except BrokerAway:
            raise
        except Exception as error:  # noqa: BLE001  (it was logged with its batch)
            return Published(f"{type(error).__name__}: {first_line(error)}")
        return answer


def _complete(messages: Sequence[Dispatch | DeadLetter], answers: list[Published]) -> list[Published]:
    if len(answers) != len(messages):
        raise ValueError(f"{len(answers)} answers to {len(messages)} messages")
    return answers


def _message(row: transitions.OutboxRow) -> Dispatch | DeadLetter:
    if row.token is None:
        return DeadLetter(row.job, row.body)
    return Dispatch(row.job, row.token, row.queue, row.priority)
