"""The broker goes away, closes connections, loses queues: work goes on by itself, and nothing is lost but messages."""

import pytest

from tests.contract.test_bringing import made, states
from tests.kit.processes import eventually
from tests.transitions import COMMITTED
from workers.transports.base import BrokerAway
from workers.transports.messages import Dispatch

pytestmark = [COMMITTED]


def settle(post):
    """Waits until it is connected and consumes."""
    eventually(lambda: post.broker.connected, "it is connected")


@pytest.mark.needs("restart")
def test_while_the_broker_is_away_it_is_said_and_nothing_can_be_published(broker, posts):
    post = posts(broker)
    settle(post)
    assert post.problems() == ""
    broker.stop()
    eventually(lambda: not post.broker.connected, "it has noticed")
    eventually(lambda: "away since" in post.problems(), "it says so")
    [job] = made(1)
    for ask in (post.broker.publish([Dispatch(job.id, job.token, job.queue)]), post.broker.depth("default")):
        with pytest.raises(BrokerAway):
            post.call(ask).result(60)
    broker.start()
    settle(post)
    broker.announce(job)
    assert post.has(1, 40) == [job.id]
    eventually(lambda: post.problems() == "", "all is well again")


@pytest.mark.needs("restart")
def test_messages_outlive_a_restart_of_the_broker_and_work_goes_on_after_three_in_a_row(broker, posts):
    post = posts(broker, {"default": 2})
    jobs = made(6)
    broker.announce(*jobs)
    post.has(2)
    for _ in range(3):
        broker.stop()
        broker.start()
    post.finish(2)
    post.has(2, 40)
    post.finish(2)
    eventually(lambda: states(jobs) == {"Processing"}, "every one has come")


@pytest.mark.needs("restart")
def test_a_worker_may_end_and_another_start_while_the_broker_is_away(broker, posts):
    broker.publisher()
    ends = posts(broker)
    settle(ends)
    broker.stop()
    eventually(lambda: not ends.broker.connected, "it has noticed")
    ends.close()
    starts = posts(broker)
    eventually(lambda: "away since" in starts.problems(), "it says so")
    broker.start()
    [job] = made(1)
    broker.announce(job)
    assert starts.has(1, 40) == [job.id]


@pytest.mark.needs("drop")
def test_connections_that_the_broker_closes_come_back_every_time(broker, posts):
    first, second = posts(broker, {"default": 3}), posts(broker, {"default": 3})
    settle(first)
    jobs = made(6)
    for n in range(3):
        broker.drop()
        broker.announce(*jobs[2 * n : 2 * n + 2])
    eventually(lambda: len(first.held) + len(second.held) == 6, "all have come")
    assert states(jobs) == {"Processing"}


@pytest.mark.needs("delete")
def test_a_queue_that_is_deleted_while_it_is_consumed_is_declared_again(broker, posts):
    post = posts(broker)
    first, second = made(2)
    broker.announce(first)
    post.has(1)
    broker.delete("default")
    eventually(lambda: "was deleted" in post.problems(), "it says so")
    broker.announce(second)
    assert post.has(2) == [first.id, second.id]


@pytest.mark.needs("purge")
def test_after_a_queue_was_emptied_what_is_announced_again_comes(broker, posts):
    post = posts(broker, {"default": 1})
    jobs = made(4)
    broker.announce(*jobs)
    post.has(1)
    eventually(lambda: broker.ready("default") == 3, "the others wait")
    broker.purge("default")
    post.finish()
    assert not post.held
    broker.announce(*jobs)
    eventually(lambda: len(post.held) == 1, "they come")
    assert post.jobs()[0] in {job.id for job in jobs}
