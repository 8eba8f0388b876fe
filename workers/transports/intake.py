"""One queue of RabbitMQ as a worker consumes it: it holds as much as slots are free; what is not claimed goes back."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from time import monotonic

from django.utils.translation import gettext as _

from workers.connections import Backoff
from workers.leases import Held
from workers.transports.amqp import Connection
from workers.transports.appetite import Appetite
from workers.transports.channel import NOT_FOUND, OTHERWISE, Gone, Incoming
from workers.transports.messages import Dispatch, Garbage, error_queue, read
from workers.transports.named import Delivery
from workers.transports.topology import Topology

log = logging.getLogger(__name__)
LONGEST_REST = 30.0  # seconds between two tries with a queue that the broker refuses
REMEMBERED = 600.0  # seconds for which a queue's deletion is shown
Reject = Callable[[Incoming, str, str], None]


class Received(Delivery):
    """A dispatch as it was delivered."""

    def __init__(self, dispatch: Dispatch, incoming: Incoming, reject: Reject) -> None:
        self.dispatch = dispatch
        self._incoming = incoming
        self._reject = reject

    @property
    def priority(self) -> int:
        """As the broker had it."""
        return self._incoming.priority

    def ack(self) -> None:
        self._incoming.ack()

    def give_back(self) -> None:
        self._incoming.give_back()

    def reject(self, reason: str) -> None:
        self._reject(self._incoming, self.dispatch.queue, reason)


class Intake:
    """Lives on the engine's loop. `allowed` says whether anything may be held; ask for another look with `review`.

    `reject` is given what can't be processed: message, queue, reason; it sees to the acknowledgement.
    """

    def __init__(
        self,
        queue: str,
        slots: int,
        topology: Topology,
        *,
        allowed: Callable[[str], bool],
        wake: Callable[[], None],
        reject: Reject,
    ) -> None:
        self.queue = queue
        self.quiet = asyncio.Event()  # nothing is held, and nothing will come
        self.quiet.set()
        self._topology = topology
        self._allowed = allowed
        self._wake = wake
        self._reject = reject
        self._loop = asyncio.get_running_loop()
        self._appetite = Appetite(slots, self._loop.time())
        self._pending: list[Received] = []
        self._seated: dict[int, Held] = {}  # by slot, what was started there; those freed since the last take as well
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._armed: float | None = None
        self._deleted = False
        self._deleted_at: float | None = None
        self._refused = ""

    # What the transport says

    def take(self, slots: int) -> list[Received]:
        """At most `slots` deliveries, best first, for free slots that are on offer until `taken`."""
        if len(self._pending) > slots:
            self._pending.sort(key=lambda delivery: -delivery.priority)
        found, self._pending = self._pending[:slots], self._pending[slots:]
        self._appetite.offer(slots, self._loop.time())
        self._arm()
        self._seated = {slot: held for slot, held in self._seated.items() if not held.freed}
        return found

    def taken(self, held: Iterable[Held]) -> None:
        """Of the slots on offer those of `held` are taken."""
        seated = {one.claim.slot: one for one in held}
        self._seated.update(seated)
        self._appetite.taken(len(seated), self._loop.time())
        self._arm()

    def room(self, waiting: int) -> None:
        """So many free slots wait."""
        self._appetite.room(waiting, self._loop.time())
        self._arm()

    def review(self) -> None:
        """What is `allowed` may have changed."""
        self._changed.set()

    def problems(self) -> list[str]:
        """What people should know. Thread-safe."""
        name, found = self._topology.name(self.queue), []
        if self._refused:
            found.append(_("The broker refuses the queue %(queue)s: %(why)s") % {"queue": name, "why": self._refused})
        if self._deleted_at is not None and monotonic() < self._deleted_at + REMEMBERED:
            found.append(_("The queue %(queue)s was deleted at the broker; it was declared again.") % {"queue": name})
        return found

    # What the connection does

    async def run(self, connection: Connection) -> None:
        """Consume until the connection is lost. A queue that is refused is tried again, and stops no other one."""
        rest = Backoff(LONGEST_REST)
        try:
            while not connection.lost.done():
                try:
                    await self._consume(connection, rest)
                except Gone as gone:
                    if connection.lost.done():
                        return
                    if gone.code == NOT_FOUND:
                        self._say_deleted()
                    else:
                        log.warning("queue.refused", extra={"queue": self.queue, "error": str(gone)})
                        self._refused = str(gone)
                except Exception as error:
                    log.exception("queue.failed", extra={"queue": self.queue})
                    self._refused = str(error)
                self._forget()
                await asyncio.sleep(rest.delay())
        finally:
            self._forget()

    async def _declare(self, connection: Connection) -> None:
        try:
            await self._topology.declare(connection, self.queue)
            await self._topology.declare(connection, error_queue(self.queue))
        except Gone as gone:  # a queue whose node is down is "not found" as well, and was not deleted
            raise Gone(OTHERWISE, str(gone)) from None

    async def _consume(self, connection: Connection, rest: Backoff) -> None:
        """Raises Gone when the channel is closed."""
        await self._declare(connection)
        channel = await connection.channel()
        channel.on_cancelled = self._on_cancelled
        channel.gone.add_done_callback(lambda _gone: self._changed.set())
        tag = ""
        while not channel.gone.done():
            self._changed.clear()
            if self._deleted:
                self._deleted, tag = False, ""
                self._set_prefetch(0)
                await self._declare(connection)
            wanted = self._wanted() if self._allowed(self.queue) else 0
            if wanted == self._appetite.prefetch:
                await self._changed.wait()
                continue
            if tag:
                await channel.cancel(tag)
                tag = ""
                self._set_prefetch(0)
            if wanted:
                self.quiet.clear()
                tag = await channel.consume(self._topology.name(self.queue), wanted, self._deliver)
                self._set_prefetch(wanted)
                self._refused = ""
                rest.reset()
            else:
                self._give_back()
        raise channel.gone.result()

    def _wanted(self) -> int:
        """What may be held now. Where handlers are over and their ends are being written, slots will be free in a
        moment: as much as those will take would be given back, and brought again, for nothing."""
        now = self._loop.time()
        wanted = self._appetite.wanted(now)
        if wanted or not self._appetite.prefetch:
            return wanted
        ending = sum(held.ended and not held.freed for held in self._seated.values())
        if not self._appetite.put_off(len(self._pending), ending, now):
            return wanted
        self._arm()
        return self._appetite.prefetch

    def _deliver(self, incoming: Incoming) -> None:
        try:
            dispatch = read(incoming.body, self.queue)
        except Garbage as garbage:
            self._reject(incoming, self.queue, str(garbage))
            return
        self._pending.append(Received(dispatch, incoming, self._reject))
        self._wake()

    def _on_cancelled(self) -> None:
        self._say_deleted()
        self._deleted = True
        self._changed.set()

    def _say_deleted(self) -> None:
        log.warning("queue.deleted", extra={"queue": self.queue})
        self._deleted_at = monotonic()

    def _give_back(self) -> None:
        pending, self._pending = self._pending, []
        for delivery in pending:
            delivery.give_back()
        self.quiet.set()

    def _forget(self) -> None:
        """The channel is closed: what came by it went back to the queue."""
        self._pending.clear()
        self._deleted = False
        self._set_prefetch(0)
        self.quiet.set()

    def _set_prefetch(self, prefetch: int) -> None:
        self._appetite.consumes(prefetch, self._loop.time())
        self._arm()

    def _arm(self) -> None:
        """Look again at the instant at which the appetite changes."""
        due = self._appetite.due
        if due == self._armed:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed = due
        self._timer = None if due is None else self._loop.call_at(due, self._changed.set)
