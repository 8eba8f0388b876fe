"""Jobs that a busy child was given ahead: until it begins with one, that is everybody's."""

import os
import random
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import tests.isolation.handlers  # noqa: F401
from jobs.registry import catalogue
from jobs.states import Outcome, Reason, State
from tests.isolation.house import House, told
from tests.kit.processes import eventually
from workers.clock import boottime
from workers.isolation import pace, rota
from workers.isolation.handle import Child
from workers.leases import Held, Interrupt

pytestmark = pytest.mark.crash
NEVER = 10_000.0  # seconds


class Row:
    """A house with one child, which runs a job and has others ahead for as long as nothing happens."""

    def __init__(self, house: House, folder: Path) -> None:
        self.house, self._folder = house, folder
        self._files: dict[Held, Path] = {}
        house.pool._rota.pace._lengths.update(dict.fromkeys(catalogue.names(), 0.0))  # nothing is long
        assert house.run("iso.echo").to == State.SUCCEEDED
        [self.child] = house.pool._children.values()
        self.pid = self.child.pid
        self.first = self.job(60)
        eventually(lambda: self.runs(self.first), "the first runs")

    def job(self, seconds: float = 0, type_: str = "iso.hold", lease: float = 600.0, **payload: Any) -> Held:
        """Start a job that says in which process it begins."""
        file = self._folder / f"job{len(self._files)}"
        # (A job that may run at most once is not tried again: it ends as it ended first.)
        held = self.house.start(
            type_, {"seconds": seconds, "tell": str(file), **payload}, lease, at_most_once=True, max_attempts=1
        )
        self._files[held] = file
        return held

    def ahead(self, *jobs: Held) -> list[Held]:
        """These, when they stand behind the first."""
        eventually(lambda: len(self.child.docket.jobs) == 1 + len(jobs), f"{len(jobs)} stand behind the first")
        return [*jobs]

    def begun(self, held: Held) -> list[int]:
        """The processes in which it began."""
        file = self._files[held]
        return [int(pid) for pid in file.read_text().split()] if file.exists() else []

    def started(self, held: Held) -> int:
        """When it said that it has begun."""
        return self._files[held].stat().st_mtime_ns

    def runs(self, held: Held) -> bool:
        return bool(self.begun(held))

    def go_on(self) -> None:
        """End the first."""
        self.first.ask(Interrupt.CANCELLED)
        assert self.house.end(self.first).outcome == Outcome.CANCELLED

    def well(self, held: Held) -> int:
        """It succeeded, and began once; in which process."""
        assert self.house.end(held).to == State.SUCCEEDED
        [pid] = self.begun(held)
        return pid


Make = Callable[..., Row]


@pytest.fixture
def row_with(house_with, monkeypatch, tmp_path) -> Make:
    """A row; with `long`, seconds until those behind the first are given to others."""

    def make(long: float = NEVER, **worker: Any) -> Row:
        monkeypatch.setattr(pace, "FEW", 1)
        monkeypatch.setattr(pace, "LONG", long)
        monkeypatch.setattr(rota, "LONG", long)
        return Row(house_with(kill_grace=60.0, **worker), tmp_path)

    return make


@pytest.fixture
def row(row_with) -> Row:
    return row_with()


def test_those_ahead_run_after_the_first_in_their_order_in_the_same_child(row):
    jobs = row.ahead(*[row.job() for _ in range(4)])
    assert not any(row.runs(job) for job in jobs)
    row.go_on()
    assert {row.well(job) for job in jobs} == {row.pid}
    starts = [row.started(job) for job in jobs]
    assert starts == sorted(starts)


def test_those_behind_one_that_turns_out_to_be_long_are_given_to_others(row_with):
    row = row_with(long=pace.LONG)
    jobs = [row.job() for _ in range(4)]
    assert row.pid not in {row.well(job) for job in jobs}
    assert not row.house.ended(row.first)
    row.go_on()


@pytest.mark.parametrize("why", [Interrupt.CANCELLED, Interrupt.SHUTDOWN, Interrupt.LOST, Interrupt.TIMEOUT])
def test_one_that_is_asked_to_stop_ends_without_having_begun_and_the_others_run(row, why):
    before, asked, after = row.ahead(*[row.job() for _ in range(3)])
    asked.ask(why, 5.0)
    ending = row.house.end(asked)
    assert ending.outcome == (Outcome.CANCELLED if why is Interrupt.CANCELLED else Outcome.INTERRUPTED)
    assert not ending.lost
    assert not row.house.ended(row.first)
    row.go_on()
    assert {row.well(before), row.well(after)} == {row.pid}
    assert not row.runs(asked)


