"""What goes on around a supervisor does not disturb it."""

import json
import logging
import os
import signal
import subprocess
import sys

import pytest

from tests.kit.processes import eventually
from tests.supervisor.stand_in import PROJECT, StandIn
from workers import logs, tree
from workers.supervision import events

pytestmark = pytest.mark.crash

READY = "introduce(); say(protocol.ready()); mark('ready'); forever()"


def test_a_storm_of_signals_is_weathered_and_the_end_of_the_worker_is_seen_in_it(over: StandIn):
    over.start(READY)
    over.marked("ready")
    for _ in range(2000):
        over.signal(signal.SIGCHLD)
        over.signal(signal.SIGCONT)
        over.signal(signal.SIGWINCH)
    os.kill(over.worker, signal.SIGKILL)
    for _ in range(2000):
        over.signal(signal.SIGCHLD)
    over.marked("ready", 2)
    over.signal(signal.SIGTERM)
    assert over.wait() == 0
    assert len(over.events("worker_ended")) == 2


def test_a_worker_that_stops_and_goes_on_has_not_ended(over: StandIn):
    over.start(READY)
    over.marked("ready")
    for _ in range(20):
        os.kill(over.worker, signal.SIGSTOP)
        os.kill(over.worker, signal.SIGCONT)
    over.signal(signal.SIGTERM)
    assert over.wait() == 0
    assert len(over.marks("life")) == 1


def test_closed_standard_streams_are_opened_before_a_pipe_can_take_their_place(over: StandIn):
    over.start(
        "mark('streams', *[os.readlink('/proc/self/fd/%d' % n) for n in range(3)]); say(b'?\\n')\n" + READY,
        run="from workers.supervision import door\ndoor._open_standard_streams()\n"
        "sys.exit(supervisor.Supervisor(worker, release, os.environ).run())",
        before="for n in range(3): os.close(n)",
    )
    over.marked("ready")
    assert over.marks("streams") == [["/dev/null"] * 3]
    over.signal(signal.SIGTERM)
    assert over.wait() == 0


def test_a_signal_that_was_ignored_by_whoever_started_it_still_stops_the_worker(over: StandIn):
    over.start(
        "signal.signal(protocol.STOP, signal.SIG_DFL)\nmark('deaf'); forever()",
        before="import signal\nfor number in (signal.SIGUSR2, signal.SIGCHLD): signal.signal(number, signal.SIG_IGN)",
    )
    over.marked("deaf")
    over.signal(signal.SIGTERM)
    assert over.wait() == 0


def test_two_supervisors_side_by_side_know_nothing_of_each_other(over: StandIn, tmp_path):
    (tmp_path / "other").mkdir()
    other = StandIn(tmp_path / "other")
    try:
        for one in (over, other):
            one.start(READY)
        for one in (over, other):
            one.marked("ready")
        over.signal(signal.SIGTERM)
        assert over.wait() == 0
        os.kill(other.worker, 0)
        assert other.marks("stopped") == []
    finally:
        other.close()


def test_its_log_has_the_form_of_the_workers_log():
    code = "from workers.supervision.events import say; say('supervisor.killed', 'warning', count=2, pids=[3])"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    record = logging.LogRecord(events.LOGGER, logging.WARNING, "", 0, "supervisor.killed", (), None)
    record.__dict__.update(count=2, pids=[3])
    ours, theirs = json.loads(done.stderr), json.loads(logs.JsonLines().format(record))
    assert list(ours) == list(theirs)
    assert len(ours.pop("at")) == len(theirs.pop("at"))
    assert ours == theirs


def test_many_workers_that_crash_at_once_leave_nothing(over: StandIn):
    over.start("if os.fork() == 0:\n    os.setsid(); forever()\nif lives() < 12: os.kill(os.getpid(), 9)\n" + READY)
    over.marked("ready")
    worker = over.worker
    eventually(lambda: tree.children(over.pid) == [worker], "only the worker is left below")
    assert len(over.marks("life")) == 12
