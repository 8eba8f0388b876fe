"""What the log says of messages that the broker does not take."""

import pytest

from jobs.conf import conf
from tests.outbox.rows import waiting, with_broker
from tests.transitions import COMMITTED
from workers.relay import Relay

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]


def test_what_is_refused_by_the_thousands_is_said_in_one_line_with_its_queues(broker, loop, caplog):
    now = [100.0]
    with with_broker(outbox_batch_size=5, outbox_interval=0.4):
        relay = Relay(broker, loop, conf().messaging, clock=lambda: now[0])
        broker.refused |= {"full": "the broker refused the message", "gone": "no queue"}
        waiting(12, queue="full")
        waiting(3, queue="gone")
        while relay.run_once() >= 5:
            pass
        [first] = [record for record in caplog.records if record.message == "outbox.refused"]
        assert (first.messages, first.queues, first.error) == (5, ["full"], "the broker refused the message")
        now[0] += 60
        waiting(1, queue="gone")
        relay.run_once()
    told = [record for record in caplog.records if record.message == "outbox.refused"]
    assert [record.messages for record in told] == [5, 11]
    assert told[1].queues == ["full", "gone"]
