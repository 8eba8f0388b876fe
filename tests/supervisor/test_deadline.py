"""At the deadline that a worker told last, everything below the supervisor is dead, and not before."""

import os
import signal

import pytest

from tests.kit.processes import eventually
from tests.supervisor.stand_in import StandIn
from workers import tree
from workers.clock import boottime

pytestmark = pytest.mark.crash

READY = "introduce(); say(protocol.ready())\n"
# A worker that tells a new deadline all the time, a second ahead.
RENEWS = READY + "mark('ready')\nwhile True:\n    say(protocol.kill_at(boottime() + 1.0)); nap(0.05)\n"
CHILD = "if os.fork() == 0:\n    os.setsid(); mark('child', os.getpid()); forever()\n"


def _settled(over: StandIn, seconds: float) -> None:
    """Let so much time pass for the supervisor, and see that it killed nobody."""
    end = boottime() + seconds
    eventually(lambda: boottime() > end, "time passes")
    assert over.events("deadline_passed") == []
    assert len(over.marks("life")) == 1


def test_a_stopped_worker_and_its_children_are_killed_at_the_deadline_and_it_is_started_again(over: StandIn):
    over.start(CHILD + RENEWS)
    over.marked("ready")
    worker, child = over.worker, int(over.marked("child")[0][0])
    os.kill(worker, signal.SIGSTOP)
    over.marked("life", 2)
    assert not tree.alive(worker)
    assert not tree.alive(child)
    (event,) = over.events("deadline_passed")
    assert event["pid"] == worker
    assert event["worker"].startswith("01234567-")
    assert over.events("worker_ended")[0]["signal"] == "SIGKILL"


def test_a_thread_that_runs_on_while_the_worker_says_nothing_is_killed_with_it(over: StandIn):
    over.start(READY + "if lives() == 1: say(protocol.kill_at(boottime() + 0.2))\nforever()")
    over.marked("life", 2)
    assert len(over.events("deadline_passed")) == 1


def test_a_deadline_that_is_moved_on_kills_nobody(over: StandIn):
    over.start(RENEWS)
    over.marked("ready")
    _settled(over, 2.5)


def test_a_deadline_that_is_taken_back_kills_nobody(over: StandIn):
    over.start(READY + "say(protocol.kill_at(boottime() + 1.0)); nap(0.2); say(protocol.kill_at(None)); forever()")
    over.marked("life")
    _settled(over, 2.5)


def test_a_deadline_that_is_moved_on_within_the_moment_of_doubt_kills_nobody(over: StandIn):
    over.start(READY + "say(protocol.kill_at(boottime())); nap(0.25); say(protocol.kill_at(None)); forever()")
    over.marked("life")
    _settled(over, 1.5)


def test_a_supervisor_that_was_stopped_itself_reads_all_before_it_judges(over: StandIn):
    over.start(RENEWS)
    over.marked("ready")
    over.signal(signal.SIGSTOP)
    end = boottime() + 1.5
    eventually(lambda: boottime() > end, "its last word is out of date")
    over.signal(signal.SIGCONT)
    _settled(over, 1.5)


@pytest.mark.parametrize("first", ["worker", "supervisor"])
def test_a_freeze_of_both_past_the_deadline_lets_the_worker_speak_first(over: StandIn, first: str):
    over.start(RENEWS)
    over.marked("ready")
    both = {"worker": over.worker, "supervisor": over.pid}
    for pid in both.values():
        os.kill(pid, signal.SIGSTOP)
    end = boottime() + 1.5
    eventually(lambda: boottime() > end, "the deadline passes")
    order = sorted(both, key=lambda name: name != first)
    for name in order:
        os.kill(both[name], signal.SIGCONT)
    _settled(over, 1.5)


def test_a_freeze_in_the_moment_of_doubt_begins_it_anew(over: StandIn):
    # The deadline has passed; the worker will move it on 0.4 s after it was thawed, by its own clock.
    over.start(
        READY + "say(protocol.kill_at(boottime())); mark('told'); os.kill(os.getpid(), signal.SIGSTOP)\n"
        "nap(0.3); say(protocol.kill_at(None)); forever()"
    )
    over.marked("told")
    over.signal(signal.SIGSTOP)
    end = boottime() + 1.0
    eventually(lambda: boottime() > end, "both are stopped")
    over.signal(signal.SIGCONT)
    os.kill(over.worker, signal.SIGCONT)
    _settled(over, 1.5)


def test_the_deadline_holds_while_the_worker_stops(over: StandIn):
    over.start(
        "signal.signal(protocol.STOP, lambda *_: say(protocol.kill_at(boottime() + 0.3)))\n"
        "say(protocol.grace(600, 0) + protocol.worker(ID) + protocol.ready()); mark('ready'); forever(); forever()"
    )
    over.marked("ready")
    over.signal(signal.SIGTERM)
    assert over.wait() == 128 + signal.SIGKILL
    assert len(over.events("deadline_passed")) == 1
    assert len(over.marks("release")) == 1
