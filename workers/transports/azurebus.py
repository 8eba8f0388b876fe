"""The one file that knows azure-servicebus, an extra: what Turno asks of Service Bus, in Turno's own terms.

Each reader and each writer has an AMQP connection of its own: that is the library's way. Its retries are off, since the
engine has its own. Its reads hold the connection's lock for `SLICE` at most, in which nothing else can be written.
"""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from jobs.conf import ConfigurationError
from jobs.text import clean
from workers.transports.base import BrokerAway, Published
from workers.transports.buslibrary import LONGEST_REASON, Connections, hasten, told_of
from workers.transports.busterms import Letter, LockLost, NoQueue, Refused
from workers.transports.messages import CONTENT_TYPE

if TYPE_CHECKING:
    from azure.servicebus import ServiceBusReceivedMessage
    from azure.servicebus.aio import ServiceBusReceiver, ServiceBusSender

log = logging.getLogger(__name__)
SLICE = 0.1  # seconds
CLOSING = 5.0  # seconds in which a connection that is no longer wanted may end in order
LOOK = 0.01  # seconds between two looks whether it has
PAGE = 250  # messages that the service shows in one answer at most
NO_SUCH = 404


def require() -> None:
    """Raises ConfigurationError with one sentence when the extra is not installed."""
    try:
        import azure.servicebus.aio  # noqa: F401  (asks whether it is there)
    except ImportError:
        raise ConfigurationError(
            _(
                "messaging.transport is servicebus, and the package azure-servicebus is not installed: "
                "install turno[azure] (requirements/azure.txt)."
            )
        ) from None
    logging.getLogger("azure").setLevel(logging.ERROR)  # each state of each link is worth a line to it


@contextmanager
def _told(queue: str) -> Iterator[None]:
    """The library's errors in our terms: BrokerAway, NoQueue, LockLost, Refused."""
    from azure.servicebus import exceptions as told

    away = (
        told.ServiceBusConnectionError,
        told.ServiceBusCommunicationError,
        told.ServiceBusAuthenticationError,
        told.ServiceBusServerBusyError,
        told.OperationTimeoutError,
        OSError,  # TimeoutError is one
        AttributeError,  # of what the library has put to None when a connection ended
    )
    try:
        yield
    except told.MessagingEntityNotFoundError:
        raise NoQueue(queue) from None
    except (told.MessageLockLostError, told.MessageAlreadySettled):
        raise LockLost from None
    except away as error:
        cause = getattr(error, "inner_exception", None)
        if str(getattr(cause, "status_code", "")) == str(NO_SUCH):  # asked for a token to a queue that is not there
            raise NoQueue(queue) from None
        raise BrokerAway(told_of(error) or type(error).__name__) from error
    except (told.ServiceBusError, ValueError) as error:
        if type(error) is told.ServiceBusError and not hasattr(error.inner_exception, "condition"):
            raise BrokerAway(told_of(error)) from error  # the library stumbled over a connection that just ended
        raise Refused(told_of(error)) from error


class Message:
    """A message that was received, or looked at."""

    __slots__ = ("raw",)

    def __init__(self, raw: "ServiceBusReceivedMessage") -> None:
        self.raw = raw

    def body(self) -> bytes:
        """Its body; of a message without binary one whatever it says."""
        body = self.raw.body
        if isinstance(body, bytes | str) or not hasattr(body, "__iter__"):
            return str(body).encode()
        return b"".join(part if isinstance(part, bytes) else str(part).encode() for part in body)

    @property
    def reason(self) -> str:
        """Why it stands in a dead-letter queue; empty elsewhere."""
        return self.raw.dead_letter_reason or ""


class Reader:
    """Receives from one queue, or its dead-letter queue, and fetches nothing ahead; a hasty one settles unanswered."""

    def __init__(self, bus: "Bus", receiver: "ServiceBusReceiver", queue: str, *, hasty: bool) -> None:
        self._bus = bus
        self._receiver = receiver
        self._connections = Connections(receiver)
        self._queue = queue
        if hasty:
            hasten(receiver)

    async def open(self) -> None:
        """Connect. Raises BrokerAway, NoQueue, Refused, as the others do."""
        with _told(self._queue):
            await self._receiver.__aenter__()

    async def receive(self, most: int, wait: float) -> list[Message]:
        """At most so many messages, locked for us; none after `wait` s, fewer when no more have come by then.

        One message that was asked for alone is returned at once. May be cancelled: nothing is lost by that.
        """
        with _told(self._queue):
            found = await self._receiver.receive_messages(max_message_count=most, max_wait_time=wait)
        return [Message(raw) for raw in found]

    async def browse(self, most: int) -> list[Message]:
        """The oldest messages, locked by somebody or not, at most so many; they are only looked at."""
        found: list[Message] = []
        number = 1
        while len(found) < most:
            with _told(self._queue):
                page = await self._receiver.peek_messages(min(PAGE, most - len(found)), sequence_number=number)
            if not page:
                break
            found += [Message(raw) for raw in page]
            number = (page[-1].sequence_number or 0) + 1
        return found

    async def complete(self, message: Message) -> None:
        """Remove it. Raises LockLost too, as the next two do."""
        with _told(self._queue):
            await self._receiver.complete_message(message.raw)

    async def abandon(self, message: Message) -> None:
        """Give it back; the service counts the delivery."""
        with _told(self._queue):
            await self._receiver.abandon_message(message.raw)

    async def set_aside(self, message: Message, reason: str, why: str) -> None:
        """Put it into the queue's dead-letter queue."""
        with _told(self._queue):
            await self._receiver.dead_letter_message(
                message.raw, reason=reason, error_description=clean(why, LONGEST_REASON)
            )

    async def close(self) -> None:
        """Give back what was delivered and not returned, and disconnect. Never raises."""
        await self._bus.end(self._receiver, self._connections)


