"""The private RabbitMQ and Redis by themselves, with the machine's programs."""

import signal
import socket
import struct
import subprocess

import pytest

from tests.launcher.stand_in import until
from turno.launcher import rabbitmq, redis_server
from turno.launcher.rabbitmq import PrivateRabbitMQ
from turno.launcher.redis_server import PrivateRedis

pytestmark = pytest.mark.slow


@pytest.fixture
def broker(tmp_path):
    found = rabbitmq.programs()
    if found is None:
        pytest.fail("no RabbitMQ is installed; install the package rabbitmq-server", pytrace=False)
    broker = PrivateRabbitMQ(tmp_path / "rabbitmq", tmp_path, found, None)
    broker.prepare()
    yield broker
    broker._end_stray_epmd()


def test_a_port_mapper_that_rabbitmq_started_by_itself_is_ended(broker):
    port = broker.epmd_port
    stray = broker.children()[0]
    stray.start()
    until(broker.maps_ports, "the port mapper listens")
    broker.prepare()
    assert stray.process is not None
    assert stray.process.wait(60) is not None
    assert broker.epmd_port == port


def registered(port):
    """A connection that says to a port mapper what a node says; it is known for as long as this is open."""
    name = b"turno"
    said = struct.pack(f">BHBBHHH{len(name)}sH", 120, 4711, 77, 0, 6, 5, len(name), name, 0)
    connection = socket.create_connection((rabbitmq.HOST, port), timeout=60)
    connection.sendall(struct.pack(">H", len(said)) + said)
    assert connection.recv(64)[1] == 0
    return connection


def test_a_port_mapper_that_knows_a_node_gives_its_place_to_ours_too(broker):
    ours = broker.children()[0]
    command = [broker.programs.epmd, "-daemon", "-address", rabbitmq.HOST, "-port", str(broker.epmd_port)]
    subprocess.run(command, env=ours.env, check=True)
    until(broker.maps_ports, "the stray port mapper listens")
    with registered(broker.epmd_port) as node:
        ours.start()
        try:
            assert node.recv(1) == b""  # the stray one is gone
            until(broker.maps_ports, "ours listens")
            assert ours.ended() is None
        finally:
            ours.signal(signal.SIGKILL)
            ours.process.wait(60)


def test_a_rabbitmq_that_does_not_start_says_why_in_its_last_words(broker):
    (broker.folder / "mnesia" / "turno@localhost-feature_flags").mkdir(parents=True)  # where it wants a file
    epmd, node = broker.children()
    epmd.start()
    try:
        until(broker.maps_ports, "the port mapper listens")
        node.start()
        until(lambda: node.ended() is not None, "it gives up")
        assert "feature_flags" in node.last_words()
        assert not (broker.folder / "erl_crash.dump").exists()
    finally:
        for child in (node, epmd):
            child.signal(signal.SIGKILL)
            if child.process is not None:
                child.process.wait(60)


def test_redis_takes_its_own_user_alone(tmp_path):
    server = redis_server.program()
    if server is None:
        pytest.fail("no Redis is installed; install the package redis-server", pytrace=False)
    store = PrivateRedis(tmp_path / "redis", tmp_path, server, None)
    store.prepare()
    child = store.child()
    child.start()
    try:
        until(store.answers, "Redis answers")
        import redis

        assert redis.Redis.from_url(store.url).ping()
        with pytest.raises(redis.exceptions.RedisError):
            redis.Redis(port=store.port).ping()
    finally:
        child.signal(signal.SIGKILL)
        assert child.process is not None
        child.process.wait(60)
