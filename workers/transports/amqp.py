"""Connections to RabbitMQ: the one file that knows pika. Everything here lives on one event loop, in its thread."""

import asyncio
import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from pika import BasicProperties, URLParameters, exceptions, frame, spec
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.adapters.utils.connection_workflow import AMQPConnectorException

from jobs.conf import ConfigurationError
from jobs.serveraddress import parse_address
from workers.transports.channel import Channel, Gone, Kit
from workers.transports.framing import PART, Whole, delivery

log = logging.getLogger(__name__)
# pika tells each fault several times on its way up, with its own objects' innards; here it is said once, in words.
logging.getLogger("pika").setLevel(logging.CRITICAL)
BLOCKED = 300.0  # seconds that a connection may be blocked before another is tried
FAULTS = (exceptions.AMQPError, OSError, ValueError)
REFUSALS = {
    "403": gettext_noop("the broker refuses the user or the password"),
    "530": gettext_noop("the broker refuses access to the virtual host"),
}
# What pika concludes from how far the opening had come, also where the broker just went away in the middle of it.
GUESSED = (exceptions.ProbableAuthenticationError, exceptions.ProbableAccessDeniedError)
SAID: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (exceptions.AuthenticationError, REFUSALS["403"]),
    (GUESSED, gettext_noop("the connection was closed while it was being opened")),
    (exceptions.IncompatibleProtocolError, gettext_noop("what answers there is no broker for AMQP 0-9-1")),
    (exceptions.ConnectionOpenAborted, gettext_noop("no answer in time")),  # pika's own patience with it was over
    (exceptions.StreamLostError, gettext_noop("the connection was lost")),
    (exceptions.AMQPHeartbeatTimeout, gettext_noop("the broker gave no sign of life")),
    (exceptions.ConnectionBlockedTimeout, gettext_noop("the broker took no messages for too long")),
)


class Properties(BasicProperties):
    """A message's properties, whoever wrote them. The library gives a connection up over what it can't read, such as a
    header with an instant in milliseconds; the message then goes to the next worker. Here such properties are none."""

    def decode(self, encoded: bytes, offset: int = 0) -> "Properties":
        """What can be read of them."""
        try:
            super().decode(encoded, offset)
        except Exception as error:  # noqa: BLE001  (of whatever kind: the body tells what the message is)
            log.warning("message.properties_unreadable", extra={"error": str(error)})
        return self


spec.props[Properties.INDEX] = Properties  # by which the library reads what is delivered


class Later:
    """The properties of a delivery, read when somebody asks for one: of most jobs nobody does."""

    __slots__ = ("_encoded", "_found")

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded
        self._found: Properties | None = None

    def __getattr__(self, name: str) -> Any:
        if self._found is None:
            self._found = Properties().decode(self._encoded)
        return getattr(self._found, name)


class Quick(AsyncioConnection):
    """The library's connection, but for two steps that each job passes: a delivery that is here is read in one go, and
    what is written in one turn of the loop leaves in one piece."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._pieces: list[bytes] = []
        self._frame_buffer = b""
        super().__init__(*args, **options)

    def _adapter_emit_data(self, data: bytes) -> None:
        if not self._pieces:
            asyncio.get_running_loop().call_soon(self._emit)
        self._pieces.append(data)

    def _emit(self) -> None:
        data, self._pieces = b"".join(self._pieces), []
        if self._transport is not None:
            super()._adapter_emit_data(data)

    def _on_data_available(self, data_in: bytes) -> None:
        data, at = self._frame_buffer + data_in, 0
        while at < len(data):
            found = delivery(data, at)
            if found is PART:
                break
            if found is not None and found.channel in self._channels:
                self.frames_received += 3
                used = found.end - at
                self._brought(found)
            else:
                used, one = frame.decode_frame(data[at:] if at else data)
                if one is None:
                    break
                self._process_frame(one)
            self.bytes_received += used
            at += used
        self._frame_buffer = data[at:]

    def _brought(self, found: Whole) -> None:
        method = spec.Basic.Deliver(found.consumer, found.tag, found.redelivered)
        header: Any = frame.Header(found.channel, len(found.body), cast(Properties, Later(found.properties)))
        self._channels[found.channel]._on_deliver(frame.Method(found.channel, method), header, found.body)


class Unreachable(Exception):
    """No connection came about; the text says why, for people."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to connect: addresses tried in turn, seconds, and the name that the broker shows to its administrators."""

    urls: Sequence[str] = field(repr=False)  # with passwords
    heartbeat: float
    connect_timeout: float
    name: str

    def parameters(self, url: str) -> URLParameters:
        """What pika wants; what the address itself names wins. Raises ValueError."""
        found = URLParameters(url)
        ours = {
            "heartbeat": max(1, round(self.heartbeat)),
            "socket_timeout": self.connect_timeout,
            "stack_timeout": self.connect_timeout,
            "blocked_connection_timeout": BLOCKED,
            "client_properties": {"connection_name": self.name},
        }
        named = parse_qs(urlsplit(url).query)
        for option, value in ours.items():
            if option not in named:
                setattr(found, option, value)
        return found


