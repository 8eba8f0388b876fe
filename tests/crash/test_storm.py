"""A minute of everything at once: kills, freezes, cut cables and stops in random order, and no promise broken.

In the cluster profile RabbitMQ and Redis are struck besides.
"""

import os
import random
import signal
from collections import Counter
from contextlib import suppress
from math import inf
from time import monotonic, sleep

import pytest

import tests.kit.beats
import tests.kit.handlers  # noqa: F401
from jobs.enqueue import JobRequest, enqueue_many
from jobs.models import Job
from tests.crash import broker_blows
from tests.crash.beside import ISOLATIONS, QUICK
from tests.kit.processes import database_url, eventually, thaw
from tests.kit.proxy import Proxy
from workers import tree

pytestmark = [pytest.mark.crash, pytest.mark.longo]
SECONDS = 60.0
FLAPPING = {"TURNO_RESILIENCE__BREAKER_MINIMUM": "4", "TURNO_RESILIENCE__BREAKER_OPEN_FOR": "1s"}
TYPES = [f"beats.{isolation}" for isolation in ISOLATIONS] + [f"once.{isolation}" for isolation in ISOLATIONS]


class Storm:
    """Three workers, one of them behind a proxy; what ended is started anew under another name."""

    def __init__(self, fleet, proxy, rng, cluster=None):
        self.fleet, self.proxy, self.rng, self.cluster = fleet, proxy, rng, cluster
        self.away = set()
        self.count = 0
        self.told = []
        self.due = []  # (instant, what is to be done then)
        self.frozen = set()
        self.workers = [self.started(n) for n in range(3)]

    def started(self, place):
        self.count += 1
        own = {"TURNO_DATABASE__URL": self.proxy.url} if place == 0 else {}
        return self.fleet.start(f"w{place}-{self.count}", "default:6", "--shutdown-timeout", "300ms", **own)

    def later(self, seconds, what):
        self.due.append((monotonic() + seconds, what))

    def run(self, seconds):
        end, next_ = monotonic() + seconds, monotonic() + 3
        while monotonic() < end:
            sleep(0.05)
            self.catch_up(monotonic())
            if monotonic() >= next_:
                next_ += self.rng.uniform(0.1, 1.2)
                self.strike()
        self.catch_up(inf)
        self.proxy.open()

    def catch_up(self, now):
        for pair in sorted((pair for pair in self.due if pair[0] <= now), key=lambda pair: pair[0]):
            self.due.remove(pair)
            pair[1]()

    def strike(self):
        if self.cluster is not None and self.rng.random() < 0.3:
            broker_blows.strike(self)
            return
        for place, worker in enumerate(self.workers):
            if worker.process.poll() is not None:
                self.workers[place] = self.started(place)
        worker = self.rng.choice(self.workers)
        if worker in self.frozen or not worker.events("worker.ready"):
            return
        blow = self.rng.choice(BLOWS)
        self.told.append(f"{blow.__name__} {worker.name}")
        with suppress(ProcessLookupError, ValueError, IndexError):
            blow(self, worker)

    def thaw(self, worker, pid):
        self.frozen.discard(worker)
        thaw(pid)


def kill_worker(storm, worker):
    worker.kill_worker()


def kill_supervisor(storm, worker):
    worker.signal(signal.SIGKILL)


def kill_forkserver(storm, worker):
    os.kill(worker.forkserver(), signal.SIGKILL)


def kill_some_child(storm, worker):
    os.kill(storm.rng.choice(tree.children(worker.forkserver())), signal.SIGKILL)


def freeze_worker(storm, worker):
    pid = worker.freeze_worker()
    storm.frozen.add(worker)
    storm.later(storm.rng.uniform(0.2, 6.0), lambda: storm.thaw(worker, pid))


def freeze_both(storm, worker):
    pid = worker.freeze()
    storm.frozen.add(worker)
    seconds = storm.rng.uniform(0.2, 6.0)
    storm.later(seconds, lambda: worker.signal(signal.SIGCONT))
    # The supervisor decides first: what a worker does in the second before it ends itself is another test's.
    storm.later(seconds + 1.5, lambda: storm.thaw(worker, pid))


def cut_off(storm, worker):
    storm.proxy.blackhole()
    storm.later(storm.rng.uniform(0.2, 6.0), storm.rng.choice([storm.proxy.open, lambda: mended(storm)]))


def mended(storm):
    storm.proxy.open()
    storm.proxy.cut()


def cut(storm, worker):
    storm.proxy.cut()


def lose_answers(storm, worker):
    storm.proxy.swallow_commit("turno.jobs", times=3)


def stop(storm, worker):
    worker.signal(signal.SIGTERM)


BLOWS = [
    kill_worker, kill_supervisor, kill_forkserver, kill_some_child, freeze_worker, freeze_both, cut_off, cut,
    lose_answers, stop,
]  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_in_a_storm_no_two_executions_of_a_job_live_side_by_side_and_every_job_ends(fleet, profile, request, seed):
    fleet.env |= QUICK | FLAPPING
    rng = random.Random(seed)
    with Proxy(database_url()) as proxy:
        storm = Storm(fleet, proxy, rng, request.getfixturevalue("cluster") if profile == "cluster" else None)
        wanted = [
            JobRequest(rng.choice(TYPES), {"key": str(n), "hold": rng.uniform(0.2, 3.0), "deaf": rng.random() < 0.4})
            for n in range(400)
        ]
        ids = [made.id for made in enqueue_many(wanted)]
        storm.run(SECONDS)
        for worker in storm.workers:
            if worker.process.poll() is None:
                worker.signal(signal.SIGTERM)
        fleet.start("last", "default:12").wait_ready()
        ended = Job.objects.filter(state__in=["Succeeded", "Failed"])
        eventually(lambda: ended.count() == len(ids), f"all have ended: {storm.told}", 240)
    starts = Counter((parts[1], parts[2]) for parts in fleet.starts())
    assert set(starts.values()) == {1}, f"an execution was started twice: {storm.told}"
    executions = dict(Job.objects.values_list("id", "executions"))
    order = everything(fleet)
    for n, (asked, id_) in enumerate(zip(wanted, ids, strict=True)):
        ran = order.get(str(n), [])
        what = f"{asked.type} {n}: {storm.told}"
        assert ran == sorted(ran), f"an execution ran beside its successor: {what}"
        assert len(set(ran)) <= executions[id_], what
        assert len(set(ran)) <= 1 or not asked.type.startswith("once"), f"it was repeated: {what}"


def everything(fleet):
    """By key: the execution of every line, in the order in which they were written."""
    found = {}
    for line in fleet.probe_log.read_text().splitlines():
        _, key, execution, _, _ = line.split()
        found.setdefault(key, []).append(int(execution))
    return found
