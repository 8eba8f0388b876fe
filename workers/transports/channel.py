"""A channel to the broker by futures instead of callbacks. Lives on one event loop, in its thread.

The client library calls back, and forgets: what waits for an answer when a channel is closed is never called. Here such
a request ends with `Gone`. A delivery belongs to the channel that brought it, which is an object of its own: once that
is closed nothing is said about the delivery any more, so that no tag of an earlier channel, which may be another
message's by now, is ever acknowledged.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from itertools import takewhile
from typing import Any
from uuid import uuid4

# What AMQP calls: no such queue; another connection's own; declared with other values.
NOT_FOUND, LOCKED, OTHERWISE = 404, 405, 406
PERSISTENT = 2


class Gone(Exception):
    """The channel, or the connection below it, is closed. `code` is AMQP's, 0 where the broker gave none."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Answer(Enum):
    """What the broker said to a message that was published; LOST: nothing, and it never will."""

    CONFIRMED = "confirmed"
    UNROUTABLE = "unroutable"
    REFUSED = "refused"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Kit:
    """What a channel needs of the client library: its exceptions, their reason in words, a message's properties."""

    faults: tuple[type[Exception], ...]
    reason: Callable[[object], str]
    properties: Callable[..., Any]


@dataclass(eq=False, slots=True)
class Incoming:
    """A message as it was delivered: say one word about it, once. `ack` and `give_back` return at once, and do nothing
    when its channel is closed: it went back then."""

    channel: "Channel"
    tag: int
    body: bytes
    properties: Any

    @property
    def priority(self) -> int:
        """As the broker has it."""
        return self.properties.priority or 0

    @property
    def content_type(self) -> str | None:
        """As its sender gave it."""
        found: str | None = self.properties.content_type
        return found

    def ack(self) -> None:
        """It is done with."""
        self.channel.settle(self.tag, done=True)

    def give_back(self) -> None:
        """Put it back into its queue."""
        self.channel.settle(self.tag, done=False)


