"""The probe of the outbox: quiet while messages go out, and down with its reason when they do not."""

import pytest
from django.db import OperationalError
from django.utils import translation

from jobs import health, reachable
from tests.outbox.rows import with_broker
from tests.queries.house import message
from tests.transitions import rows

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def broker():
    with with_broker():
        yield


def told():
    """What the probe says, as people read it."""
    with pytest.raises(health.Down) as down:
        reachable.outbox_flows()
    with translation.override("en"):
        return str(down.value) % down.value.values


def test_messages_that_have_just_come_are_no_news():
    reachable.outbox_flows()
    message(rows.make_job(), age=59)
    reachable.outbox_flows()


def test_a_message_that_has_waited_for_a_minute_is():
    message(rows.make_job(), age=75)
    message(rows.make_job(), age=1)
    assert told().startswith("has 2 messages that wait for the broker, the oldest for 7")


def test_a_message_that_the_broker_does_not_take_is():
    message(rows.make_job(), age=1, failures=3, last_error="amqp://u:hunter2@10.0.0.9")
    assert told() == "has 1 messages that the broker does not take"


def test_without_the_database_nothing_is_known(monkeypatch):
    def away():
        raise OperationalError("password=hunter2")

    monkeypatch.setattr(reachable, "outbox", away)
    assert told() == "is not known while PostgreSQL does not answer"
