"""Several supervisors under one small init."""

import os
import signal

import pytest

from tests.kit.processes import eventually
from tests.supervisor.stand_in import SEVERAL, StandIn
from workers import tree

pytestmark = pytest.mark.crash

READY = "introduce(); say(protocol.ready()); mark('ready', sys.argv[1], os.getppid())\n"
ASKED = "def stopped(*_): mark('asked', sys.argv[1]); nap(0.6); os._exit(0)\nsignal.signal(protocol.STOP, stopped)\n"


def _start(over: StandIn, worker: str, count: int, before: str = "") -> None:
    over.env["COUNT"] = str(count)
    over.start(worker, SEVERAL, "init.Pause.__init__.__globals__.update(FIRST=0.05)\n" + before)


def test_each_worker_has_a_supervisor_of_its_own_and_one_request_stops_all(over: StandIn):
    _start(over, ASKED + READY + "forever()", 3)
    ready = over.marked("ready", 3)
    assert {number for number, _parent in ready} == {"0", "1", "2"}
    supervisors = {int(parent) for _number, parent in ready}
    assert len(supervisors) == 3
    assert set(tree.children(over.pid)) == supervisors
    for pid in (over.pid, *supervisors, *(pid for one in supervisors for pid in tree.children(one))):
        os.kill(pid, signal.SIGTERM)  # as systemd does
    assert over.wait() == 0
    assert sorted(over.marks("asked")) == [["0"], ["1"], ["2"]]


def test_two_requests_reach_each_worker_as_two(over: StandIn):
    _start(
        over,
        "asked = []\ndef stopped(*_):\n    asked.append(1); mark('asked')\n    if len(asked) == 2: os._exit(0)\n"
        "signal.signal(protocol.STOP, stopped)\n" + READY + "forever(); forever()",
        2,
    )
    over.marked("ready", 2)
    over.signal(signal.SIGTERM)
    over.signal(signal.SIGINT)
    assert over.wait() == 0
    assert len(over.marks("asked")) == 4


def test_it_ends_when_all_have_ended_with_the_worst_code(over: StandIn):
    _start(over, "signal.signal(protocol.STOP, lambda *_: os._exit(int(sys.argv[1])))\n" + READY + "forever()", 4)
    over.marked("ready", 4)
    over.signal(signal.SIGTERM)
    assert over.wait() == 3


# `tries` counts the lives of this place.
TRIES = "mark('try', sys.argv[1])\ntries = open('marks').read().count('try %s\\n' % sys.argv[1])\n"


def test_workers_that_all_fail_before_they_were_ready_end_it_and_are_not_tried_again(over: StandIn):
    _start(
        over,
        TRIES + "nap(0.2 * int(sys.argv[1]))\nprint('this is wrong', flush=True)\nos._exit(1 + int(sys.argv[1]))",
        3,
    )
    assert over.wait() == 3
    assert sorted(over.marks("try")) == [["0"], ["1"], ["2"]]
    assert {event["code"] for event in over.events("worker_failed")} == {1, 2, 3}
    assert over.last_words == "this is wrong"


def test_one_that_fails_before_it_is_ready_is_tried_again_since_another_is_well(over: StandIn):
    _start(
        over,
        TRIES + "if sys.argv[1] == '1':\n    while 'ready 0' not in open('marks').read(): nap(0.02)\n"
        "    if tries < 3: os._exit(7)\n" + READY + "forever()",
        2,
    )
    over.marked("ready", 2)
    assert over.marks("try").count(["1"]) == 3
    assert [(event["number"], event["code"]) for event in over.events("lost")] == [(2, 7), (2, 7)]
    over.signal(signal.SIGTERM)
    assert over.wait() == 0


def test_one_that_fails_first_is_tried_again_when_another_becomes_ready(over: StandIn):
    _start(
        over,
        TRIES
        + "if sys.argv[1] == '0':\n    while not os.path.exists('go'): nap(0.02)\nelif tries == 1: os._exit(7)\n"
        + READY
        + "forever()",
        2,
    )
    assert over.said("lost")[0]["seconds"] is None
    assert over.marks("ready") == []
    (over.folder / "go").touch()
    over.marked("ready", 2)
    over.signal(signal.SIGTERM)
    assert over.wait() == 0


def test_a_stop_while_one_that_failed_waits_tells_its_code(over: StandIn):
    _start(
        over,
        "if sys.argv[1] == '1': os._exit(7)\n" + READY + "forever()",
        2,
        before="init.Pause.__init__.__globals__.update(FIRST=600, LONGEST=600)",
    )
    over.marked("ready")
    over.said("lost")
    over.signal(signal.SIGTERM)
    assert over.wait() == 7


def test_a_supervisor_that_is_killed_takes_its_worker_along_and_is_replaced(over: StandIn):
    _start(over, READY + "forever()", 2)
    ready = over.marked("ready", 2)
    killed = int(next(parent for number, parent in ready if number == "1"))
    (worker,) = tree.children(killed)
    os.kill(killed, signal.SIGKILL)
    again = over.marked("ready", 3)[2]
    assert again[0] == "1"
    assert int(again[1]) != killed
    eventually(lambda: not tree.alive(worker), "its worker died with it")
    over.signal(signal.SIGTERM)
    assert over.wait() == 0


def test_all_die_with_a_killed_init(over: StandIn):
    _start(over, READY + "forever()", 2)
    over.marked("ready", 2)
    below = tree.descendants(over.pid)
    assert len(below) == 4
    over.signal(signal.SIGKILL)
    over.wait()
    eventually(lambda: not any(tree.alive(pid) for pid in below), "all died with it")


def test_what_other_programs_leave_to_process_1_is_reaped_and_never_killed(over: StandIn):
    # Process 1 gets the orphans of all others; so does a subreaper.
    _start(
        over,
        READY + "forever()",
        1,
        before="from workers import tree; tree.become_subreaper()\n"
        "if os.fork() == 0:\n    pid = os.fork() or os.execv('/bin/sleep', ['sleep', '600'])\n"
        "    open('foreign', 'w').write(str(pid)); os._exit(0)\nos.wait()",
    )
    over.marked("ready")
    foreign = int((over.folder / "foreign").read_text())
    assert foreign in tree.children(over.pid)
    over.signal(signal.SIGCHLD)
    os.kill(over.worker, signal.SIGKILL)
    over.marked("ready", 2)
    assert tree.alive(foreign)
    os.kill(foreign, signal.SIGTERM)
    eventually(lambda: not os.path.exists(f"/proc/{foreign}"), "it was reaped")  # noqa: PTH110
    over.signal(signal.SIGTERM)
    assert over.wait() == 0


def test_a_request_while_a_supervisor_is_about_to_be_replaced_starts_none(over: StandIn):
    _start(over, READY + "forever()", 1, before="init.Pause.__init__.__globals__.update(FIRST=600, LONGEST=600)")
    over.marked("ready")
    os.kill(tree.children(over.pid)[0], signal.SIGKILL)
    over.said("lost")
    over.signal(signal.SIGTERM)
    assert over.wait() == 0
    assert len(over.marks("ready")) == 1