def test_a_lost_lease_of_the_first_costs_those_behind_it_nothing(row):
    jobs = row.ahead(*[row.job() for _ in range(3)])
    row.first.ask(Interrupt.LOST)
    assert row.house.end(row.first).outcome == Outcome.INTERRUPTED
    assert row.pid not in {row.well(job) for job in jobs}


@pytest.mark.parametrize("how", ["exit", "signal", "close", "reuse", "garbage", "deafen"])
def test_a_child_that_is_lost_costs_the_job_that_ran_there_and_no_other(row, tmp_path, how):
    fatal = row.job(type_="iso.end", how=how, signal=signal.SIGKILL, file=str(tmp_path / "its_own"))
    jobs = [row.job() for _ in range(3)]
    row.ahead(fatal, *jobs)
    row.go_on()
    ending = row.house.end(fatal)
    assert (ending.outcome, ending.lost, ending.reason) == (Outcome.WORKER_LOST, True, Reason.NEVER_REPEATED)
    assert row.pid not in {row.well(job) for job in jobs}
    assert row.begun(fatal) == [row.pid]


def test_a_child_that_is_killed_loses_what_it_was_at(row):
    jobs = row.ahead(*[row.job() for _ in range(3)])
    os.kill(row.pid, signal.SIGKILL)
    assert row.house.end(row.first).signal == signal.SIGKILL
    assert row.pid not in {row.well(job) for job in jobs}


def test_what_a_child_that_retires_has_not_begun_goes_to_others(row_with):
    row = row_with(child_max_jobs=3)
    jobs = row.ahead(*[row.job() for _ in range(4)])  # after two: the warm-up's and the first
    row.go_on()
    pids = [row.well(job) for job in jobs]
    assert pids[0] == row.pid
    assert row.pid not in pids[1:]


def test_a_child_that_must_end_for_what_a_job_left_is_given_nothing_more(row):
    dirty = row.job(type_="iso.dirty", ways=["thread"])
    jobs = [row.job() for _ in range(3)]
    row.ahead(dirty, *jobs)
    row.go_on()
    assert row.house.end(dirty).to == State.SUCCEEDED
    assert row.pid not in {row.well(job) for job in jobs}


def test_closing_the_pool_gives_back_what_was_not_begun(row):
    jobs = row.ahead(*[row.job() for _ in range(3)])
    assert row.house.pool.close()
    assert row.house.end(row.first).outcome == Outcome.INTERRUPTED
    for job in jobs:
        assert row.house.end(job).reason == Reason.RELEASED
        assert not row.runs(job)


def test_with_its_forkserver_a_child_loses_what_it_was_at_and_the_others_are_given_back(row):
    jobs = row.ahead(*[row.job() for _ in range(3)])
    os.kill(row.house.server.pid, signal.SIGKILL)  # (the next knows no handler of these tests)
    eventually(lambda: row.house.pool.trouble, "it is lost")
    row.house.pool.drain()
    assert [row.house.end(job).reason for job in jobs] == [Reason.RELEASED] * 3
    ending = row.house.end(row.first)
    assert (ending.outcome, ending.reason) == (Outcome.WORKER_LOST, Reason.NEVER_REPEATED)
    assert not any(row.runs(job) for job in jobs)


def test_a_lease_that_is_renewed_ahead_holds_when_the_job_begins(row):
    over = boottime() + 1.0
    renewed = row.job(lease=1.0)
    row.ahead(renewed)
    renewed.deadline = boottime() + 600.0
    assert renewed.extended is not None
    renewed.extended(renewed.deadline)
    eventually(lambda: boottime() > over + 0.5, "it would be over")
    row.go_on()
    assert row.well(renewed) == row.pid


def test_the_deadline_of_one_that_was_taken_back_ends_no_child(row):
    back = row.job(lease=600.0)
    row.ahead(back)
    back.deadline = over = boottime() + 0.3
    assert back.extended is not None
    back.extended(over)  # the child's watchdog hears of it
    back.ask(Interrupt.CANCELLED)
    assert row.house.end(back).outcome == Outcome.CANCELLED
    eventually(lambda: boottime() > over + 1.0, "it is over")
    row.go_on()
    later = row.job()
    assert row.well(later) == row.pid


