"""Jobs that run longer than the broker waits for an acknowledgement: one start each, and no channel is closed."""

import re
from contextlib import suppress

import pytest
from pika import BlockingConnection, URLParameters
from pika.exceptions import AMQPError

import tests.kit.handlers  # noqa: F401
from jobs.enqueue import JobRequest, enqueue_many
from jobs.models import Job
from tests.kit.cluster import cluster_of, join
from tests.kit.processes import eventually
from tests.kit.rabbitmq_server import running_rabbitmq

pytestmark = pytest.mark.crash


class Witness:
    """A consumer that never acknowledges: what the broker does to it, it does to whoever is late."""

    def listen(self, url: str) -> None:
        self._connection = BlockingConnection(URLParameters(url + "?heartbeat=0"))
        self._channel = self._connection.channel()
        self._channel.queue_declare("witness")
        self._channel.basic_publish("", "witness", b"x")
        self._channel.basic_consume("witness", lambda *message: None)

    def was_closed(self) -> bool:
        with suppress(AMQPError):
            for _ in range(10):  # what has come meanwhile is read bit by bit
                self._connection.process_data_events(0.2)
        closed = bool(self._channel.is_closed)
        self._connection.close()
        return closed


TICK = "application:set_env(rabbit, channel_tick_interval, {})."  # ms between two looks for late acknowledgements


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    "times",
    [
        pytest.param((3.0, 1.0, 12.0), id="three seconds"),
        pytest.param((60.0, None, 200.0), id="a minute", marks=pytest.mark.longo),
    ],
)
def test_a_job_outlives_the_consumer_timeout(fleet, redis_of_session, tmp_path, times):
    """Every slot is taken by long jobs while short ones wait, whose messages must not grow old at the worker either."""
    consumer_timeout, tick, hold = times
    witness = Witness()
    with (
        running_rabbitmq(tmp_path / "node", consumer_timeout=f"{consumer_timeout * 1000:.0f}") as node,
        cluster_of(node, redis_of_session) as own,
    ):
        if tick:
            node.ctl("eval", TICK.format(round(tick * 1000)))
        join(fleet, own)
        witness.listen(node.url)
        worker = fleet.start("a", "default:3").wait_ready()
        pid = worker.pid
        enqueue_many([JobRequest("probe.async", {"key": f"long-{n}", "hold": hold}) for n in range(3)])
        eventually(lambda: len(fleet.starts()) == 3, "the long ones run")
        enqueue_many([JobRequest("probe.async", {"key": f"short-{n}"}) for n in range(50)])
        eventually(lambda: own.depth() == 50, "a busy worker hoards nothing")

        eventually(lambda: not Job.objects.exclude(state="Succeeded").exists(), "all have ended", hold + 60)

        starts = [parts[1] for parts in fleet.starts()]
        assert len(starts) == len(set(starts)) == 53
        assert witness.was_closed(), "the broker closes nothing, so this shows nothing"
        assert len(set(re.findall(r"(<[\d.]+>) Consumer .* has timed out waiting for", node.log))) == 1, "the witness's"
        assert worker.pid == pid
