"""Cancel, time limit, shutdown and a lost lease end a handler in a child, and all that it started."""

import os
import random
import signal
import time

import pytest

import tests.isolation.handlers  # noqa: F401
from jobs.errors import JobCancelled
from jobs.states import FailureKind, Outcome, Reason, State
from tests.isolation.house import gone, told, zombies
from tests.kit.processes import eventually
from workers import tree
from workers.clock import boottime
from workers.isolation.gate import RAISE, ChildFlag, Gate
from workers.leases import Interrupt

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("how", ["asks", "sleeps", "busy", "deaf", "stuck"])
def test_a_cancel_ends_a_handler_whatever_it_does(house_with, tmp_path, how):
    killed = how in ("deaf", "stuck")  # the others are told by an exception, or asked
    house = house_with() if killed else house_with(kill_grace=120.0)
    held = house.start("iso.hold", {"how": how, "tell": str(tmp_path / "pid")})
    pid = told(tmp_path / "pid")
    assert held.ask(Interrupt.CANCELLED)
    ending = house.end(held)
    assert (ending.to, ending.outcome, ending.lost) == (State.CANCELLED, Outcome.CANCELLED, False)
    assert ending.signal == (signal.SIGKILL if killed else None)
    assert bool(ending.peak_memory)
    if killed:
        gone(pid)
    else:
        assert str(house.result("iso.echo")["pid"]) in pid


@pytest.mark.parametrize("how", ["asks", "sleeps", "busy", "deaf"])
def test_a_handler_that_runs_longer_than_its_limit_ends_timed_out_and_names_the_limit(house, tmp_path, how):
    held = house.start("iso.hold", {"how": how, "tell": str(tmp_path / "pid")}, timeout=0.4, max_attempts=1)
    ending = house.end(held)
    assert (ending.to, ending.outcome, ending.failure_kind) == (State.FAILED, Outcome.TIMED_OUT, FailureKind.TIMEOUT)
    assert "0.4 s" in ending.error.message
    assert ending.error.type == "JobTimeout"
    assert ending.duration > 0.3
    assert ending.counted
    if how == "deaf":
        assert ending.signal == signal.SIGKILL
        gone(told(tmp_path / "pid"))


@pytest.mark.parametrize("how", ["sleeps", "deaf"])
def test_a_shutdown_returns_the_job_uncharged(house, tmp_path, how):
    held = house.start("iso.hold", {"how": how, "tell": str(tmp_path / "pid")})
    told(tmp_path / "pid")
    held.ask(Interrupt.SHUTDOWN)
    ending = house.end(held)
    assert (ending.to, ending.outcome, ending.reason) == (State.ENQUEUED, Outcome.INTERRUPTED, Reason.RELEASED)
    assert (ending.counted, ending.lost) == (False, False)


def test_a_job_that_may_run_at_most_once_is_not_repeated_after_a_shutdown(house, tmp_path):
    held = house.start("iso.hold", {"how": "deaf", "tell": str(tmp_path / "pid")}, at_most_once=True)
    told(tmp_path / "pid")
    held.ask(Interrupt.SHUTDOWN)
    assert house.end(held).reason == Reason.NEVER_REPEATED


def test_a_lost_lease_kills_at_once(house_with, tmp_path):
    house = house_with(kill_grace=300.0)
    held = house.start("iso.hold", {"how": "deaf", "tell": str(tmp_path / "pid"), "seconds": 300})
    pid = told(tmp_path / "pid")
    held.ask(Interrupt.LOST)
    ending = house.end(held)
    assert (ending.outcome, ending.counted) == (Outcome.INTERRUPTED, False)
    gone(pid)


@pytest.mark.parametrize("setsid", [False, True])
@pytest.mark.parametrize("orphaned", [False, True])
@pytest.mark.parametrize("why", [Interrupt.TIMEOUT, Interrupt.CANCELLED])
def test_all_that_a_handler_started_dies_with_it_whatever_sessions_it_made(house, tmp_path, setsid, orphaned, why):
    tell = tmp_path / "pids"
    payload = {"tell": str(tell), "depth": 3, "setsid": setsid, "orphaned": orphaned}
    held = house.start("iso.family", payload)
    pids = told(tell, 4)
    held.ask(why, 5.0)
    ending = house.end(held)
    gone(pids, 0)
    assert ending.outcome == {Interrupt.TIMEOUT: Outcome.TIMED_OUT, Interrupt.CANCELLED: Outcome.CANCELLED}[why]
    assert not zombies(house.server.pid)


@pytest.mark.parametrize("orphaned", [False, True])
def test_what_a_handler_leaves_running_is_dead_when_its_job_ends(house, tmp_path, orphaned):
    tell = tmp_path / "pids"
    payload = {"tell": str(tell), "depth": 2, "setsid": True, "orphaned": orphaned, "leave": True}
    left = house.result("iso.family", payload)["pid"]
    gone(told(tell, 3), 0)
    assert house.result("iso.echo")["pid"] != left


