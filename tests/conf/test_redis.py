"""Redis servers: how many, which addresses, and when locks are taken there."""

import pytest

from jobs.conf import ConfigurationError

URL = "redis://127.0.0.1:6379/0"
EVEN = "expected 1, 3 or 5 servers; of an even number no more may fail than of one less"


def several(count):
    return ",".join(f"redis://127.0.0.1:{6379 + n}/0" for n in range(count))


@pytest.mark.parametrize("count", [2, 4, 6])
def test_an_even_number_of_servers_is_refused(read, count):
    with pytest.raises(ConfigurationError) as refused:
        read(TURNO_REDIS__URLS=several(count))
    assert EVEN in str(refused.value)
    assert "6379" not in str(refused.value)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_an_odd_number_is_taken(read, count):
    assert len(read(TURNO_REDIS__URLS=several(count)).redis.urls) == count


@pytest.mark.parametrize("other", [URL, "redis://127.0.0.1/2", "redis://:password@127.0.0.1:6379"])
def test_one_server_is_no_two(read, other):
    with pytest.raises(ConfigurationError, match="one of them appears twice"):
        read(TURNO_REDIS__URLS=",".join([URL, "redis://127.0.0.1:1/0", other]))


def test_what_is_no_address_of_redis_is_refused(read):
    with pytest.raises(ConfigurationError, match="expected addresses such as redis://"):
        read(TURNO_REDIS__URLS="http://127.0.0.1:6379")


@pytest.mark.parametrize(
    ("variables", "locked"),
    [
        ({}, False),
        ({"TURNO_REDIS__URLS": URL}, False),  # no broker carries the work
        ({"TURNO_REDIS__URLS": URL, "TURNO_REDIS__LOCKS": "on"}, True),
        ({"TURNO_REDIS__URLS": URL, "TURNO_MESSAGING__TRANSPORT": "rabbitmq"}, True),
        ({"TURNO_REDIS__URLS": URL, "TURNO_MESSAGING__TRANSPORT": "rabbitmq", "TURNO_REDIS__LOCKS": "off"}, False),
        ({"TURNO_MESSAGING__TRANSPORT": "rabbitmq"}, False),
    ],
)
def test_locks_are_taken_in_redis_when_a_broker_carries_the_work_or_they_are_asked_for(read, variables, locked):
    assert read(TURNO_MESSAGING__URLS="amqp://a:b@127.0.0.1/", **variables).redlock is locked


@pytest.mark.parametrize("shorter", ["TURNO_WORKER__LOCK_EXPIRY", "TURNO_WORKER__LEADERSHIP_LEASE"])
def test_a_lock_outlives_the_call_that_takes_it(read, shorter):
    times = {"TURNO_REDIS__NODE_TIMEOUT": "2s", shorter: "5s"}
    assert read(TURNO_REDIS__URLS=URL, **times).redis.node_timeout == 2  # no lock is taken
    with pytest.raises(ConfigurationError, match=r"redis\.node_timeout must be at most a third of worker\.lock_expiry"):
        read(TURNO_REDIS__LOCKS="on")


def test_locks_without_a_server_are_refused(read):
    with pytest.raises(ConfigurationError, match=r"locks need redis\.urls"):
        read(TURNO_REDIS__LOCKS="on")