def require(urls: Sequence[str]) -> None:
    """Raises ConfigurationError where pika does not take an address; what it says may quote a secret, and is left."""
    for number, url in enumerate(urls, 1):
        try:
            Options((url,), heartbeat=1.0, connect_timeout=1.0, name="").parameters(url)
        except (ValueError, TypeError, SyntaxError, OSError):  # options are Python literals, and name files
            raise ConfigurationError(
                _("messaging.urls: address %(number)s has an option that is not known or has a wrong value")
                % {"number": number}
            ) from None


async def connect(options: Options) -> "Connection":
    """A connection to the first address that answers. Raises Unreachable."""
    failures = []
    for url in options.urls:
        try:
            return await _open(options.parameters(url), 2 * options.connect_timeout + 1)
        except (Unreachable, *FAULTS) as error:
            failures.append(f"{parse_address(url).name}: {error}")
    raise Unreachable("; ".join(failures))


async def _open(parameters: URLParameters, limit: float) -> "Connection":
    loop = asyncio.get_running_loop()
    opened: asyncio.Future[str | None] = loop.create_future()
    connection = Connection()

    def end(why: str | None) -> None:
        if not opened.done():
            opened.set_result(why)

    native = Quick(
        parameters,
        on_open_callback=lambda _native: end(None),
        on_open_error_callback=lambda _native, error: end(reason(error)),
        on_close_callback=lambda _native, error: connection.closed(error),
        custom_ioloop=loop,
    )
    connection.begin(native)
    try:
        async with asyncio.timeout(limit):
            why = await opened
    except BaseException as error:
        with suppress(*FAULTS):
            native.close()
        if isinstance(error, TimeoutError):
            raise Unreachable(_("no answer in time")) from None
        raise
    if why is not None:
        raise Unreachable(why)
    return connection


class Connection:
    """A connection to the broker. `lost` is done, with the reason as a text, when it is closed, however that came."""

    def __init__(self) -> None:
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.blocked = False
        self._native: Any = None

    def begin(self, native: AsyncioConnection) -> None:
        """Its native self was made."""
        self._native = native
        native.add_on_connection_blocked_callback(lambda _native, frame: self._block(frame.method.reason))
        native.add_on_connection_unblocked_callback(lambda _native, _frame: self._unblock())

    def _block(self, why: object) -> None:
        log.warning("broker.blocked", extra={"error": str(why)})
        self.blocked = True

    def _unblock(self) -> None:
        log.info("broker.unblocked")
        self.blocked = False

    def closed(self, error: object) -> None:
        """It is closed."""
        if not self.lost.done():
            self.lost.set_result(reason(error))

    @property
    def version(self) -> tuple[int, ...]:
        """The broker's release, (3, 10, 8); (0,) where it does not say."""
        said = (self._native.server_properties or {}).get("version", b"")
        text = said.decode() if isinstance(said, bytes) else str(said)
        return tuple(int(part) for part in re.findall(r"\d+", text)[:3]) or (0,)

    async def channel(self) -> Channel:
        """A new channel. Raises Gone."""
        return await Channel.open(self._native, KIT)

    async def answers(self, limit: float) -> bool:
        """Whether the broker opens and closes a channel within `limit` seconds."""
        try:
            async with asyncio.timeout(limit):
                await (await self.channel()).close()
        except (Gone, TimeoutError):
            return False
        return True

    async def close(self, limit: float) -> None:
        """Close it in order, waiting at most `limit` seconds. A broker that does not answer any more is left to itself:
        the missing heartbeats end such a connection."""
        if self.lost.done():
            return
        with suppress(*FAULTS):
            self._native.close()
        await asyncio.wait([self.lost], timeout=limit)
        self.closed(_("no answer in time"))


def reason(error: object) -> str:
    """Why a connection or a channel is no more, for people. `error` is what pika hands over: exceptions, or a text."""
    inner = _innermost(error)
    if isinstance(inner, (exceptions.ConnectionClosed, exceptions.ChannelClosed)):
        return f"{inner.reply_text} ({inner.reply_code})"
    if isinstance(inner, GUESSED) and (code := re.search(r"\((403|530)\)", str(inner))):
        return _(REFUSALS[code[1]])
    for kinds, said in SAID:
        if isinstance(inner, kinds):
            return _(said)
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror
    return str(inner) or type(inner).__name__


def _innermost(error: object) -> object:
    """What went wrong: pika wraps it in what it was doing."""
    while True:
        deeper = getattr(error, "exceptions", None) or getattr(error, "exception", None)
        if not deeper and isinstance(error, (exceptions.AMQPConnectionError, AMQPConnectorException)):
            deeper = next((a for a in error.args if isinstance(a, BaseException)), None)
        if not deeper:
            return error
        error = deeper[-1] if isinstance(deeper, (list, tuple)) else deeper


KIT = Kit(FAULTS, reason, BasicProperties)
