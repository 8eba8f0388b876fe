"""Are the servers beside PostgreSQL there? Probes for `jobs.health`, by plain sockets: no client of theirs is needed.

They ask whether somebody answers in the right tongue, with no user and no password: whether those are right the
workers find out, and say so in their rows. So a certificate isn't looked at either. Without any of these servers the
API answers and jobs are accepted: nothing here is `needed`.
"""

import socket
import ssl
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

from django.db import Error
from django.utils.translation import gettext_noop

from jobs import health
from jobs.conf import Settings
from jobs.queries.attention import LATE
from jobs.queries.outbox import outbox
from jobs.serveraddress import ServerAddress, parse_address, parse_connection_string

PATIENCE = 1.6  # seconds for all servers of a probe: less than `health.DEADLINE`
BROKER_FRESH = 5.0
# A handshake that goes no further is a warning in RabbitMQ's log, a connection on which nothing is said is none: so a
# node that has shaken hands is only asked for a connection for so many seconds.
TRUSTED = 60.0
HELLO = b"AMQP\x00\x00\x09\x01"
# The frame of a method on channel 0, and its class and method: Connection.Start.
START = ((0, b"\x01\x00\x00"), (7, b"\x00\x0a\x00\x0a"))
ALIVE = (b"+PONG", b"-NOAUTH", b"-NOPERM")
READ = 64  # bytes that are enough to know who answers

NO_QUORUM = gettext_noop("does not answer on %(down)s of %(servers)s servers (%(which)s); that leaves no quorum")
QUORUM = gettext_noop("does not answer on %(down)s of %(servers)s servers (%(which)s); the others are a quorum")
OUTBOX_LATE = gettext_noop("has %(waiting)s messages that wait for the broker, the oldest for %(oldest)s s")
OUTBOX_FAILING = gettext_noop("has %(failing)s messages that the broker does not take")
NOT_KNOWN = gettext_noop("is not known while PostgreSQL does not answer")


def _connect(server: ServerAddress, until: float) -> socket.socket:
    """A connection, with TLS where it is spoken; each wait on it ends in time. Raises OSError."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    if server.path:
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(left)
        try:
            line.connect(server.path)
        except BaseException:
            line.close()
            raise
        return line
    line = socket.create_connection((server.host, server.port), left)
    return _wrapped(line, server.host) if server.tls else line


def _wrapped(line: socket.socket, host: str) -> socket.socket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        return context.wrap_socket(line, server_hostname=host)
    except BaseException:
        line.close()
        raise


def _answer(server: ServerAddress, said: bytes, until: float, enough: Callable[[bytes], bool]) -> bytes:
    """What it answers to `said`, up to what is `enough` to judge. Raises OSError; an early end is an answer too."""
    got = b""
    with closing(_connect(server, until)) as line:
        line.sendall(said)
        while not enough(got) and len(got) < READ:
            line.settimeout(max(0.001, until - time.monotonic()))
            more = line.recv(READ)
            if not more:
                break
            got += more
    return got


def _is_rabbitmq(server: ServerAddress, until: float) -> bool:
    got = _answer(server, HELLO, until, lambda said: len(said) >= 11)
    return all(got[at : at + len(there)] == there for at, there in START)


def _is_redis(server: ServerAddress, until: float) -> bool:
    return _answer(server, b"PING\r\n", until, lambda said: b"\n" in said).startswith(ALIVE)


def _is_there(server: ServerAddress, until: float) -> bool:
    _connect(server, until).close()
    return True


def _asked(ask: Callable[[ServerAddress, float], bool], server: ServerAddress, until: float) -> bool:
    with suppress(OSError, ValueError):  # ValueError: a host that is no host
        return ask(server, until)
    return False


def rabbitmq(urls: Sequence[str]) -> Callable[[], None]:
    """A probe: one node of the cluster answers. Raises Down."""
    servers = [parse_address(url) for url in urls]
    known: dict[ServerAddress, float] = {}  # when it has shaken hands

    def answers(server: ServerAddress, until: float) -> bool:
        if time.monotonic() - known.get(server, float("-inf")) < TRUSTED:
            return _asked(_is_there, server, until)
        if shaken := _asked(_is_rabbitmq, server, until):
            known[server] = time.monotonic()
        return shaken

    def probe() -> None:
        began = time.monotonic()
        for place, server in enumerate(servers, 1):  # a node that hangs leaves the next ones their share
            if answers(server, began + PATIENCE * place / len(servers)):
                return
            known.pop(server, None)
        raise health.Down(health.NO_ANSWER, where=[server.name for server in servers])

    return probe


def service_bus(connection_string: str) -> Callable[[], None]:
    """A probe: the namespace's endpoint takes connections. Raises Down."""
    parts = parse_connection_string(connection_string)
    plain = parts.get("UseDevelopmentEmulator", "").lower() == "true"
    server = parse_address(parts["Endpoint"].replace("sb://", "amqp://" if plain else "amqps://"))

    def probe() -> None:
        if not _asked(_is_there, server, time.monotonic() + PATIENCE):
            raise health.Down(health.NO_ANSWER, where=[server.name])

    return probe


def redis(urls: Sequence[str]) -> Callable[[], None]:
    """A probe: all servers answer. Raises Down, which says how many don't, and whether the others are a quorum."""
    servers = [parse_address(url) for url in urls]

    def probe() -> None:
        until = time.monotonic() + PATIENCE
        with ThreadPoolExecutor(len(servers)) as pool:
            alive = list(pool.map(lambda server: _asked(_is_redis, server, until), servers))
        down = [place for place, lives in enumerate(alive) if not lives]
        if not down:
            return
        where = [servers[place].name for place in down]
        values = {"down": len(down), "servers": len(servers), "which": ", ".join(str(place + 1) for place in down)}
        if len(servers) == 1:
            raise health.Down(health.NO_ANSWER, where=where, **values)
        raise health.Down(QUORUM if len(down) * 2 < len(servers) else NO_QUORUM, where=where, **values)

    return probe


def outbox_flows() -> None:
    """A probe: messages go out to the broker. Raises Down when one has waited for a minute, or is not taken."""
    try:
        figures = outbox()
    except Error:
        raise health.Down(NOT_KNOWN) from None
    if figures.failing:
        raise health.Down(OUTBOX_FAILING, failing=figures.failing)
    if (figures.oldest_age or 0) > LATE:
        raise health.Down(OUTBOX_LATE, waiting=figures.waiting, oldest=int(figures.oldest_age or 0))


def watch(settings: Settings) -> None:
    """Register the probes of what these settings name."""
    messaging = settings.messaging
    if settings.redis.urls:
        health.register("redis", redis(settings.redis.urls), needed=False)
    if messaging.transport == "rabbitmq":
        health.register("broker", rabbitmq(messaging.urls), needed=False, fresh_for=BROKER_FRESH)
    if messaging.transport == "servicebus" and messaging.azure_connection_string is not None:
        probe = service_bus(messaging.azure_connection_string)
        health.register("broker", probe, needed=False, fresh_for=BROKER_FRESH)
    if messaging.broker:
        health.register("outbox", outbox_flows, needed=False)
