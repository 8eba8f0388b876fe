"""The figures of now in the text format of Prometheus, read when somebody scrapes; this process counts nothing.

Every web process sees the same database, so a scrape of any one of them is the whole house. All but two are gauges:
what ended is told for the last hour, since the rows that it is counted from are deleted one day.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from jobs import health, queries
from jobs.version import VERSION

Row = tuple[Collection[str], float]
WORKER_STATES = ("Online", "Draining", "Silent", "Offline")


class _Figures(Collector):
    """What one scrape reads, in the same bounded statements as the screens."""

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("turno", "The version that answers.", value={"version": VERSION})
        yield from _dependencies(health.check_all())
        yield from _house(queries.stats())
        board = queries.board({})
        yield from _workers(board)
        yield from _queues(queries.depths(board))
        yield from _outbox(queries.outbox())
        yield from _circuits(queries.circuits())
        yield from _promises(queries.broken_invariants())
        swept = "Gates that the sweep had to open, since somebody else did not: 0 in a healthy house."
        yield CounterMetricFamily("turno_gates_swept", swept, value=queries.counter("gates_swept"))
        yield _retention(queries.retained())


def _gauge(name: str, says: str, labels: Collection[str], rows: Iterable[Row]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"turno_{name}", says, labels=list(labels))
    for values, number in rows:
        family.add_metric(list(values), number)
    return family


def _dependencies(reports: Iterable[health.Report]) -> Iterator[Metric]:
    rows = [([report.name], float(report.ok)) for report in reports]
    yield _gauge("dependency_up", "1 when it is well, as /health/ready tells.", ["name"], rows)


def _house(found: queries.Stats) -> Iterator[Metric]:
    states = [([str(state)], count) for state, count in found.active.items()]
    yield _gauge("jobs", "Jobs that have not ended; an estimate above 10000.", ["state"], states)
    yield _gauge("jobs_parked", "The Scheduled ones that wait at a gate.", [], [([], found.parked)])
    yield _gauge("dead_letters", "Pending dead letters.", [], [([], found.dead_letters)])
    ended = found.last_hour
    outcomes = ("succeeded", "failed", "retried", "cancelled", "lost")
    yield _gauge(
        "ended_last_hour", "What ended in the last hour; a lost execution is retried or failed too.", ["outcome"],
        [([outcome], getattr(ended, outcome)) for outcome in outcomes],
    )  # fmt: skip
    means = (("duration", "run", ended.mean_duration), ("wait", "waited for a worker", ended.mean_wait))
    for name, what, seconds in means:
        yield _gauge(
            f"mean_{name}_last_hour_seconds", f"How long the executions of the last hour have {what}.", [],
            [] if seconds is None else [([], seconds)],
        )  # fmt: skip


def _workers(board: queries.Board) -> Iterator[Metric]:
    states = [worker.state for worker in board.workers]
    yield _gauge(
        "workers", "Workers; an Offline one still holds jobs.", ["state"],
        [([state], states.count(state)) for state in WORKER_STATES],
    )  # fmt: skip


def _queues(found: Collection[queries.Depth]) -> Iterator[Metric]:
    def by_queue(name: str, says: str, read: Callable[[queries.Depth], float | None]) -> Metric:
        rows = [([depth.queue], value) for depth in found if (value := read(depth)) is not None]
        return _gauge(f"queue_{name}", says, ["queue"], rows)

    yield by_queue("waiting", "Enqueued jobs; an estimate above 10000.", lambda depth: depth.waiting)
    yield by_queue("oldest_age_seconds", "The age of the oldest of them; 0 without any.", lambda d: d.oldest_for or 0.0)
    yield by_queue("busy", "Slots that run a job.", lambda depth: depth.busy)
    yield by_queue("slots", "Slots of online workers, and busy ones of others.", lambda depth: depth.capacity)
    yield by_queue("workers", "Live workers that serve it.", lambda depth: depth.workers)
    yield by_queue("paused", "1 while it is paused.", lambda depth: float(depth.paused is not None))


def _outbox(found: queries.Outbox) -> Iterator[Metric]:
    total: list[Row] = [([], found.waiting)]
    yield _gauge("outbox_messages", "Messages that wait for the broker; at most 10000 are counted.", [], total)
    yield _gauge("outbox_failing", "Those that the broker refused at the last try.", [], [([], found.failing)])
    yield _gauge("outbox_oldest_age_seconds", "The age of the oldest.", [], [([], found.oldest_age or 0.0)])
    queues = [([queue.queue], queue.waiting) for queue in found.queues]
    yield _gauge("outbox_queue_messages", "The same by queue.", ["queue"], queues)
    failing = [([queue.queue], queue.failing) for queue in found.queues]
    yield _gauge("outbox_queue_failing", "Refused at the last try, by queue.", ["queue"], failing)


def _promises(found: tuple[float, Collection[str]] | None) -> Iterator[Metric]:
    """Without a look nothing is told: 0 would say that all is well."""
    broken: list[Row] = [] if found is None else [([], float(len(found[1])))]
    yield _gauge("broken_invariants", "Invariants that the last look at the promises has found broken.", [], broken)
    each: list[Row] = [] if found is None else [([name], 1.0) for name in found[1]]
    yield _gauge("invariant_broken", "1 for each of them.", ["invariant"], each)
    age: list[Row] = [] if found is None else [([], found[0])]
    yield _gauge("promises_looked_age_seconds", "The age of that look, which the leader makes every minute.", [], age)


FIGURES = _Figures()


def exposition(accept: str) -> tuple[bytes, str]:
    """The figures and their content type, for what the `Accept` header asks for. Raises DatabaseError."""
    encode, content_type = choose_encoder(accept)
    return encode(FIGURES), content_type


def _retention(found: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily("turno_retention_rows", "Rows that retention has deleted or folded.", labels=["rule"])
    for rule, rows in found.items():
        family.add_metric([rule], rows)
    return family


def _circuits(found: Collection[queries.CircuitRow]) -> Iterator[Metric]:
    """Those that are not closed: a type without one is well, or was never heard of."""
    states = [((one.type, one.state), 1.0) for one in found]
    yield _gauge("circuit_state", "1 for the state of a breaker that is not closed.", ["type", "state"], states)
    parked = [([one.type], float(one.parked)) for one in found]
    yield _gauge("circuit_parked", "Jobs that wait for it, counted up to 1000.", ["type"], parked)