class Writer:
    """Sends to one queue, one batch at a time; connects when it must."""

    def __init__(self, bus: "Bus", queue: str) -> None:
        self._bus = bus
        self._queue = queue
        self._sender: tuple[ServiceBusSender, Connections] | None = None
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Connect anew. Raises BrokerAway, NoQueue, Refused."""
        async with self._turn:
            await self.close()
        await self.send([], self._bus.connect_timeout)

    async def send(self, letters: Sequence[Letter], timeout: float, why: str = "") -> list[Published]:
        """One answer a letter; `why` goes into each one's properties. Raises BrokerAway when some were not answered.

        `timeout` in seconds, for all of them.
        """
        async with self._turn:
            old = self._sender is not None
            try:
                async with asyncio.timeout(timeout):
                    try:
                        return await self._send(letters, why)
                    except BrokerAway:
                        if not old:
                            raise
                        await self.close()  # the service ends links that are idle for minutes
                        return await self._send(letters, why)
            except TimeoutError:
                await self.close()
                raise BrokerAway(_("no answer within %(seconds)s s") % {"seconds": round(timeout, 1)}) from None
            except BaseException:
                await self.close()
                raise

    async def _send(self, letters: Sequence[Letter], why: str) -> list[Published]:
        from azure.servicebus import ServiceBusMessage
        from azure.servicebus.exceptions import MessageSizeExceededError

        if self._sender is None:
            made = self._bus.sender(self._queue)
            self._sender = made, Connections(made)
        sender, _connections = self._sender
        answers: list[Published] = []
        with _told(self._queue):
            batch = await sender.create_message_batch()
            for letter in letters:
                properties: Any = {"reason": clean(why, LONGEST_REASON)} if why else None
                message = ServiceBusMessage(
                    letter.body(), message_id=letter.id, content_type=CONTENT_TYPE, application_properties=properties
                )
                try:
                    batch.add_message(message)
                except MessageSizeExceededError:
                    if len(batch):
                        await sender.send_messages(batch)
                    batch = await sender.create_message_batch()
                    try:
                        batch.add_message(message)
                    except MessageSizeExceededError as error:
                        answers.append(Published(told_of(error)))
                        continue
                answers.append(Published())
            if len(batch):
                await sender.send_messages(batch)
        return answers

    async def close(self) -> None:
        """Disconnect. Never raises."""
        sender, self._sender = self._sender, None
        if sender is not None:
            await self._bus.end(*sender)


class Bus:
    """A namespace of Service Bus; `name` is ours, for its logs. Raises ConfigurationError for a connection string that
    can't be one."""

    def __init__(self, connection_string: str, connect_timeout: float, name: str) -> None:
        require()
        from azure.servicebus.aio import ServiceBusClient

        self.connect_timeout = connect_timeout
        self._endings: set[asyncio.Task[None]] = set()
        make = partial(ServiceBusClient.from_connection_string, connection_string, retry_total=0, user_agent=name)
        try:  # no connection is made yet
            self._client = make(try_timeout=connect_timeout)
            self._sending = make()  # a send has its own time: a large batch may take longer than a connection
        except ValueError as error:
            words = _("messaging.azure_connection_string can't be used: %(why)s")
            raise ConfigurationError(words % {"why": told_of(error)}) from None

    def reader(self, queue: str, *, dead: bool = False, hasty: bool = False) -> Reader:
        """For one queue, or its dead-letter queue; not connected yet."""
        from azure.servicebus import ServiceBusSubQueue

        sub_queue = ServiceBusSubQueue.DEAD_LETTER if dead else None
        with _told(queue):
            receiver = self._client.get_queue_receiver(queue, sub_queue=sub_queue, socket_timeout=SLICE)
        return Reader(self, receiver, queue, hasty=hasty)

    def writer(self, queue: str) -> Writer:
        """For one queue; not connected yet."""
        return Writer(self, queue)

    def sender(self, queue: str) -> "ServiceBusSender":
        """The library's own."""
        return self._sending.get_queue_sender(queue, socket_timeout=SLICE)

    async def end(self, link: "ServiceBusReceiver | ServiceBusSender", connections: Connections) -> None:
        """Close it; returns when its messages are given back, and it is disconnected. Never raises.

        The library then waits a second for a task of its own, which is nobody's business.
        """
        task = asyncio.create_task(_close(link, connections))
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING):
                while connections.open and not task.done():
                    await asyncio.sleep(LOOK)


async def _close(link: "ServiceBusReceiver | ServiceBusSender", connections: Connections) -> None:
    try:
        async with asyncio.timeout(CLOSING):
            await link.close()
    except Exception:
        log.debug("servicebus.not_closed", exc_info=True)
    finally:
        await connections.close()