class Channel:
    """Requests one after another, publishes pipelined. `gone` is done when it is closed. `on_cancelled` is called when
    the broker ends a consumer, since its queue is gone.

    What is said about deliveries in one turn of the loop is sent after it, in as few words as it takes: one that is
    "multiple" goes for a delivery and for all before it that nothing was said about. Words cost, at both ends.
    """

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[Gone] = self._loop.create_future()
        self.on_cancelled: Callable[[], None] = lambda: None
        self._native: Any = None
        self._waiting: set[asyncio.Future[Any]] = set()
        self._published = 0
        self._unconfirmed: dict[int, tuple[str, asyncio.Future[Answer]]] = {}
        self._returned: set[int] = set()
        self._delivered: dict[int, None] = {}  # tags that nothing was sent about, the first first
        self._said: dict[int, bool] = {}  # by tag, what is to be sent: done with, or given back

    @classmethod
    async def open(cls, connection: Any, kit: Kit) -> "Channel":
        """A new one on the library's connection. Raises Gone."""
        channel = cls(kit)

        def send(done: Callable[[Any], None]) -> None:
            native = channel._native = connection.channel(on_open_callback=done)
            native.add_on_close_callback(lambda _native, error: channel._closed(error))
            native.add_on_cancel_callback(lambda _frame: channel.on_cancelled())

        await channel._ask(send)
        return channel

    def _closed(self, error: object) -> None:
        code, text = getattr(error, "reply_code", 0), self._kit.reason(error)
        if not self.gone.done():
            self.gone.set_result(Gone(code, text))
        for request in self._waiting:
            if not request.done():
                request.set_exception(Gone(code, text))
        for _id, answer in self._unconfirmed.values():
            if not answer.done():
                answer.set_result(Answer.LOST)
        self._unconfirmed.clear()
        self._delivered.clear()
        self._said.clear()

    def _check(self) -> None:
        if self.gone.done():
            gone = self.gone.result()
            raise Gone(gone.code, str(gone))

    async def _ask(self, send: Callable[[Callable[[Any], None]], object]) -> Any:
        self._check()
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.add(future)
        try:
            send(lambda frame: None if future.done() else future.set_result(frame))
            return await future
        except self._kit.faults as error:
            raise Gone(0, self._kit.reason(error)) from None
        finally:
            self._waiting.discard(future)

    async def declare(self, queue: str, arguments: Mapping[str, Any] | None = None, *, passive: bool = False) -> int:
        """Declare a durable queue, or look at it; how many of its messages wait. Raises Gone (404, 405, 406)."""
        options = {"passive": passive, "durable": True, "arguments": dict(arguments or {})}
        frame = await self._ask(lambda done: self._native.queue_declare(queue, callback=done, **options))
        return int(frame.method.message_count)

    async def consume(self, queue: str, prefetch: int, deliver: Callable[[Incoming], None]) -> str:
        """Have at most `prefetch` unacknowledged messages of a new consumer delivered; its tag. Raises Gone.

        `deliver` may be called before this returns; it must not raise.
        """

        def message(_native: Any, method: Any, properties: Any, body: bytes) -> None:
            self._delivered[method.delivery_tag] = None
            deliver(Incoming(self, method.delivery_tag, body, properties))

        tag = f"turno-{uuid4().hex}"
        await self._ask(lambda done: self._native.basic_qos(prefetch_count=prefetch, callback=done))
        await self._ask(lambda done: self._native.basic_consume(queue, message, consumer_tag=tag, callback=done))
        return tag

    async def cancel(self, tag: str) -> None:
        """End a consumer: what comes for it after this was sent goes back by itself. Raises Gone."""
        self._check()
        if tag in self._native.consumer_tags:  # else the broker has ended it, and no answer would come
            await self._ask(lambda done: self._native.basic_cancel(tag, callback=done))

    def settle(self, tag: int, *, done: bool) -> None:
        """Of a delivery of this channel: it is done with, or goes back to its queue. Sent at the loop's next turn."""
        if tag in self._delivered and not self.gone.done():
            if not self._said:
                self._loop.call_soon(self._send_said)
            self._said.setdefault(tag, done)

    def _send_said(self) -> None:
        with suppress(*self._kit.faults):
            for tag, done, multiple in self._words():
                if done:
                    self._native.basic_ack(tag, multiple=multiple)
                else:
                    self._native.basic_nack(tag, multiple=multiple, requeue=True)

    def _words(self) -> list[tuple[int, bool, bool]]:
        """What is to be sent: (tag, done, whether it goes for all before it as well)."""
        words: list[tuple[int, bool, bool]] = []
        said, self._said = self._said, {}
        for tag in self._delivered:
            if (done := said.get(tag)) is None:
                break  # from here on each has a word of its own, for this one waits on
            if words and words[-1][1] is done:
                words.pop()
            words.append((tag, done, True))
        head = words[-1][0] if words else 0
        words += ((tag, done, False) for tag, done in said.items() if tag > head)
        for tag in said:
            del self._delivered[tag]
        return words

    async def confirm(self) -> None:
        """Have every message that is published confirmed. Raises Gone."""
        self._native.add_on_return_callback(self._on_return)
        await self._ask(lambda done: self._native.confirm_delivery(self._on_confirm, callback=done))

    @property
    def unconfirmed(self) -> int:
        """How many messages have no answer yet."""
        return len(self._unconfirmed)

    def publish(self, queue: str, body: bytes, properties: Mapping[str, Any]) -> "asyncio.Future[Answer]":
        """Publish to a queue, persistent and mandatory; the future ends with the broker's answer. Raises Gone.

        `message_id` among the properties tells messages apart that have not been answered yet.
        """
        self._check()
        try:
            own = self._kit.properties(delivery_mode=PERSISTENT, **properties)
            self._native.basic_publish("", queue, body, own, mandatory=True)
        except self._kit.faults as error:
            raise Gone(0, self._kit.reason(error)) from None
        self._published += 1
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._unconfirmed[self._published] = properties["message_id"], future
        return future

    def _on_return(self, _native: Any, _method: Any, properties: Any, _body: bytes) -> None:
        """It has no queue; it is confirmed all the same, after this."""
        self._returned |= {n for n, (id_, _future) in self._unconfirmed.items() if id_ == properties.message_id}

    def _on_confirm(self, frame: Any) -> None:
        last, refused = frame.method.delivery_tag, frame.method.NAME == "Basic.Nack"
        for number in self._up_to(last) if frame.method.multiple else [last]:
            _id, future = self._unconfirmed.pop(number, ("", None))
            answer = Answer.UNROUTABLE if number in self._returned else Answer.REFUSED if refused else Answer.CONFIRMED
            self._returned.discard(number)
            if future is not None and not future.done():
                future.set_result(answer)

    def _up_to(self, last: int) -> list[int]:
        return list(takewhile(lambda number: number <= last, self._unconfirmed))

    async def close(self) -> None:
        """Close it. Returns when the broker knows, or the connection is gone."""
        self._send_said()
        with suppress(*self._kit.faults):
            self._native.close()
            await asyncio.wait([self.gone])
