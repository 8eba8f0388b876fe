"""The run: blows fall when their time has come, what ended is started anew, and at the end everything is calm again."""

import heapq
import itertools
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Event
from typing import Any

import psycopg

from tests.crash.storm.plan import PLACES, Blow
from tests.crash.storm.servers import Servers
from tests.kit.processes import Fleet, WorkerProcess, eventually
from tests.kit.proxy import Proxy, Trap
from workers import tree

SLOTS = "default:8,critical:3"
STEP = 0.03  # seconds between two looks at the clock
ORDERLY = 120.0  # seconds that a worker may take to end when it is asked to
STARTING = 240.0  # seconds that workers may take to be ready

type Strike = Callable[["Weather", Blow], bool]


class Weather:
    """Three workers, the first one behind a proxy of its own, and what befalls them and the servers.

    `away` names servers that are down, `frozen` workers that are stopped, `recorded` messages that were seen; `struck`
    and `missed` count the blows by name: a missed one found nobody.
    """

    def __init__(
        self, servers: Servers, fleet: Fleet, blows: Mapping[str, Strike], beside: Mapping[str, Strike]
    ) -> None:
        self.servers, self.fleet = servers, fleet
        self.proxy = Proxy(servers.postgres.url)
        self.away: set[str] = set()
        self.frozen: set[str] = set()
        self.recorded: list[tuple[str, bytes]] = []
        self.traps: list[Trap] = []
        self.struck: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self.calm = Event()
        self._blows, self._beside = blows, beside
        self._executor = ThreadPoolExecutor(1, "storm-beside")
        self._running: list[tuple[str, Future[bool]]] = []
        self._due: list[tuple[float, int, Callable[[], Any]]] = []
        self._number = itertools.count()
        fleet.env |= servers.env
        self.workers = [self._started(place) for place in range(PLACES)]

    def _started(self, place: int) -> WorkerProcess:
        own = {"TURNO_DATABASE__URL": self.proxy.url} if place == 0 else {}
        name = f"w{place}-{next(self._number)}"
        return self.fleet.start(name, SLOTS, "--shutdown-timeout", "300ms", **own)

    # What blows use.

    def later(self, seconds: float, what: Callable[[], Any]) -> None:
        """Do it after so many seconds, or when the storm is over."""
        heapq.heappush(self._due, (time.monotonic() + seconds, next(self._number), what))

    def back_later(self, name: str, seconds: float, back: Callable[[], Any]) -> None:
        """The server is away until then."""

        def there() -> None:
            back()
            self.away.discard(name)

        self.away.add(name)
        self.later(seconds, there)

    @contextmanager
    def without(self, name: str) -> Iterator[None]:
        """The server is away in the block."""
        self.away.add(name)
        try:
            yield
        finally:
            self.away.discard(name)

    def stands(self, worker: WorkerProcess) -> bool:
        """Whether it can be struck: it is ready, lives, and is not frozen."""
        if worker.process.poll() is not None or worker.name in self.frozen:
            return False
        return bool(worker.events("worker.ready")) and tree.alive(worker.pid)

    def standing(self, place: int) -> list[WorkerProcess]:
        """The workers that stand, that of the place first."""
        turned = self.workers[place:] + self.workers[:place]
        return [worker for worker in turned if self.stands(worker)]

    def ask(self, sql: str, *params: object) -> list[tuple[Any, ...]]:
        """Rows of the database, past everything of ours; none while it is away."""
        if "postgres" in self.away:
            return []
        with (
            suppress(psycopg.OperationalError),
            psycopg.connect(self.servers.postgres.url, connect_timeout=3) as connection,
        ):
            return connection.execute(sql, params).fetchall()
        return []

    # The run.

    def run(self, blows: tuple[Blow, ...], began: float, seconds: float) -> None:
        """Everything that is planned; returns when it is calm again, all servers and workers up."""
        waiting = list(blows)
        while (now := time.monotonic()) < began + seconds:
            self._catch_up(now)
            if waiting and began + waiting[0].at <= now:
                self._fall(waiting.pop(0))
            self._revive()
            self._collect()
            time.sleep(STEP)
        self._over()

    def _fall(self, blow: Blow) -> None:
        if blow.name in self._beside:
            self._running.append((blow.name, self._executor.submit(self._beside[blow.name], self, blow)))
        else:
            self._count(blow.name, self._blows[blow.name](self, blow))

    def _count(self, name: str, found: bool) -> None:
        (self.struck if found else self.missed)[name] += 1

    def _collect(self) -> None:
        for one in [one for one in self._running if one[1].done()]:
            self._running.remove(one)
            self._count(one[0], one[1].result())

    def _catch_up(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            heapq.heappop(self._due)[2]()

    def _revive(self) -> None:
        """Who ended is followed by another, under a name of its own."""
        for place, worker in enumerate(self.workers):
            if worker.process.poll() is not None:
                worker.close()
                self.fleet.workers.remove(worker)
                self.workers[place] = self._started(place)

    def _over(self) -> None:
        self.calm.set()
        while self._due:  # each in its time: who is let go first has to have its second before the other
            self._catch_up(time.monotonic())
            time.sleep(STEP)
        self._executor.shutdown()
        self._collect()
        for trap in self.traps:
            trap.left = 0
        self.proxy.open()
        self.proxy.cut()  # what was swallowed without a word is told at last
        if self.servers.cluster is not None:
            self.servers.cluster.node.wait()
        self._revive()

    def keep_up(self) -> None:
        """Between two looks of who waits for the end."""
        self._revive()

    def ended_in_order(self) -> list[str]:
        """Stop the workers; what was wrong with their ends."""
        # One that has just been started again does not know yet what to do with a signal.
        eventually(lambda: len(self.standing(0)) == PLACES, "every worker is ready", STARTING)
        for worker in self.workers:
            with suppress(ProcessLookupError):
                worker.signal(signal.SIGTERM)
        return [wrong for worker in self.workers if (wrong := _end_of(worker))]

    def close(self) -> None:
        """End everything that this started."""
        self.calm.set()
        self._catch_up(float("inf"))
        self._executor.shutdown()
        self.fleet.close()
        self.proxy.close()


def _end_of(worker: WorkerProcess) -> str | None:
    """What was wrong with the end of a worker that was asked to stop."""
    try:
        code = worker.wait(ORDERLY)
    except subprocess.TimeoutExpired:
        return f"{worker.name} did not end"
    return f"{worker.name} ended with {code}" if code else None