def test_large_jobs_among_small_ones_all_arrive(row):
    jobs = [row.job(text="x" * (1024**2 if number % 4 == 1 else 10)) for number in range(12)]
    row.go_on()
    for job in jobs:
        row.well(job)


def test_nothing_stands_behind_what_is_fresh_suspect_or_of_an_unknown_length(row):
    house = row.house
    row.go_on()
    house.pool._rota.pace._lengths.pop("iso.hold")
    unknown = row.job(60)
    eventually(lambda: row.runs(unknown), "it runs")
    suspect = house.start("iso.hold", {"seconds": 60}, lost_count=1)
    fresh = house.start("iso.fresh")
    assert house.end(fresh).to == State.SUCCEEDED
    assert house.result("iso.echo")["pid"] != row.begun(unknown)[0]
    assert max(len(child.docket.jobs) for child in house.pool._children.values()) == 1
    for held in (unknown, suspect):
        held.ask(Interrupt.CANCELLED)
        assert house.end(held).outcome == Outcome.CANCELLED


def test_a_child_that_does_not_begin_within_a_jobs_time_is_killed_and_the_job_is_given_back(house_with, tmp_path):
    house = house_with(kill_grace=0.2)
    stopped = house.result("iso.echo")["pid"]
    os.kill(stopped, signal.SIGSTOP)
    held = house.start("iso.hold", {"tell": str(tmp_path / "pid")}, timeout=0.2, max_attempts=1)
    ending = house.end(held)
    assert (ending.to, ending.reason, ending.counted) == (State.ENQUEUED, Reason.RELEASED, False)
    assert not (tmp_path / "pid").exists()
    assert house.result("iso.echo")["pid"] != stopped


def test_an_end_that_is_read_after_the_childs_death_does_not_make_it_one_that_waits_for_more(house, tmp_path):
    house.run("iso.echo")
    [child] = house.pool._children.values()
    house.pool._loop.call_soon_threadsafe(house.pool._loop.remove_reader, child._work)
    held = house.start("iso.hold", {"seconds": 0, "tell": str(tmp_path / "pid")})
    eventually(lambda: b"succeeded" in said(child), "it has said how it ended")
    os.kill(child.pid, signal.SIGKILL)
    assert house.end(held).to == State.SUCCEEDED
    assert house.result("iso.echo")["pid"] != child.pid
    assert child not in house.pool._rota.idle


def said(child: Child) -> bytes:
    """What the child has said, and nobody has read."""
    with suppress(BlockingIOError):
        return child._work.recv(65536, socket.MSG_PEEK)
    return b""


@pytest.mark.parametrize("jobs", [300, pytest.param(10_000, marks=pytest.mark.longo)])
def test_under_random_kills_each_job_runs_once_or_is_told_to_be_lost(house_with, monkeypatch, tmp_path, jobs):
    monkeypatch.setattr(pace, "FEW", 2)
    house, dice = house_with(child_max_jobs=40), random.Random(jobs)
    house.pool._rota.pace._lengths["iso.hold"] = 0.0
    started: list[tuple[Held, Path]] = []
    for number in range(jobs):
        file = tmp_path / str(number)
        payload = {"tell": str(file), "seconds": dice.choice([0, 0, 0, 0, 0, 0.02]), "how": "asks"}
        held = house.start("iso.hold", payload, at_most_once=True, max_attempts=1)
        started.append((held, file))
        if dice.random() < 0.05 and (children := house.pool.children):
            with suppress(ProcessLookupError):
                os.kill(dice.choice(children), signal.SIGKILL)
        if dice.random() < 0.05:
            dice.choice(started)[0].ask(Interrupt.CANCELLED)
        if number % 20 == 19:
            house.end(held)
    outcomes = {}
    for held, file in started:
        begun = file.read_text().split() if file.exists() else []
        outcomes[held] = outcome = house.end(held).outcome
        begun = told(file) if outcome == Outcome.SUCCEEDED else begun
        assert len(begun) == 1 if outcome == Outcome.SUCCEEDED else len(begun) <= 1
    assert {*outcomes.values()} == {Outcome.SUCCEEDED, Outcome.WORKER_LOST, Outcome.CANCELLED}
    lost = sum(outcome == Outcome.WORKER_LOST for outcome in outcomes.values())
    assert lost < jobs / 5
