"""What a storm does to RabbitMQ and to the messages in it. They wait for it, so they run beside the others, in turn."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from uuid import UUID

from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError

from tests.crash.storm.orders import QUEUES
from tests.crash.storm.plan import Blow
from tests.crash.storm.servers import Fronted
from tests.crash.storm.weather import Weather
from tests.kit.rabbitmq_server import raw
from workers.transports.messages import Dispatch

IMPATIENT = "?connection_attempts=1&socket_timeout=5&stack_timeout=5&blocked_connection_timeout=5"
MOST = 40  # messages that are taken, repeated or mixed at once
# Tokens of jobs that wait, run or have ended, and of every execution that is over.
TOKENS = """
(SELECT id, dispatch_id, queue FROM turno.jobs WHERE dispatch_id IS NOT NULL ORDER BY id DESC LIMIT 300)
UNION ALL
(SELECT a.job_id, a.dispatch_id, j.queue FROM turno.job_attempts AS a JOIN turno.jobs AS j ON j.id = a.job_id
 ORDER BY a.id DESC LIMIT 300)
"""
GARBAGE = (b"", b"{", b"[]", b'{"v": 1}', b'{"v": 9, "job": 1, "token": 2}', b"\xff\xfe", b"[" * 5000, b"x" * 9000)


def _cluster(weather: Weather) -> Fronted:
    assert weather.servers.cluster is not None
    return weather.servers.cluster


def _outage(strike: Callable[[Fronted], None], back: Callable[[Fronted], None]) -> Callable[[Weather, Blow], bool]:
    """It is away from the one to the other."""

    def blow(weather: Weather, blow: Blow) -> bool:
        cluster = _cluster(weather)
        with weather.without("broker"):
            strike(cluster)
            weather.calm.wait(blow.lasts)
            back(cluster)
        return True

    return blow


def _close_connections(weather: Weather, blow: Blow) -> bool:
    try:
        _cluster(weather).node.ctl("close_all_connections", "a storm")
    except AssertionError:  # it is just starting
        return False
    return True


@contextmanager
def _channel(weather: Weather) -> Iterator[BlockingChannel]:
    with raw(_cluster(weather).node.url + IMPATIENT) as channel:
        yield channel


def on_messages(strike: Callable[[Weather, Blow, BlockingChannel, str], bool]) -> Callable[[Weather, Blow], bool]:
    """The blow at a queue of the broker, whose name it is told; nothing where there is no broker."""

    def blow(weather: Weather, blow: Blow) -> bool:
        queue = _cluster(weather).queue(QUEUES[int(blow.chance * 10) % len(QUEUES)])
        with suppress(AMQPError, OSError), _channel(weather) as channel:
            return strike(weather, blow, channel, queue)
        return False

    return blow


def purge(weather: Weather, blow: Blow, channel: BlockingChannel, queue: str) -> bool:
    return bool(channel.queue_purge(queue).method.message_count)


def delete(weather: Weather, blow: Blow, channel: BlockingChannel, queue: str) -> bool:
    channel.queue_delete(queue)
    return True


def duplicate(weather: Weather, blow: Blow, channel: BlockingChannel, queue: str) -> bool:
    """What waits there is there twice afterwards, in the other order; what was seen once is kept for later."""
    return _mixed(weather, channel, queue, times=2, order=lambda bodies: bodies[::-1])


def reorder(weather: Weather, blow: Blow, channel: BlockingChannel, queue: str) -> bool:
    """What waits there is there in any order afterwards."""
    rng = random.Random(blow.chance)
    return _mixed(weather, channel, queue, times=1, order=lambda bodies: rng.sample(bodies, len(bodies)))


def _mixed(
    weather: Weather, channel: BlockingChannel, queue: str, *, times: int, order: Callable[[list[bytes]], list[bytes]]
) -> bool:
    bodies, last = [], 0
    while len(bodies) < MOST:
        method, _, body = channel.basic_get(queue)
        if method is None or body is None:
            break
        bodies.append(body)
        last = method.delivery_tag
    weather.recorded += [(queue, body) for body in bodies]
    for body in order(bodies) * times:
        channel.basic_publish("", queue, body)
    if last:  # afterwards: two of a message are dropped by its token, and one that is lost is found only later
        channel.basic_ack(last, multiple=True)
    return bool(bodies)


def replay(weather: Weather, blow: Blow, channel: BlockingChannel, queue: str) -> bool:
    """Messages that were there once, with the tokens of then, and those of jobs that wait and run now."""
    rng = random.Random(blow.chance)
    past = list(weather.recorded)
    for id_, token, name in weather.ask(TOKENS):
        body = Dispatch(UUID(str(id_)), UUID(str(token)), str(name)).body()
        past.append((_cluster(weather).queue(str(name)), body))
    for name, body in rng.sample(past, min(len(past), MOST)):
        channel.basic_publish("", name, body)
    return bool(past)


def garbage(weather: Weather, blow: Blow, channel: BlockingChannel, queue: str) -> bool:
    for body in GARBAGE:
        channel.basic_publish("", queue, body)
    return True


def left_over(weather: Weather, seconds: float) -> dict[str, int]:
    """By queue: how many messages still wait there when all is over, however long one waits for that."""
    end = time.monotonic() + seconds
    while True:
        with suppress(AMQPError, OSError):
            depths = {queue: _cluster(weather).depth(queue) for queue in QUEUES}
            if not any(depths.values()) or time.monotonic() > end:
                return depths
        time.sleep(0.5)


BLOWS: dict[str, Callable[[Weather, Blow], bool]] = {
    "kill RabbitMQ": _outage(lambda cluster: cluster.node.kill(), lambda cluster: cluster.node.start(wait=False)),
    "stop RabbitMQ": _outage(lambda cluster: cluster.node.stop(), lambda cluster: cluster.node.start(wait=False)),
    "freeze RabbitMQ": _outage(lambda cluster: cluster.node.freeze(), lambda cluster: cluster.node.thaw()),
    "cut RabbitMQ off": _outage(
        lambda cluster: cluster.broker_proxy.blackhole(), lambda cluster: cluster.broker_proxy.open()
    ),
    "close the connections to RabbitMQ": _close_connections,
    "purge a queue": on_messages(purge),
    "delete a queue": on_messages(delete),
    "duplicate messages": on_messages(duplicate),
    "reorder messages": on_messages(reorder),
    "replay messages of the past": on_messages(replay),
    "publish garbage": on_messages(garbage),
}
