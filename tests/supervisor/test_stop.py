"""A request to stop reaches the worker, and what it leaves is given back."""

import os
import pty
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.kit.processes import eventually
from tests.supervisor.stand_in import IMPATIENT, StandIn
from workers import protocol, tree
from workers.protocol import EXIT_FAILED, EXIT_LEFT

pytestmark = pytest.mark.crash

READY = "introduce(); say(protocol.ready()); mark('ready'); forever()"
# Leaves a daemon in a session of its own.
DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        mark("daemon", os.getpid()); forever()
    os._exit(0)
while not os.path.exists("marks") or "daemon" not in open("marks").read(): time.sleep(0.01)
"""


def _ends_with(code: int, before: str = "") -> str:
    return f"def stopped(*_): os._exit({code})\nsignal.signal(protocol.STOP, stopped)\n{before}{READY}"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_each_request_reaches_the_worker_as_one_stop_and_its_end_ends_the_supervisor(over: StandIn, number: int):
    over.start(READY)
    over.marked("ready")
    over.signal(number)
    assert over.wait() == 0
    assert over.marks("stopped") == [[]]
    assert over.marks("release") == []
    assert over.events("ended")[0]["code"] == 0


def test_two_requests_at_once_reach_the_worker_as_two(over: StandIn):
    over.start(
        "asked = []\ndef stopped(*_):\n    asked.append(1); mark('asked')\n    if len(asked) == 2: os._exit(0)\n"
        "signal.signal(protocol.STOP, stopped)\n" + READY
    )
    over.marked("ready")
    over.signal(signal.SIGTERM)
    over.signal(signal.SIGINT)
    assert over.wait() == 0
    assert len(over.marks("asked")) == 2


def test_a_signal_to_the_whole_group_is_one_request_and_never_the_workers_own(over: StandIn):
    over.start("def stopped(*_): mark('asked'); nap(0.6); os._exit(0)\nsignal.signal(protocol.STOP, stopped)\n" + READY)
    over.marked("ready")
    assert os.getpgid(over.worker) == over.worker
    for pid in (over.worker, over.pid):  # as systemd does
        os.kill(pid, signal.SIGTERM)
    assert over.wait() == 0
    assert over.marks("asked") == [[]]


def test_a_terminal_that_closes_is_no_request_under_nohup(over: StandIn):
    over.start(READY, before="import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)")
    over.marked("ready")
    over.signal(signal.SIGHUP)
    ignored = int(
        next(li for li in Path(f"/proc/{over.worker}/status").read_text().splitlines() if "SigIgn" in li)[8:], 16
    )
    assert ignored >> (signal.SIGHUP - 1) & 1
    over.signal(signal.SIGTERM)
    assert over.wait() == 0
    assert len(over.marks("stopped")) == 1


@pytest.mark.parametrize("way", ["ignores every signal", "is stopped"])
def test_a_worker_that_does_not_end_is_killed_after_its_grace_and_its_jobs_are_given_back(over: StandIn, way: str):
    over.start("signal.signal(protocol.STOP, signal.SIG_IGN)\n" + READY, before=IMPATIENT)
    over.marked("ready")
    worker = over.worker
    if way == "is stopped":
        os.kill(worker, signal.SIGSTOP)
    over.signal(signal.SIGTERM)
    assert over.wait() == 128 + signal.SIGKILL
    assert over.events("grace_passed")
    assert over.events("worker_ended")[0]["signal"] == "SIGKILL"
    assert over.marks("release") == [[f"01234567-89ab-cdef-0123-{worker:012x}", "False", "[]"]]


def test_handlers_left_running_are_dead_and_reaped_before_the_release_and_the_end_is_clean(over: StandIn):
    over.start(_ends_with(EXIT_LEFT, DAEMON))
    over.marked("ready")
    daemon = int(over.marks("daemon")[0][0])
    assert tree.alive(daemon)
    over.signal(signal.SIGTERM)
    assert over.wait() == 0
    assert not tree.alive(daemon)
    assert [mark[1:] for mark in over.marks("release")] == [["False", "[]"]]
    assert over.events("killed")[0]["count"] == 1


def test_a_release_that_fails_is_told_by_the_exit_code(over: StandIn):
    over.env["RELEASE_CODE"] = "1"
    over.start(_ends_with(EXIT_LEFT))
    over.marked("ready")
    over.signal(signal.SIGTERM)
    assert over.wait() == EXIT_LEFT
    assert over.events("released")[0]["code"] == 1


def test_a_worker_that_fails_while_it_stops_is_released_and_its_code_is_kept(over: StandIn):
    over.start(_ends_with(EXIT_FAILED))
    over.marked("ready")
    over.signal(signal.SIGTERM)
    assert over.wait() == EXIT_FAILED
    assert len(over.marks("release")) == 1


def test_a_worker_that_leaves_processes_and_ends_clean_is_cleared_up_without_a_release(over: StandIn):
    over.start(_ends_with(0, DAEMON))
    over.marked("ready")
    over.signal(signal.SIGTERM)
    assert over.wait() == 0
    assert not tree.alive(int(over.marks("daemon")[0][0]))
    assert over.marks("release") == []


def test_a_request_before_the_worker_listens_ends_it_without_a_release(over: StandIn):
    over.start("signal.signal(protocol.STOP, signal.SIG_DFL)\nmark('deaf'); forever()")
    over.marked("deaf")
    over.signal(signal.SIGTERM)
    assert over.wait() == 0
    assert over.marks("release") == []


def test_a_request_before_there_is_a_worker_starts_none(over: StandIn):
    over.start(
        READY,
        run="found = supervisor.Supervisor(worker, release, os.environ)\n"
        "import signal; os.kill(os.getpid(), signal.SIGTERM)\nsys.exit(found.run())",
    )
    assert over.wait() == 0
    assert over.marks("life") == []


def test_a_request_that_came_while_its_signal_was_held_back_is_heard(over: StandIn):
    over.start(
        READY,
        before="import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
        "os.kill(os.getpid(), signal.SIGTERM)",
    )
    assert over.wait() == 0
    assert over.marks("life") == []


def test_the_worker_and_all_below_a_killed_supervisor_die_with_it(over: StandIn):
    over.start(READY)
    over.marked("ready")
    over.signal(signal.SIGKILL)
    over.wait()
    eventually(lambda: not tree.alive(over.worker), "the worker died with its supervisor")


def test_the_worker_gets_no_input_and_no_other_pipe_than_its_line(over: StandIn):
    reader, writer = os.pipe()
    over.start(
        "fds = [fd for fd in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + fd)]\n"
        "mark('fds', *sorted(map(int, fds)), FD, os.readlink('/proc/self/fd/0'))\n" + READY,
        stdin=reader,
    )
    os.close(reader)
    os.close(writer)
    *fds, line, null = over.marked("fds")[0]
    assert null == "/dev/null"
    assert fds == ["0", "1", "2", line]


def test_an_interrupt_while_the_release_runs_does_not_break_it_off(over: StandIn):
    over.start(_ends_with(EXIT_LEFT))
    over.marked("ready")
    (over.folder / "release.py").write_text(
        "import os, sys, time\nopen('releasing', 'w').close()\n"
        "while not os.path.exists('go'): time.sleep(0.01)\nopen('marks', 'a').write('release done')"
    )
    over.signal(signal.SIGTERM)
    eventually((over.folder / "releasing").exists, "the release runs")
    for pid in (over.pid, *tree.children(over.pid)):
        os.kill(pid, signal.SIGTERM)
    (over.folder / "go").touch()
    assert over.wait() == 0
    assert over.marks("release") == [["done"]]


def test_a_stop_does_not_wait_for_somebody_to_read_the_log(over: StandIn):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    over.start(READY, stderr=writer, stdout=writer)
    over.marked("ready")
    over.signal(signal.SIGTERM)
    assert over.wait() == 0
    os.close(reader)
    os.close(writer)


def test_the_grace_of_handlers_comes_on_top_of_the_workers_own(over: StandIn):
    over.start(
        "def stopped(*_): nap(2); mark('stopped'); os._exit(0)\nsignal.signal(protocol.STOP, stopped)\n"
        "introduce(kill=60); say(protocol.ready()); mark('ready'); forever()",
        before=IMPATIENT,
    )
    over.marked("ready")
    over.signal(signal.SIGTERM)
    assert over.wait() == 0
    assert over.marks("stopped") == [[]]


def test_nor_does_a_second_request_take_it_from_them(over: StandIn):
    over.start(
        "asked = []\ndef stopped(*_):\n    asked.append(1)\n"
        "    if len(asked) == 2: nap(2); mark('stopped'); os._exit(0)\n"
        "signal.signal(protocol.STOP, stopped)\n"
        "introduce(kill=60); say(protocol.ready()); mark('ready'); forever(); forever()",
        before="supervisor.HURRY = 0.5",
    )
    over.marked("ready")
    over.signal(signal.SIGTERM)
    over.signal(signal.SIGINT)
    assert over.wait() == 0
    assert over.marks("stopped") == [[]]


def test_the_release_is_not_taken_for_something_of_the_worker(over: StandIn):
    over.env |= dict.fromkeys(protocol.VARIABLES, "of the one around")
    over.start(_ends_with(EXIT_LEFT))
    over.marked("ready")
    (over.folder / "release.py").write_text(
        "import os\nopen('marks', 'a').write('variables ' + ' '.join(n for n in os.environ if n.startswith('TURNO_')))"
    )
    over.signal(signal.SIGTERM)
    assert over.wait() == 0
    assert not set(over.marks("variables")[0]) & set(protocol.VARIABLES)


def test_a_terminal_that_silences_the_background_does_not_stop_the_worker(over: StandIn):
    terminal, inside = pty.openpty()
    over.start(
        "print('these words', flush=True)\n" + READY,
        before="import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\nmodes = termios.tcgetattr(0)\n"
        "modes[3] |= termios.TOSTOP; termios.tcsetattr(0, termios.TCSANOW, modes)",
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    )
    os.close(inside)
    over.marked("ready")
    assert b"these words" in os.read(terminal, 65536)
    over.signal(signal.SIGTERM)
    assert over.wait() == 0
    os.close(terminal)


def test_ctrl_c_at_a_terminal_stops_it_in_order_and_its_log_is_text_there(over: StandIn):
    terminal, inside = pty.openpty()
    over.start(
        READY,
        before="import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)",
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    )
    os.close(inside)
    over.marked("ready")
    os.write(terminal, b"\x03")
    shown = b""
    with suppress(OSError):  # the terminal is closed with its last process
        while chunk := os.read(terminal, 4096):
            shown += chunk
    os.close(terminal)
    assert over.wait() == 0
    assert over.marks("stopped") == [[]]
    assert b"info    supervisor.ended code=0" in shown
