"""What a storm does to RabbitMQ and Redis: they die, freeze, forget and hang up, and come back."""

from contextlib import suppress

from pika.exceptions import AMQPError

from tests.kit.rabbitmq_server import raw


def kill_broker(storm, worker):
    storm.cluster.node.kill()
    back_later(storm, "broker", lambda: storm.cluster.node.start(wait=False))


def freeze_broker(storm, worker):
    storm.cluster.node.freeze()
    back_later(storm, "broker", storm.cluster.node.thaw)


def close_connections(storm, worker):
    storm.cluster.node.ctl("close_all_connections", "a test")


def purge(storm, worker):
    with raw(storm.cluster.node.url) as channel:
        channel.queue_purge(storm.cluster.queue())


def delete(storm, worker):
    with raw(storm.cluster.node.url) as channel:
        channel.queue_delete(storm.cluster.queue())


def kill_redis(storm, worker):
    for server in storm.cluster.redis:
        server.kill()
        back_later(storm, "redis", server.start)


def freeze_redis(storm, worker):
    for server in storm.cluster.redis:
        server.freeze()
        back_later(storm, "redis", server.thaw)


def flush_redis(storm, worker):
    for server in storm.cluster.redis:
        server.flush()


BLOWS = {
    "broker": [kill_broker, freeze_broker, close_connections, purge, delete],
    "redis": [kill_redis, freeze_redis, flush_redis],
}


def back_later(storm, whom, what):
    """Until then nobody strikes it again."""

    def back():
        what()
        storm.away.discard(whom)

    storm.away.add(whom)
    storm.later(storm.rng.uniform(0.2, 6.0), back)


def strike(storm):
    """One blow at a server that is there."""
    whom = storm.rng.choice(sorted(BLOWS))
    if whom in storm.away or (whom == "broker" and not storm.cluster.node.answers()):
        return
    blow = storm.rng.choice(BLOWS[whom])
    storm.told.append(blow.__name__)
    with suppress(AMQPError, AssertionError):  # ctl of a node that is just starting
        blow(storm, None)
