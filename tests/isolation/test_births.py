"""Children that die before they begin, forkservers that do not come back, and what is told of a child by its number."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tests.isolation.handlers  # noqa: F401
from jobs.states import Outcome, Reason, State
from tests.isolation.house import House
from tests.kit.processes import eventually
from workers.conclusion import Death, Fault
from workers.isolation import ForkServer, child, processes, supply
from workers.leases import Interrupt

pytestmark = pytest.mark.crash


@pytest.fixture
def deadly(monkeypatch, tmp_path) -> Path:
    """A file: while it is there, children die at once, and each leaves a byte in it."""
    file = tmp_path / "deadly"
    monkeypatch.setenv("ISO_STILLBORN", str(file))
    return file


class Server:
    """A forkserver, and what it says; the descriptors of children, which live as long as these are open."""

    def __init__(self) -> None:
        self.server = ForkServer.fork()
        self.server.channel.settimeout(60)
        self._descriptors: list[int] = []

    def message(self) -> dict[str, Any]:
        told, descriptors = self.server.read()
        self._descriptors += descriptors
        assert told is not None
        return told

    def close(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)
        assert self.server.end(5)


@pytest.fixture
def server() -> Iterator[Server]:
    """A forkserver that is ready."""
    made = Server()
    assert "ready" in made.message()
    yield made
    made.close()


def test_children_that_die_before_they_begin_are_replaced_after_pauses_and_the_job_runs_when_one_lives(deadly, house):
    deadly.touch()
    held = house.start("iso.echo", {"a": 1}, at_most_once=True)
    eventually(lambda: deadly.stat().st_size >= 2, "two have died")
    assert house.pool.trouble is not None
    forks = deadly.read_text()
    deadly.unlink()
    assert len(forks) <= 5
    assert house.end(held).to == State.SUCCEEDED
    assert house.pool.trouble is None


def test_a_job_for_which_no_child_ever_begins_ends_lost(deadly, house, monkeypatch):
    monkeypatch.setattr(processes, "STILLBORN", 4)
    deadly.touch()
    ending = house.run("iso.echo", max_attempts=1)
    assert (ending.outcome, ending.lost, ending.counted) == (Outcome.WORKER_LOST, True, True)
    assert ending.error.message.startswith(Death(fault=Fault.STILLBORN).text())
    assert deadly.stat().st_size == 4
    deadly.unlink()
    assert house.result("iso.echo")


def test_a_job_that_waits_for_a_child_that_lives_can_be_cancelled(deadly, house):
    deadly.touch()
    held = house.start("iso.echo")
    eventually(lambda: deadly.stat().st_size >= 3, "three have died")
    held.ask(Interrupt.CANCELLED)
    assert house.end(held).outcome == Outcome.CANCELLED


def test_a_forkserver_that_does_not_come_back_is_broken_and_what_waits_is_given_back_at_the_end(monkeypatch):
    """The new ones do not know the handlers of these tests: nothing names the module to them."""
    monkeypatch.setattr(supply, "MOST_LOST", 3)
    house = House()
    try:
        os.kill(house.server.pid, signal.SIGKILL)
        held = house.start("iso.echo", at_most_once=True)
        eventually(lambda: house.pool.broken, "it is broken")
        assert "iso." in house.pool.broken
        assert house.pool.trouble is not None
        assert not house.ended(held)
        house.pool.drain()
        ending = house.end(held)
        assert (ending.to, ending.reason, ending.counted) == (State.ENQUEUED, Reason.RELEASED, False)
        late = house.start("iso.echo")  # a claim that was under way
        assert house.end(late).reason == Reason.RELEASED
    finally:
        house.close()


def test_a_child_is_told_of_by_a_number_of_its_own_and_not_by_its_pid(server):
    """The pid is free when a dead child is reaped, and that may be long before its death is told."""
    pids = []
    for number in (1, 2, 3):
        server.server.spawn()
        told = server.message()
        assert told["spawned"] == number
        pids.append(told["pid"])
    for pid, number in reversed([*zip(pids, (1, 2, 3), strict=True)]):
        os.kill(pid, signal.SIGKILL)
        assert server.message()["ended"] == number


def test_a_child_that_fails_before_it_is_one_ends_and_does_not_go_on_as_the_forkserver(monkeypatch):
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(child, "run", fail)
    server = Server()
    try:
        assert "ready" in server.message()
        server.server.spawn()
        assert server.message()["spawned"] == 1
        told = server.message()
        assert (told["ended"], told["exit"]) == (1, child.EXIT_BROKEN)
    finally:
        server.close()