def test_a_hundred_jobs_out_of_time_leave_no_zombie_and_no_process(house):
    held = [house.start("iso.hold", {"how": "sleeps"}, timeout=0.2, max_attempts=1) for _ in range(25)]
    for _ in range(3):
        for one in held:
            assert house.end(one, 60).outcome == Outcome.TIMED_OUT
        held = [house.start("iso.hold", {"how": "deaf"}, timeout=0.2, max_attempts=1) for _ in range(25)]
    for one in held:
        assert house.end(one, 60).outcome == Outcome.TIMED_OUT
    assert not zombies(house.server.pid)
    eventually(lambda: set(tree.descendants(house.server.pid)) == set(house.pool.children), "no process is left")


def test_a_child_dies_at_the_deadline_of_its_lease_by_itself_and_lives_on_when_it_is_renewed(house, tmp_path):
    lives = house.start("iso.hold", {"how": "deaf", "seconds": 5}, lease=3.0)
    dies = house.start("iso.hold", {"how": "busy", "tell": str(tmp_path / "pid")}, lease=3.0)
    pid = told(tmp_path / "pid")
    end = boottime() + 60.0
    lives.deadline = end
    eventually(lambda: lives.extended is not None, "the child has its job")
    lives.extended(end)
    ending = house.end(dies)
    assert boottime() >= dies.deadline
    assert (ending.outcome, ending.counted, ending.lost) == (Outcome.INTERRUPTED, False, False)
    assert dies.interrupt is Interrupt.LOST
    gone(pid, 0)
    assert house.end(lives).to == State.SUCCEEDED


@pytest.mark.parametrize("how", ["sleeps", "polls"])
@pytest.mark.parametrize("why", [Interrupt.CANCELLED, Interrupt.TIMEOUT])
def test_a_handler_that_clears_up_after_the_word_stop_does_not_get_it_twice(house_with, tmp_path, how, why):
    house = house_with(kill_grace=20.0)
    tell = tmp_path / "said"
    held = house.start("iso.clears_up", {"how": how, "tell": str(tell)}, max_attempts=1)
    told(tell)
    held.ask(why, 5.0)
    ending = house.end(held)
    assert ending.outcome == {Interrupt.TIMEOUT: Outcome.TIMED_OUT, Interrupt.CANCELLED: Outcome.CANCELLED}[why]
    assert tell.read_text() == "cleared up\n"


def test_the_word_stop_for_a_job_that_has_ended_is_no_word_for_the_next():
    gate = Gate()
    before = signal.signal(RAISE, gate.on_signal)
    try:
        gate.begin(1)
        gate.close()
        flag = ChildFlag(gate)
        gate.begin(2)
        gate.open(flag)
        gate.ask(1)  # it comes late
        flag.set()

        def hear() -> None:
            gate.ask(2)
            time.sleep(5)

        with pytest.raises(JobCancelled):
            hear()
        gate.ask(2)  # once
        gate.close()
    finally:
        signal.signal(RAISE, before)


def test_a_job_that_waits_for_a_child_can_be_cancelled_and_was_never_started(house):
    os.kill(house.server.pid, signal.SIGSTOP)
    held = [house.start("iso.end", {"how": "exit"}, at_most_once=True) for _ in range(2)]
    held[0].ask(Interrupt.CANCELLED)
    held[1].ask(Interrupt.SHUTDOWN)
    assert house.end(held[0]).outcome == Outcome.CANCELLED
    returned = house.end(held[1])
    assert (returned.to, returned.outcome, returned.counted) == (State.ENQUEUED, Outcome.INTERRUPTED, False)
    os.kill(house.server.pid, signal.SIGCONT)
    assert house.result("iso.echo")


def test_a_job_that_was_asked_to_stop_before_it_came_is_not_started(house, tmp_path):
    from tests.isolation.house import claim_of
    from workers.execution import prepare
    from workers.leases import Held

    held = Held(claim_of("iso.end", {"how": "exit", "tell": str(tmp_path / "pid")}), boottime() + 60)
    held.ask(Interrupt.CANCELLED)
    house.pool.start_all([prepare(held, house.dirty.append)])
    assert house.end(held).outcome == Outcome.CANCELLED
    assert not (tmp_path / "pid").exists()


def test_the_word_stop_never_cuts_a_sentence_in_two(house):
    dice = random.Random(7)
    for _ in range(10):
        held = [house.start("iso.chatter", timeout=dice.uniform(0.01, 0.15), max_attempts=1) for _ in range(4)]
        for one in held:
            ending = house.end(one)
            assert (ending.outcome, ending.signal) == (Outcome.TIMED_OUT, None), ending.error
            assert [line.number for line in ending.logs] == list(range(1, len(ending.logs) + 1))


def test_an_end_that_came_before_the_word_stop_counts(house):
    held = house.start("iso.hold", {"how": "asks", "seconds": 0.05})
    time.sleep(0.04)
    held.ask(Interrupt.CANCELLED)
    assert house.end(held).to in (State.SUCCEEDED, State.CANCELLED)
    assert house.result("iso.echo")


def test_closing_the_pool_kills_what_runs_and_gives_it_back(house, tmp_path):
    held = [house.start("iso.hold", {"how": "deaf", "tell": str(tmp_path / "pid")}) for _ in range(2)]
    pids = told(tmp_path / "pid", 2)
    server = house.server.pid
    assert house.pool.close()
    assert [house.end(one).outcome for one in held] == [Outcome.INTERRUPTED] * 2
    gone([*pids, server], 0)
