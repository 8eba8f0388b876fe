"""Many jobs under random time limits, kills, cancels and lost leases: each ends once, and nothing is left of any."""

import os
import random
import signal
from contextlib import suppress

import pytest

import tests.isolation.handlers  # noqa: F401
from jobs.states import Outcome
from tests.isolation.house import House, files_of, zombies
from tests.kit.processes import eventually
from workers import tree
from workers.isolation.looks import look
from workers.leases import Held, Interrupt

pytestmark = pytest.mark.crash
ROUND = 8  # jobs at once
WARM_UP = 100
SLACK = 8 * 1024**2  # bytes of memory that a process may differ by


@pytest.mark.parametrize("jobs", [100, pytest.param(5000, marks=pytest.mark.longo)])
def test_nothing_is_left_after_many_jobs_that_were_stopped_in_every_way(house_with, tmp_path, jobs):
    house = house_with(kill_grace=0.05, child_max_jobs=20)
    dice = random.Random(jobs)
    soak(house, WARM_UP, dice, tmp_path)
    before = state(house)
    ended = soak(house, jobs, dice, tmp_path)
    after = state(house)
    assert len(ended) == jobs
    assert {*ended} >= {Outcome.SUCCEEDED, Outcome.TIMED_OUT, Outcome.CANCELLED, Outcome.WORKER_LOST}
    assert after[:3] == before[:3]
    for now, then in zip(after[3:], before[3:], strict=True):
        assert now < then + SLACK
    assert house.server.pid == house.first_server
    assert not list(tmp_path.iterdir())


def soak(house: House, jobs: int, dice: random.Random, folder) -> list[Outcome]:
    outcomes = []
    for start in range(0, jobs, ROUND):
        held = [begin(house, dice) for _ in range(min(ROUND, jobs - start))]
        for one in held:
            disturb(house, one, dice)
        outcomes += [house.end(one, 60).outcome for one in held]
        house.forget()
    return outcomes


def begin(house: House, dice: random.Random) -> Held:
    """A job of some kind, with some time limit and some lease."""
    types = ["iso.echo", "iso.fresh", "iso.talk", "iso.hold", "iso.hold", "iso.children", "iso.dirty", "iso.end"]
    payloads = {
        "iso.talk": {"lines": 20, "steps": 20, "size": 1000, "file": True},
        "iso.hold": {"seconds": dice.uniform(0, 0.4), "how": dice.choice(["asks", "sleeps", "busy", "deaf"])},
        "iso.children": {"seconds": dice.uniform(0, 0.2)},
        "iso.dirty": {"ways": [dice.choice(["process", "thread", "files", "environment", "zombie"])]},
        "iso.end": {"how": dice.choice(["exit", "segfault", "group", "close", "fork"])},
    }
    type_ = dice.choice(types)
    lease = dice.choice([600.0, 600.0, 600.0, dice.uniform(0.05, 0.3)])
    return house.start(type_, payloads.get(type_, {}), lease, timeout=dice.choice([2.0, 2.0, dice.uniform(0.05, 0.3)]))


def disturb(house: House, held: Held, dice: random.Random) -> None:
    """Ask the job to stop, kill some child, or leave it alone."""
    what = dice.randrange(6)
    if what == 0:
        held.ask(Interrupt.CANCELLED)
    elif what == 1:
        held.ask(dice.choice([Interrupt.LOST, Interrupt.SHUTDOWN]))
    elif what == 2 and (children := house.pool.children):
        with suppress(ProcessLookupError):
            os.kill(dice.choice(children), signal.SIGKILL)


def state(house: House) -> tuple[int, ...]:
    """When all children have gone: files of worker and forkserver, processes and zombies; then the memory of both."""
    for child in house.pool.children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    eventually(lambda: not house.pool.children, "all children have ended")
    server = house.server.pid
    left = len(tree.descendants(server)) + len(zombies(server)) + len(zombies(os.getpid()))
    return files_of(), files_of(server), left, look().memory, look(server).memory
