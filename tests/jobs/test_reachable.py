"""The probes of broker, Redis and outbox: what counts as an answer, in how much time, and what they say of it."""

import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from jobs import health, reachable
from jobs.conf import Settings, conf, overridden
from turno.launcher import ports

START = b"\x01\x00\x00\x00\x00\x01\xf8\x00\x0a\x00\x0a" + b"\x00" * 500
SECRET = "hunter2"
HANGS = 60.0  # seconds that a silent server keeps a connection


@contextmanager
def server(answer=b"", *, asked=None, silent=False, port=0):
    """A server that answers each connection with these bytes; `asked` collects what it was sent."""
    listening = socket.create_server(("127.0.0.1", port))
    ended = threading.Event()

    def serve():
        while True:
            try:
                line, _ = listening.accept()
            except OSError:
                return
            with line, suppress(OSError):  # whoever asks may have heard enough
                if silent:
                    ended.wait(HANGS)
                    continue
                said = line.recv(64)
                if asked is not None:
                    asked.append(said)
                for at in range(0, len(answer), 4):  # in bits, as networks do
                    line.sendall(answer[at : at + 4])

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        ended.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(60)


def amqp(port):
    return f"amqp://turno:{SECRET}@127.0.0.1:{port}/"


def redis_url(port):
    return f"redis://:{SECRET}@127.0.0.1:{port}/0"


def test_a_broker_that_begins_to_shake_hands_is_there():
    asked = []
    with server(START, asked=asked) as port:
        reachable.rabbitmq([amqp(port)])()
    assert asked == [b"AMQP\x00\x00\x09\x01"]


def test_a_broker_is_not_bothered_with_handshakes_while_it_takes_connections(monkeypatch):
    asked = []
    with server(START, asked=asked) as port:
        probe = reachable.rabbitmq([amqp(port)])
        for _ in range(3):
            probe()
    assert [said for said in asked if said] == [b"AMQP\x00\x00\x09\x01"]
    with pytest.raises(health.Down):
        probe()
    with server(START, asked=asked, port=port):  # back: it must shake hands again
        probe()
        monkeypatch.setattr(reachable, "TRUSTED", 0.0)
        probe()
    assert [said for said in asked if said] == [b"AMQP\x00\x00\x09\x01"] * 3


@pytest.mark.parametrize("answer", [b"AMQP\x00\x00\x09\x01", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"\x01\x00\x00"])
def test_whoever_answers_otherwise_is_no_broker(answer):
    with server(answer) as port, pytest.raises(health.Down) as told:
        reachable.rabbitmq([amqp(port)])()
    assert (str(told.value), told.value.where) == (health.NO_ANSWER, (f"127.0.0.1:{port}",))


def test_one_node_of_a_cluster_is_enough():
    nobody = ports.free_port()
    with server(START) as port:
        reachable.rabbitmq([amqp(nobody), amqp(port)])()


def test_a_node_that_hangs_leaves_the_next_one_its_share_of_the_time():
    with server(silent=True) as hung, server(START) as port:
        reachable.rabbitmq([amqp(hung), amqp(port)])()


def test_servers_that_all_hang_are_given_up_before_the_deadline():
    assert reachable.PATIENCE < health.DEADLINE
    before = time.monotonic()
    with server(silent=True) as one, server(silent=True) as other:
        for probe in (reachable.rabbitmq([amqp(one), amqp(other)]), reachable.redis([redis_url(one)])):
            with pytest.raises(health.Down):
                probe()
    assert time.monotonic() - before < HANGS / 2


@pytest.mark.parametrize("answer", [b"+PONG\r\n", b"-NOAUTH Authentication required.\r\n", b"-NOPERM no\r\n"])
def test_a_redis_that_wants_a_password_is_there_too(answer):
    asked = []
    with server(answer, asked=asked) as port:
        reachable.redis([redis_url(port)])()
    assert asked == [b"PING\r\n"]


@pytest.mark.parametrize("answer", [b"-LOADING Redis is loading the dataset in memory\r\n", b"+OK\r\n", b""])
def test_a_redis_that_can_not_serve_is_not_there(answer):
    with server(answer) as port, pytest.raises(health.Down):
        reachable.redis([redis_url(port)])()


@pytest.mark.parametrize(("alive", "said"), [(2, reachable.QUORUM), (1, reachable.NO_QUORUM), (0, reachable.NO_QUORUM)])
def test_of_several_redis_it_is_said_which_are_away_and_whether_a_quorum_is_left(alive, said):
    nobody = [ports.free_port() for _ in range(3 - alive)]
    with server(b"+PONG\r\n") as one, server(b"+PONG\r\n") as other:
        there = [one, other][:alive]
        with pytest.raises(health.Down) as told:
            reachable.redis([redis_url(port) for port in (*there, *nobody)])()
    down = told.value
    assert str(down) == said
    assert down.values == {
        "down": len(nobody), "servers": 3, "which": ", ".join(str(place) for place in range(alive + 1, 4))
    }  # fmt: skip
    assert down.where == tuple(f"127.0.0.1:{port}" for port in nobody)
    assert SECRET not in f"{down} {down.values} {down.where}"


def test_a_redis_behind_a_socket_of_the_file_system(tmp_path):
    path = tmp_path / "redis.sock"
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()

    def serve():
        line, _ = listening.accept()
        with line:
            line.recv(64)
            line.sendall(b"+PONG\r\n")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    reachable.redis([f"unix://{path}?db=0"])()
    thread.join(60)
    listening.close()
    with pytest.raises(health.Down) as told:
        reachable.redis([f"unix://{tmp_path}/none.sock"])()
    assert told.value.where == (f"{tmp_path}/none.sock",)


def test_service_bus_is_there_when_its_endpoint_takes_connections():
    text = (
        "Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName=Root;SharedAccessKey=hunter2=;UseDevelopmentEmulator=true;"
    )
    with server() as port:
        reachable.service_bus(text.format(port=port))()
    with pytest.raises(health.Down) as told:
        reachable.service_bus(text.format(port=port))()
    assert told.value.where == (f"127.0.0.1:{port}",)


def test_service_bus_in_the_cloud_is_asked_by_tls():
    with server(b"no tls here") as port, pytest.raises(health.Down):
        reachable.service_bus(f"Endpoint=sb://127.0.0.1:{port}/;SharedAccessKeyName=x;SharedAccessKey=y")()


def test_tls_is_spoken_where_the_address_says_so():
    asked = []
    with server(b"", asked=asked) as port, pytest.raises(health.Down):
        reachable.rabbitmq([f"amqps://u:p@127.0.0.1:{port}/"])()
    assert asked[0][:2] == b"\x16\x03"  # a client's hello


@pytest.fixture
def registry(monkeypatch):
    """The probes that a start registers, by name."""
    probes = {}
    monkeypatch.setattr(health, "_probes", probes)
    return probes


def test_only_what_is_configured_is_probed(registry):
    reachable.watch(conf())
    assert registry == {}
    with overridden(redis={"urls": ("redis://a",)}) as settings:
        reachable.watch(settings)
    assert list(registry) == ["redis"]
    with overridden(messaging={"transport": "rabbitmq", "urls": (amqp(1),)}) as settings:
        reachable.watch(settings)
    assert sorted(registry) == ["broker", "outbox", "redis"]
    assert not any(watched.needed for watched in registry.values())


def test_service_bus_is_probed_as_the_broker(registry):
    string = "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey=b"
    reachable.watch(Settings(messaging={"transport": "servicebus", "azure_connection_string": string}))
    assert sorted(registry) == ["broker", "outbox"]
