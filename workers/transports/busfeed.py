"""The messages of one Service Bus queue on their way in: received only for free slots, settled as the claims decide."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from django.utils.translation import gettext as _

from workers.connections import Backoff
from workers.transports.azurebus import Bus, Message, Reader
from workers.transports.base import FIRST, BrokerAway
from workers.transports.busterms import LockLost, NoQueue, Refused
from workers.transports.messages import Dispatch, Garbage, read
from workers.transports.named import Delivery

log = logging.getLogger(__name__)
WAIT = 2.0  # seconds that one call waits for a message
GRAB = 0.005  # seconds in which others that wait are taken along with the first
FULL = 0.02  # seconds for which a queue's slots are full before what was not claimed goes back
LOOK_AGAIN = 10.0  # seconds between two looks for a queue that does not exist, or refuses us
STEADY = 5.0  # seconds after which a connection counts as one that works
PUT_DOWN = 2.0  # seconds for what is unsettled when a connection ends
OURS = "turno"  # the reason under which we put a message aside ourselves

Settle = Callable[[Reader], Awaitable[None]]
Poisoned = Callable[[str, Message, str], Awaitable[bool]]


class BusDelivery(Delivery):
    """A dispatch that is locked for us."""

    def __init__(self, feed: "Feed", message: Message, dispatch: Dispatch) -> None:
        self.dispatch = dispatch
        self._feed: Feed | None = feed
        self._message = message

    def ack(self) -> None:
        self._settle(lambda reader: reader.complete(self._message))

    def give_back(self) -> None:
        self._settle(lambda reader: reader.abandon(self._message))

    def reject(self, reason: str) -> None:
        self._settle(lambda reader: reader.set_aside(self._message, OURS, reason))

    def _settle(self, how: Settle) -> None:
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.settle(how)


class Feed:
    """Lives on the engine's loop. `wake` is called when a delivery has come; `heard` when the service has answered
    (with nothing) or has not (with why); `poisoned` is given what is no dispatch, and says whether it has put it
    elsewhere; `longest`: seconds between two tries to connect.

    The credit that the service has from us never exceeds the free slots less what waits here, and every message
    answers for one: when all slots are taken there is none left, so a busy worker holds nothing back.
    """

    def __init__(
        self,
        bus: Bus,
        queue: str,
        name: str,
        slots: int,
        *,
        wake: Callable[[], None],
        heard: Callable[[str], None],
        poisoned: Poisoned,
        longest: float,
    ) -> None:
        self.queue, self.name = queue, name
        self.problem = ""  # of this queue alone
        self._bus = bus
        self._wake = wake
        self._heard = heard
        self._poisoned = poisoned
        self._free = slots
        self._offered = 0
        self._arrived: deque[BusDelivery] = deque()
        self._roomy = asyncio.Event()
        self._asking = False
        self._settlements: asyncio.Queue[Settle] = asyncio.Queue()
        self._unsettled = 0
        self._settled = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._backoff = Backoff(longest, FIRST)
        self._loop = asyncio.get_running_loop()

    # What the transport says

    def allow(self, allowed: bool) -> None:
        """Receive, or hold nothing: what waits here goes back, and the connection ends."""
        if allowed and self._task is None:
            self._task = asyncio.create_task(self._serve(set(self._ending)), name=f"feed-{self.name}")
        elif not allowed and self._task is not None:
            task, self._task = self._task, None
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            task.cancel()

    async def ended(self, timeout: float) -> None:
        """Returns when nothing is held any more, after `timeout` seconds in any case."""
        if self._ending:
            await asyncio.wait(self._ending, timeout=timeout)

    def take(self, slots: int) -> list[BusDelivery]:
        """Deliveries for so many free slots, which stay offered until `taken`."""
        found = [self._arrived.popleft() for _ in range(min(slots, len(self._arrived)))]
        self._free = max(0, self._free - slots)
        self._offered = slots - len(found)
        return found

    def taken(self, unused: int) -> None:
        """Of the slots of the last `take` so many are free again."""
        self._offered = 0
        self.room(self._free + unused)

    def room(self, free: int) -> None:
        """So many slots are free, those on offer not counted."""
        self._free = free
        if self._room > 0:
            self._roomy.set()

    def full(self) -> None:
        """No slot is free: unless one is soon, what has come and was not claimed goes back."""
        self._free = 0
        self._loop.call_later(FULL, self._shed)

    def settle(self, how: Settle) -> None:
        """What becomes of a message, decided."""
        self._settlements.put_nowait(how)

    @property
    def _room(self) -> int:
        return self._free + self._offered - len(self._arrived)

    def _shed(self) -> None:
        while self._arrived and self._room < 0:
            self._arrived.pop().give_back()
        if self._asking and self._room <= 0 and self._task is not None:
            self.allow(False)  # ends the link, and with it the credit
            self.allow(True)

    # Connections, one after the other

    async def _serve(self, before: set[asyncio.Task[None]]) -> None:
        if before:
            await asyncio.wait(before)
        while True:
            since = self._loop.time()
            pause = LOOK_AGAIN
            try:
                await self._session()
            except NoQueue as error:
                self._answered(str(error))
            except Refused as error:
                words = _("The broker refuses the queue %(queue)s: %(why)s")
                self._answered(words % {"queue": self.name, "why": error})
            except BrokerAway as error:
                pause = 0.0
                if self._loop.time() - since < STEADY:  # else it is tried again at once, and then we shall see
                    self._heard(str(error))
                    pause = self._backoff.delay()
            except Exception:
                log.exception("feed.failed", extra={"queue": self.name})
            await asyncio.sleep(pause)

    def _answered(self, problem: str = "") -> None:
        self._heard("")
        if problem and problem != self.problem:
            log.warning("queue.refused", extra={"queue": self.name, "error": problem})
        elif self.problem and not problem:
            log.info("queue.back", extra={"queue": self.name})
        self.problem = problem
        if not problem:
            self._backoff.reset()

    async def _session(self) -> None:
        reader = self._bus.reader(self.name, hasty=True)
        try:
            await reader.open()
            self._answered()
            settling = asyncio.create_task(self._settle_all(reader), name=f"settle-{self.name}")
            try:
                await self._receive(reader)
            finally:
                await self._put_down(settling)
        finally:
            await reader.close()

    async def _receive(self, reader: Reader) -> None:
        """One message is waited for alone, since only then is it brought at once; then come the others that wait."""
        more = False
        while True:
            if self._room <= 0:
                self._roomy.clear()
                await self._roomy.wait()
            self._asking = True
            try:
                found = await reader.receive(self._room if more else 1, GRAB if more else WAIT)
            finally:
                self._asking = False
            if found:  # nothing is no answer: it is what a service brings that is silent
                self._answered()
            for message in found:
                self._arrive(message)
            more = bool(found)

    def _arrive(self, message: Message) -> None:
        self._unsettled += 1
        self._settled.clear()
        try:
            dispatch = read(message.body(), self.queue)
        except Garbage as error:
            self.settle(partial(self._put_aside, message, str(error)))
            return
        self._arrived.append(BusDelivery(self, message, dispatch))
        self._wake()

    async def _put_aside(self, message: Message, why: str, reader: Reader) -> None:
        if await self._poisoned(self.queue, message, why):
            await reader.complete(message)
        else:
            await reader.set_aside(message, OURS, why)

    # What becomes of messages

    async def _settle_all(self, reader: Reader) -> None:
        """One after the other, in the order decided; what can't be settled comes again when its lock ends."""
        while True:
            how = await self._settlements.get()
            try:
                await how(reader)
            except LockLost:
                log.debug("message.lock_lost", extra={"queue": self.queue})  # a duplicate comes, its token drops it
            except (BrokerAway, NoQueue, Refused) as error:
                log.info("message.unsettled", extra={"queue": self.queue, "error": str(error)})
            except Exception:
                log.exception("message.unsettled", extra={"queue": self.queue})
            finally:
                self._unsettled -= 1
                if not self._unsettled:
                    self._settled.set()

    async def _put_down(self, settling: "asyncio.Task[None]") -> None:
        while self._arrived:
            self._arrived.pop().give_back()
        if self._unsettled:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._settled.wait(), PUT_DOWN)
        settling.cancel()  # what is left is settled by the next connection, or its lock ends
        await asyncio.wait([settling])
