"""Whatever a worker writes into its pipe, the supervisor goes on."""

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.processes import eventually
from tests.supervisor.stand_in import IMPATIENT, StandIn
from workers import protocol
from workers.protocol import LONGEST_LINE, StopRequests, Told

WORKER = "0197a1b2-0000-7000-8000-00000000abcd"


def test_each_word_is_understood_whole_or_in_pieces():
    words = protocol.worker(WORKER) + protocol.grace(30, 1.5) + protocol.ready() + protocol.kill_at(123.4567)
    whole, pieces = Told(), Told()
    whole.hear(words)
    for byte in words:
        pieces.hear(bytes([byte]))
    for told in (whole, pieces):
        assert (told.worker, told.grace, told.ready, told.kill_at, told.wrong) == (
            WORKER,
            (30.0, 1.5),
            True,
            123.457,
            0,
        )
    whole.hear(protocol.kill_at(None))
    assert whole.kill_at is None


@pytest.mark.parametrize(
    "line",
    [b"", b"kill-at", b"kill-at nan", b"kill-at inf", b"kill-at -1", b"kill-at 1e999", b"kill-at 1 2", b"kill-at \xff",
     b"grace never", b"grace 5", b"grace 5 -1", b"grace 5 1 1", b"grace 5 ",
     b"worker x", b"worker " + WORKER.upper().encode(), b"READY", b"ready ", b"\0" * 50,
     b"kill-at " + b"0" * LONGEST_LINE + b"7"],
)  # fmt: skip
def test_what_is_no_word_is_counted_and_changes_nothing(line: bytes):
    told = Told()
    told.hear(protocol.worker(WORKER) + protocol.grace(5, 1) + protocol.kill_at(7.0) + line + b"\n")
    assert (told.worker, told.grace, told.kill_at, told.ready) == (WORKER, (5.0, 1.0), 7.0, False)
    assert told.wrong == 1


@given(st.lists(st.binary(max_size=500), max_size=20))
def test_no_bytes_raise_or_are_kept_for_long_and_the_next_line_is_understood(chunks: list[bytes]):
    told = Told()
    for chunk in chunks:
        told.hear(chunk)
    told.hear(b"\n" + protocol.grace(3, 1) + protocol.kill_at(9.0))
    assert (told.grace, told.kill_at) == ((3.0, 1.0), 9.0)
    told.hear(b"x" * 2**20)
    assert len(told._rest) <= LONGEST_LINE + 1


def test_requests_that_come_twice_by_nature_count_once():
    of_worker = StopRequests()
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGHUP):
        of_worker.note(number)
    assert of_worker.asked == 1
    of_worker.note(protocol.STOP)
    assert of_worker.asked == 1
    of_worker.note(protocol.STOP)
    assert of_worker.asked == 2


@pytest.mark.crash
def test_garbage_on_the_pipe_is_said_once_and_the_deadline_behind_it_still_holds(over: StandIn):
    over.start(
        "introduce(); say(protocol.ready())\nif lives() == 2: mark('again'); forever()\n"
        "for n in range(64): say(os.urandom(2**16))\n"
        "say(b'\\n' + protocol.kill_at(boottime())); mark('written'); forever()"
    )
    over.marked("written")
    over.marked("again")
    assert len(over.events("line_unreadable")) == 1
    assert len(over.events("deadline_passed")) == 1


@pytest.mark.crash
def test_a_worker_that_closes_its_line_is_asked_to_make_room_for_one_that_tells_its_deadlines(over: StandIn):
    over.start("introduce(); say(protocol.ready()); mark('ready')\nif lives() == 1: os.close(FD)\nforever()")
    over.marked("ready", 2)
    assert len(over.events("line_closed")) == 1
    assert over.marks("stopped") == [[]]
    over.signal(signal.SIGTERM)
    assert over.wait() == 0


@pytest.mark.crash
def test_a_deaf_worker_that_closes_its_line_is_killed_and_replaced(over: StandIn):
    over.start(
        "if lives() == 1: signal.signal(protocol.STOP, signal.SIG_IGN)\n"
        "introduce(); say(protocol.ready())\nif lives() == 1: os.close(FD)\nforever()",
        before=IMPATIENT,
    )
    over.marked("life", 2)
    assert over.events("worker_ended")[0]["signal"] == "SIGKILL"


@pytest.mark.crash
def test_a_line_that_outlives_its_worker_does_not_keep_the_supervisor(over: StandIn):
    over.start(
        "introduce(); say(protocol.ready())\nif lives() == 2: mark('again'); forever()\n"
        "os.set_inheritable(FD, True)\nif os.fork() == 0:\n    os.setsid(); forever()\nnap(0.1); os._exit(1)"
    )
    over.marked("again")


@pytest.mark.crash
def test_a_pipe_that_is_full_while_the_supervisor_is_stopped_is_read_to_its_end(over: StandIn):
    over.start(
        "introduce(); say(protocol.ready()); os.set_blocking(FD, False); mark('ready')\n"
        "while not os.path.exists('stopped'): nap(0.01)\n"
        "try:\n    while True: say(protocol.kill_at(boottime()))\nexcept BlockingIOError: mark('full')\n"
        "os.set_blocking(FD, True); say(protocol.kill_at(None)); mark('last'); forever()"
    )
    over.marked("ready")
    over.signal(signal.SIGSTOP)
    (over.folder / "stopped").touch()
    over.marked("full")
    over.signal(signal.SIGCONT)
    over.marked("last")
    over.signal(signal.SIGTERM)
    assert over.wait() == 0
    eventually(lambda: over.marks("stopped"), "it was asked, not killed")
    assert over.events("deadline_passed") == []
