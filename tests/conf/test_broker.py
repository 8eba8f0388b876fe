"""What the broker's keys take: a value that no broker or relay could work with is refused with its key."""

import pytest

from jobs.conf import ConfigurationError

RABBIT = {"TURNO_MESSAGING__TRANSPORT": "rabbitmq", "TURNO_MESSAGING__URLS": "amqp://a:b@127.0.0.1/"}


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("queue_prefix", "Turno", "expected 1 to 40 of a-z"),
        ("queue_prefix", "a" * 41, "expected 1 to 40 of a-z"),
        ("queue_type", "stream", "expected one of 'classic' or 'quorum'"),
        ("heartbeat", "0", "expected at least 1"),
        ("heartbeat", "1h", "expected at most 600"),
        ("connect_timeout", "0", "expected more than 0"),
        ("publish_timeout", "never", "expected a duration"),
        ("publish_timeout", "31s", "publish_timeout must be at most half of outbox_lease"),
        ("outbox_lease", "19s", "publish_timeout must be at most half of outbox_lease"),
        ("outbox_batch_size", "0", "expected at least 1"),
        ("outbox_batch_size", "1001", "expected at most 1000"),
        ("error_queue_length", "0", "expected at least 1"),
        ("error_queue_length", "9" * 20, "expected at most 1000000000"),  # AMQP has no larger number than 2^63 - 1
        ("outbox_retry_base", "-1", "expected a duration"),
    ],
)
def test_a_value_that_can_not_be_is_refused(read, key, value, expected):
    with pytest.raises(ConfigurationError) as refused:
        read(**RABBIT, **{f"TURNO_MESSAGING__{key.upper()}": value})
    (line,) = str(refused.value).splitlines()
    assert expected in line


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("node_timeout", "1ms", "expected at least 0.005"),
        ("node_timeout", "6s", "expected at most 5"),
        ("drift", "0.6", "expected at most 0.5"),
        ("drift", "nan", "expected at most 0.5"),
        ("locks", "yes", "expected one of 'auto', 'on' or 'off'"),
        ("on_failure", "ignore", "expected one of 'fence' or 'defer'"),
    ],
)
def test_so_is_one_of_the_servers_of_locks(read, key, value, expected):
    with pytest.raises(ConfigurationError, match=expected):
        read(**{f"TURNO_REDIS__{key.upper()}": value})


@pytest.mark.parametrize(
    ("transport", "missing"), [("rabbitmq", "messaging.urls"), ("servicebus", "messaging.azure_connection_string")]
)
def test_a_transport_without_its_address_is_refused(read, transport, missing):
    with pytest.raises(ConfigurationError, match=f"transport {transport} needs {missing}"):
        read(TURNO_MESSAGING__TRANSPORT=transport)
