"""Celery over RabbitMQ: the application, and its driver (`python -m benchmarks.peers.with_celery`).

Acknowledged late, as everybody must who may lose no job; messages persistent in a durable classic queue, publishes
confirmed. No events, gossip, mingle nor remote heartbeat, which nobody here reads. Results, when asked for
(BENCHMARK_RESULTS, a database's address), are rows in PostgreSQL.
"""

import os
import random
import socket
import time
from typing import Any

import psycopg
from celery import Celery

from benchmarks import tally
from benchmarks.driver import serve

RESULTS = os.environ.get("BENCHMARK_RESULTS", "")
QUEUE = os.environ.get("BENCHMARK_QUEUE", "celery")
PATIENCE = 120  # seconds that a broker may take to read on, when it was short of memory
app = Celery("benchmark", broker=os.environ["BENCHMARK_BROKER"])
app.conf.update(
    broker_transport_options={"confirm_publish": True},
    broker_connection_retry_on_startup=True,
    task_acks_late=True,
    task_default_queue=QUEUE,
    task_ignore_result=not RESULTS,
    task_serializer="json",
    task_send_sent_event=False,
    worker_enable_remote_control=False,
    # 4, the default, and 64 drain alike; 64 is what hides the way to the broker where that is far.
    worker_prefetch_multiplier=64,
    worker_send_task_events=False,
)
if RESULTS:
    app.conf.result_backend = "db+" + RESULTS.replace("postgresql://", "postgresql+psycopg://")
    app.conf.database_create_tables_at_setup = True


@app.task(name="nothing")
def nothing(text: str = "") -> None:
    """Does nothing."""
    tally.ran()


@app.task(name="late")
def late(sent: float) -> None:
    """Notes how late it is."""
    tally.late(sent)


loaded = 0


def clear() -> None:
    """Forget all."""
    global loaded  # noqa: PLW0603  (a driver is one program with one state)
    loaded = 0
    with app.connection_for_write() as connection, connection.channel() as channel:
        channel.queue_declare(QUEUE, durable=True, auto_delete=False)
        channel.queue_purge(QUEUE)
    if RESULTS:
        with psycopg.connect(RESULTS, autocommit=True) as database:
            if database.execute("SELECT to_regclass('celery_taskmeta')").fetchone() != (None,):
                database.execute("TRUNCATE celery_taskmeta")


def load(jobs: int, size: int = 0) -> None:
    """So many, unconfirmed: it is none of what is measured. Returns when the broker has them all; else it raises.

    A broker that is short of memory stops reading. Left to its defaults, the library gives such a connection up after a
    second and says nothing: it opens another one, or was closing it anyway. What was on its way would be lost.
    """
    global loaded  # noqa: PLW0603  (one for the process)
    loaded += jobs
    options = {
        "confirm_publish": False,
        "read_timeout": PATIENCE,
        "socket_settings": {socket.TCP_USER_TIMEOUT: 1000 * PATIENCE},
    }
    with app.connection_for_write(transport_options=options) as connection:
        producer = app.amqp.Producer(connection)
        for _ in range(jobs):
            nothing.apply_async((("x" * size),) if size else (), producer=producer, retry=False)
        # The answer comes after all that was sent before on the same channel.
        producer.channel.queue_declare(QUEUE, passive=True)


def one_by_one(jobs: int) -> float:
    """Seconds for so many, each confirmed before the next."""
    began = time.perf_counter()
    with app.producer_pool.acquire(block=True) as producer:
        for _ in range(jobs):
            nothing.apply_async(producer=producer)
    return time.perf_counter() - began


def latency(samples: int, gap: float) -> None:
    """One after the other."""
    with app.producer_pool.acquire(block=True) as producer:
        for _ in range(samples):
            late.apply_async((time.monotonic(),), producer=producer)
            time.sleep(gap * random.uniform(0.5, 1.5))  # noqa: S311  (spreads clients, guards nothing)


def left() -> int:
    """How many are not done: in the queue, or, with results, without one."""
    with app.connection_for_read() as connection, connection.channel() as channel:
        waiting = channel.queue_declare(QUEUE, passive=True).message_count
    return max(int(waiting), loaded - kept()["results"]) if RESULTS else int(waiting)


def kept() -> dict[str, int]:
    """The rows of results."""
    if not RESULTS:
        return {}
    with psycopg.connect(RESULTS, autocommit=True) as database:
        row = database.execute("SELECT count(*) FROM celery_taskmeta WHERE status = 'SUCCESS'").fetchone()
    return {"results": row[0] if row else 0}


def main() -> None:
    """Serve as the driver."""
    verbs: dict[str, Any] = {
        "clear": clear, "load": load, "one_by_one": one_by_one, "bulk": one_by_one, "latency": latency, "left": left,
        "kept": kept,
    }  # fmt: skip
    serve(verbs)


if __name__ == "__main__":
    main()
