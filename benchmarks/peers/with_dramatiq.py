"""Dramatiq over RabbitMQ: the actors, and the driver (`python -m benchmarks.peers.with_dramatiq`).

Its defaults: durable queue, persistent messages, acknowledged after the work, retries in its middleware. Publishes are
confirmed, which is an option of its broker. It keeps nothing of what ran.
"""

import os
import random
import time

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker

from benchmarks import tally
from benchmarks.driver import resting, serve

URL = resting(os.environ["BENCHMARK_BROKER"])
QUEUE = "dramatiq"
broker = RabbitmqBroker(url=URL, confirm_delivery=True)
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name=QUEUE)
def nothing(text: str = "") -> None:
    """Does nothing."""
    tally.ran()


@dramatiq.actor(queue_name=QUEUE)
def late(sent: float) -> None:
    """Notes how late it is."""
    tally.late(sent)


def clear() -> None:
    """Forget all."""
    broker.declare_queue(QUEUE, ensure=True)
    broker.flush(QUEUE)


def load(jobs: int, size: int = 0) -> None:
    """So many, unconfirmed: it is none of what is measured."""
    quick = RabbitmqBroker(url=URL)
    quick.declare_queue(QUEUE, ensure=True)
    try:
        for _ in range(jobs):
            quick.enqueue(nothing.message(*(["x" * size] if size else [])))
    finally:
        quick.close()


def one_by_one(jobs: int) -> float:
    """Seconds for so many, each confirmed before the next."""
    began = time.perf_counter()
    for _ in range(jobs):
        nothing.send()
    return time.perf_counter() - began


def latency(samples: int, gap: float) -> None:
    """One after the other."""
    for _ in range(samples):
        late.send(time.monotonic())
        time.sleep(gap * random.uniform(0.5, 1.5))  # noqa: S311  (spreads clients, guards nothing)


def left() -> int:
    """How many wait in the queue."""
    return int(sum(broker.get_queue_message_counts(QUEUE)))


def main() -> None:
    """Serve as the driver."""
    serve(
        {
            "clear": clear,
            "load": load,
            "one_by_one": one_by_one,
            "latency": latency,
            "left": left,
            "kept": dict,
        }
    )


if __name__ == "__main__":
    main()
