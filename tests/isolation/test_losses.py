"""A handler that ends its process, or spoils it, costs its own job and nothing else."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tests.isolation.handlers  # noqa: F401
from jobs.states import FailureKind, Outcome, Reason, State
from tests.isolation.house import gone, told
from workers.conclusion import Death, Fault
from workers.isolation.looks import look
from workers.isolation.watchdog import EXIT_ENDED

pytestmark = pytest.mark.crash


@pytest.mark.parametrize(
    ("payload", "exit_code", "number", "text"),
    [
        ({"how": "exit", "code": 3}, 3, None, "3"),
        ({"how": "exit", "code": 0}, 0, None, "0"),
        ({"how": "signal", "signal": 9}, None, 9, "9 (SIGKILL)"),
        ({"how": "signal", "signal": 14}, None, 14, "14 (SIGALRM)"),
        ({"how": "segfault"}, None, 11, "11 (SIGSEGV)"),
        ({"how": "group"}, None, 9, "SIGKILL"),
    ],
)
def test_a_lost_process_is_a_loss_that_names_its_exit_code_or_signal(house, payload, exit_code, number, text):
    neighbour = house.start("iso.hold", {"seconds": 1})
    ending = house.run("iso.end", payload)
    assert (ending.outcome, ending.lost, ending.counted) == (Outcome.WORKER_LOST, True, True)
    assert (ending.to, ending.reason) == (State.ENQUEUED, Reason.WORKER_LOST)
    assert (ending.exit_code, ending.signal) == (exit_code, number)
    assert ending.peak_memory > 5 * 1024**2
    assert text in ending.error.message
    assert ending.error.type == "WorkerLost"
    assert [line.message for line in ending.logs] == ["last words"]
    assert (ending.progress, ending.stage) == (30, "nearly")
    assert house.end(neighbour).to == State.SUCCEEDED
    assert house.result("iso.echo")


def test_a_job_whose_process_is_lost_again_and_again_ends_failed(house):
    used_up = house.run("iso.end", {"how": "signal", "signal": 9}, attempts_used=2, max_attempts=3)
    assert (used_up.to, used_up.failure_kind) == (State.FAILED, FailureKind.WORKER_LOST)
    assert used_up.reason == Reason.ATTEMPTS_USED_UP
    too_often = house.run("iso.end", {"how": "exit"}, max_attempts=50, attempts_used=9, lost_count=9)
    assert (too_often.to, too_often.reason) == (State.FAILED, Reason.LOST_TOO_OFTEN)
    again = house.run("iso.end", {"how": "exit"}, max_attempts=50, attempts_used=1, lost_count=1)
    assert (again.to, again.reason) == (State.SCHEDULED, Reason.WORKER_LOST)


def test_a_lost_job_that_may_run_at_most_once_is_never_repeated(house):
    ending = house.run("iso.end", {"how": "exit"}, at_most_once=True)
    assert (ending.to, ending.reason, ending.outcome) == (State.FAILED, Reason.NEVER_REPEATED, Outcome.WORKER_LOST)


def test_a_handler_that_becomes_another_program_is_ended(house, tmp_path):
    ending = house.run("iso.end", {"how": "exec", "tell": str(tmp_path / "pid")})
    assert ending.outcome == Outcome.WORKER_LOST
    assert ending.error.message.startswith(Death(fault=Fault.CLOSED).text())
    gone(told(tmp_path / "pid"))


@pytest.mark.parametrize("how", ["close", "reuse"])
def test_a_handler_that_closes_every_descriptor_loses_its_job_and_writes_no_word_into_a_file_of_its_own(
    house, tmp_path, how
):
    file = tmp_path / "its_own"
    ending = house.run("iso.end", {"how": how, "file": str(file), "tell": str(tmp_path / "pid")})
    assert ending.outcome == Outcome.WORKER_LOST
    assert ending.to == State.ENQUEUED
    gone(told(tmp_path / "pid"))
    assert not file.exists() or file.read_bytes() == b""
    assert house.result("iso.echo")


def test_a_child_that_can_not_hear_its_worker_any_more_ends_itself_and_says_so(house, tmp_path):
    ending = house.run("iso.end", {"how": "deafen", "tell": str(tmp_path / "pid")})
    assert (ending.outcome, ending.exit_code) == (Outcome.WORKER_LOST, EXIT_ENDED)
    assert ending.error.message.startswith(Death(fault=Fault.UNHEARD).text())
    gone(told(tmp_path / "pid"))
    assert house.result("iso.echo")


def test_the_peak_of_memory_of_a_lost_process_is_that_of_its_last_job_or_unknown(house):
    mb = 1024**2
    own = look().memory  # a child begins with what this process has
    warm = house.result("iso.large_child", {"bytes": own + 150 * mb})["pid"]
    lost = house.run("iso.end", {"how": "exit"})
    assert (lost.exit_code, lost.peak_memory) == (3, None)  # the system tells the peak of the job before
    assert warm != house.result("iso.memory", {"bytes": 150 * mb})["pid"]
    lost = house.run("iso.end", {"how": "exit"})
    assert lost.peak_memory is None or lost.peak_memory < own + 120 * mb
    house.result("iso.large_child", {"bytes": own + 100 * mb})
    lost = house.run("iso.memory", {"bytes": 200 * mb, "killed": True})
    assert lost.peak_memory > 200 * mb


def test_garbage_in_the_connection_costs_the_job_and_its_process(house, tmp_path):
    ending = house.run("iso.end", {"how": "garbage", "tell": str(tmp_path / "pid")})
    assert ending.outcome == Outcome.WORKER_LOST
    assert ending.error.message.startswith(Death(fault=Fault.UNREADABLE).text())
    gone(told(tmp_path / "pid"))
    assert house.result("iso.echo")


def test_copies_that_a_handler_forks_and_that_return_like_itself_are_nobody(house, tmp_path):
    ending = house.run("iso.end", {"how": "fork", "tell": str(tmp_path / "pid")})
    assert ending.to == State.SUCCEEDED
    assert ending.result == f'{{"pid":{told(tmp_path / "pid")[0]}}}'
    assert house.result("iso.echo")


@pytest.mark.parametrize(
    ("what", "type_"),
    [
        ("two", "Two"),
        ("group", "ExceptionGroup"),
        ("chain", "KeyError"),
        ("interrupt", "KeyboardInterrupt"),
        ("exit0", "SystemExit"),
        ("exit3", "SystemExit"),
        ("generator", "GeneratorExit"),
        ("cancelled", "CancelledError"),
        ("bare", "Bare"),
        ("memory", "MemoryError"),
    ],
)
def test_whatever_a_handler_raises_fails_its_job_and_its_child_goes_on(house, what, type_):
    before = house.result("iso.echo")["pid"]
    ending = house.run("iso.raise", {"what": what}, max_attempts=1)
    assert (ending.to, ending.outcome, ending.lost) == (State.FAILED, Outcome.FAILED, False)
    assert ending.error.type == type_
    assert house.result("iso.echo")["pid"] == before


def test_a_handler_that_takes_too_much_memory_fails_or_is_lost_alone(house):
    neighbour = house.start("iso.hold", {"seconds": 1})
    refused = house.run("iso.memory", {"bytes": 2 * 1024**3, "limit": 64 * 1024**2}, max_attempts=1)
    assert (refused.to, refused.error.type) == (State.FAILED, "MemoryError")
    killed = house.run("iso.memory", {"bytes": 64 * 1024**2, "killed": True}, max_attempts=1)
    assert (killed.to, killed.failure_kind, killed.signal) == (State.FAILED, FailureKind.WORKER_LOST, signal.SIGKILL)
    assert killed.error.message.startswith(Death(signal=9).text())
    assert Death(signal=9).text() != Death(signal=10).text()
    assert killed.peak_memory > 64 * 1024**2
    scores = [int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in (house.server.pid, *house.pool.children)]
    assert all(score > scores[0] for score in scores[1:])
    assert house.end(neighbour).to == State.SUCCEEDED


def test_output_of_any_size_and_any_bytes_ends_nobody(house_with, tmp_path):
    with to_files(tmp_path):
        house = house_with()  # its children inherit where its output goes
    big = house.run("iso.print", {"out": 20 * 1024**2, "err": 20 * 1024**2})
    assert big.to == State.SUCCEEDED
    assert house.run("iso.print", {"line": 5 * 1024**2}).to == State.SUCCEEDED
    assert house.result("iso.echo")
    assert (tmp_path / "2").stat().st_size > 20 * 1024**2
    assert (tmp_path / "1").read_bytes().count(b"o") == 20 * 1024**2


@contextmanager
def to_files(folder: Path) -> Iterator[None]:
    """Standard output and error go to files named 1 and 2, for what is forked inside."""
    kept = {number: os.dup(number) for number in (1, 2)}
    try:
        for number in kept:
            file = os.open(folder / str(number), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(file, number)
            os.close(file)
        yield
    finally:
        for number, before in kept.items():
            os.dup2(before, number)
            os.close(before)
