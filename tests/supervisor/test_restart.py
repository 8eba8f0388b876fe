"""A worker that ends by itself is cleared up and started again, unless it could never start."""

import os
import signal

import pytest

from tests.kit.processes import eventually
from tests.supervisor.stand_in import StandIn
from tests.supervisor.test_stop import DAEMON
from workers import tree
from workers.protocol import EXIT_LATE, EXIT_LEFT, EXIT_USAGE

pytestmark = pytest.mark.crash

READY = "introduce(); say(protocol.ready()); mark('ready')\n"


def test_what_a_crashed_worker_left_is_killed_and_reaped_before_its_successor_starts(over: StandIn):
    over.start(
        "if lives() == 2: mark('left', tree.descendants(os.getppid())); forever()\n" + DAEMON + READY + "forever()"
    )
    over.marked("ready")
    daemon = int(over.marks("daemon")[0][0])
    first = over.worker
    os.kill(first, signal.SIGSEGV)
    assert over.marked("left") == [[f"[{over.worker}]"]]
    assert first != over.worker
    assert not tree.alive(daemon)
    assert over.events("worker_ended")[0]["signal"] == "SIGSEGV"
    assert over.marks("release") == []  # its successor takes it back


@pytest.mark.parametrize("code", [0, 1, EXIT_LATE])
def test_a_worker_that_was_ready_is_started_again_whatever_its_code(over: StandIn, code: int):
    over.start(f"{READY}\nif lives() < 3: os._exit({code})\nforever()")
    over.marked("ready", 3)
    assert [event["code"] for event in over.said("worker_ended", 2)] == [code, code]
    over.signal(signal.SIGTERM)
    assert over.wait() == 0


def test_a_worker_that_ends_again_and_again_waits_longer_each_time(over: StandIn):
    over.start(f"{READY}os._exit(1)")
    pauses = [event["seconds"] for event in over.said("restarting", 4)]
    assert pauses[:4] == [0.05, 0.1, 0.2, 0.4]


def test_the_pause_has_an_end_and_begins_small_after_a_steady_life():
    from workers.supervision.pause import FIRST, LONGEST, STEADY, Pause

    pause = Pause()
    assert [pause.after(1.0) for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert pause.after(STEADY + 1) == FIRST
    assert [pause.after(0.0) for _ in range(2000)][-1] == LONGEST


@pytest.mark.parametrize("code", [1, EXIT_USAGE])
def test_a_worker_that_fails_before_it_was_ever_ready_ends_the_supervisor_and_its_code_is_said(
    over: StandIn, code: int
):
    over.start(f"introduce(); sys.stderr.write('this is wrong\\n'); sys.stderr.flush(); os._exit({code})")
    assert over.wait() == code
    assert over.last_words == "this is wrong"
    assert [event["code"] for event in over.events("worker_failed")] == [code]
    assert len(over.marks("life")) == 1


def test_the_same_later_is_tried_again_since_it_was_well_once(over: StandIn):
    over.start(f"if lives() in (2, 3): os._exit(1)\n{READY}\nif lives() == 1: os._exit(1)\nforever()")
    assert len(over.marked("life", 4)) == 4
    over.marked("ready", 2)


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_worker_that_is_killed_or_ends_clean_before_it_was_ready_is_started_again(over: StandIn, end: str):
    over.start(f"if lives() < 3: {end}\n{READY}forever()")
    over.marked("ready")
    assert len(over.marks("life")) == 3


def test_a_program_that_is_missing_ends_the_supervisor_with_what_the_system_says(over: StandIn):
    over.start("", run="sys.exit(supervisor.Supervisor(['/no/such', 'runworker'], release, os.environ).run())")
    assert over.wait() == 127
    assert "/no/such: No such file or directory" in over.log.splitlines()


def test_an_end_in_order_that_left_handlers_is_released_before_the_next_start(over: StandIn):
    over.start(f"if lives() == 2: mark('second'); forever()\n{DAEMON}{READY}os._exit({EXIT_LEFT})")
    over.marked("second")
    (release,) = over.marks("release")
    assert release[1:] == ["False", "[]"]
    over.signal(signal.SIGTERM)
    assert over.wait() == 0
    assert len(over.marks("release")) == 1


def test_a_request_during_the_pause_ends_it_and_gives_back_what_the_last_worker_left(over: StandIn):
    over.start(f"{READY}os._exit(1)", before="supervisor.Pause.__init__.__globals__.update(FIRST=600, LONGEST=600)")
    assert over.said("restarting")[0]["seconds"] == 600
    over.signal(signal.SIGTERM)
    assert over.wait() == 0
    assert len(over.marks("release")) == len(over.marks("life")) == 1


def test_what_loses_its_parents_is_killed_and_reaped_while_the_worker_works(over: StandIn):
    over.start(READY + DAEMON + "mark('there'); forever()")
    over.marked("there")
    daemon = int(over.marks("daemon")[0][0])
    eventually(lambda: not tree.alive(daemon), "the orphan is killed")
    assert daemon in over.said("orphans_killed")[0]["pids"]
    eventually(lambda: not os.path.exists(f"/proc/{daemon}"), "the orphan is reaped")  # noqa: PTH110
    assert tree.alive(over.worker)


def test_children_of_the_worker_that_still_have_their_parents_are_left_alone(over: StandIn):
    over.start(
        READY
        + "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: mark('grandchild', os.getpid())\n    forever()\n"
        "nap(0.2)\nif os.fork() == 0:\n    if os.fork(): os._exit(0)\n    mark('orphan', os.getpid()); forever()\n"
        "os.wait(); forever()"
    )
    grandchild = int(over.marked("grandchild")[0][0])
    over.said("orphans_killed")
    assert tree.alive(grandchild)


def test_processes_that_end_by_the_hundred_leave_no_zombie(over: StandIn):
    over.start(
        READY
        + "for _ in range(100):\n    if os.fork() == 0:\n        if os.fork() == 0: os._exit(0)\n        os._exit(0)\n"
        "    os.wait()\nmark('done'); forever()"
    )
    over.marked("done")

    def zombies() -> list[str]:
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
            try:
                with open(f"/proc/{name}/stat") as stat:  # noqa: PTH123
                    fields = stat.read().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[:2] == ["Z", str(over.pid)]:
                found.append(name)
        return found

    eventually(lambda: not zombies(), "all are reaped")
    assert over.events("worker_ended") == []
