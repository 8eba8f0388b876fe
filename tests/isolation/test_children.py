"""Jobs in child processes: results, what they say, reuse, and processes of their own."""

import json
import os
import signal
from pathlib import Path

import pytest

import tests.isolation.handlers  # noqa: F401  (registers the types)
from jobs.conf import conf
from jobs.states import Outcome, Reason, State
from tests.isolation.house import files_of, told, zombies
from tests.kit.processes import eventually
from workers.clock import boottime
from workers.isolation import pace
from workers.leases import Interrupt

pytestmark = pytest.mark.crash


def test_a_job_runs_in_another_process_with_a_session_of_its_own_and_gives_back_its_result(house):
    ending = house.run("iso.look")
    assert (ending.to, ending.outcome, ending.reason) == (State.SUCCEEDED, Outcome.SUCCEEDED, Reason.SUCCEEDED)
    assert ending.duration is not None
    assert ending.duration < 30
    assert (ending.tries, ending.lost, ending.signal, ending.exit_code) == (1, False, None, None)
    assert ending.peak_memory > 5 * 1024**2
    seen = house.result("iso.look")
    assert seen["pid"] == seen["session"] != os.getpid()
    assert seen["stdin"] == os.devnull


def test_a_child_is_used_again_the_one_used_last_first(house):
    first = house.result("iso.echo")["pid"]
    assert {house.result("iso.echo")["pid"] for _ in range(5)} == {first}
    pair = [house.start("iso.hold", {"seconds": 0.3}) for _ in range(2)]
    assert len({house.end(held).result for held in pair}) == 2
    assert len(house.pool.children) == 2
    assert len({house.result("iso.echo")["pid"] for _ in range(5)}) == 1


def test_a_fresh_type_and_a_job_that_was_lost_before_get_a_child_of_their_own(house):
    warm = house.result("iso.echo")["pid"]
    pids = [house.result("iso.fresh")["pid"] for _ in range(3)]
    lost = [house.result("iso.echo", lost_count=1)["pid"] for _ in range(2)]
    assert len({warm, *pids, *lost}) == 6
    assert house.result("iso.echo")["pid"] == warm
    eventually(lambda: house.pool.children == [warm], "the others have ended")


def test_jobs_of_no_length_wait_for_each_other_instead_of_for_more_children(house, monkeypatch):
    monkeypatch.setattr(pace, "FEW", 0)
    for name in ("PACE", "FLOW", "STREAM"):  # no machine is so slow that it takes longer
        monkeypatch.setattr(pace, name, 600.0)
    first = house.result("iso.echo")["pid"]
    many = [house.start("iso.echo") for _ in range(30)]
    assert {json.loads(house.end(held).result)["pid"] for held in many} == {first}
    assert house.pool.children == [first]


def test_jobs_of_some_length_have_a_child_each(house, monkeypatch):
    monkeypatch.setattr(pace, "FEW", 0)
    held = [house.start("iso.hold", {"seconds": 600.0}) for _ in range(6)]
    eventually(lambda: len(house.pool.children) == 6, "each has a child")
    assert not any(house.ended(one) for one in held)


def test_after_jobs_of_no_length_a_long_one_keeps_nobody_waiting(house, monkeypatch):
    monkeypatch.setattr(pace, "FEW", 0)
    first = house.result("iso.echo")["pid"]
    long = house.start("iso.hold", {"how": "asks"})
    assert house.result("iso.echo")["pid"] != first
    assert not house.ended(long)


def test_a_job_whose_child_dies_before_it_took_it_runs_in_another_and_counts_as_nothing(house):
    idle = house.result("iso.echo")["pid"]
    os.kill(idle, signal.SIGSTOP)
    held = house.start("iso.echo", {"a": 1}, at_most_once=True)
    eventually(lambda: held.extended is not None, "the child has been given it")
    os.kill(idle, signal.SIGKILL)
    ending = house.end(held)
    assert (ending.to, ending.lost) == (State.SUCCEEDED, False)
    assert json.loads(ending.result)["pid"] != idle


def test_a_child_that_was_frozen_with_a_job_in_its_hands_does_not_begin_it_after_the_deadline(house, tmp_path):
    idle = house.result("iso.echo")["pid"]
    os.kill(idle, signal.SIGSTOP)
    held = house.start("iso.end", {"how": "no", "tell": str(tmp_path / "pid")}, lease=0.3)
    eventually(lambda: boottime() > held.deadline, "the deadline has passed")
    os.kill(idle, signal.SIGCONT)
    ending = house.end(held)
    assert (ending.outcome, ending.counted) == (Outcome.INTERRUPTED, False)
    assert not (tmp_path / "pid").exists()


def test_a_child_ends_after_so_many_jobs_and_when_it_has_been_idle(house_with):
    house = house_with(child_max_jobs=3, child_idle=0.5)
    pids = [house.result("iso.echo")["pid"] for _ in range(7)]
    assert [len(set(pids[:3])), len(set(pids[3:6])), len(set(pids))] == [1, 1, 3]
    eventually(lambda: not house.pool.children, "the idle one has ended")
    assert not zombies(house.server.pid)


def test_a_child_that_has_grown_too_large_is_not_used_again(house_with):
    house = house_with(child_max_memory=32 * 1024**2)
    assert len({house.result("iso.grow", {"bytes": 1024**2})["pid"] for _ in range(3)}) == 1
    assert len({house.result("iso.grow", {"bytes": 48 * 1024**2})["pid"] for _ in range(3)}) == 3


def test_payload_and_result_of_any_size_and_any_characters_come_through(house):
    odd = {"text": 'é€😀"\\\x01\u2028', "n": [1, -2.5, None, True]}
    assert house.result("iso.echo", odd)["given"] == odd
    large = {"text": "x" * (conf().limits.result - 1000)}
    assert house.result("iso.echo", large)["given"] == large
    assert len(house.result("iso.talk", {"size": 100_000})["text"]) == 100_000
    too_large = house.run("iso.talk", {"size": conf().limits.result})
    assert (too_large.to, too_large.error.type) == (State.FAILED, "ResultError")


def test_lines_are_numbered_kept_in_order_and_bounded_and_the_last_progress_is_there(house):
    ending = house.run("iso.talk", {"lines": 500, "steps": 5000})
    assert [line.number for line in ending.logs] == list(range(1, 501))
    assert ending.logs[499].message == "line 499 ?  é"
    assert (ending.progress, ending.stage) == (99, "step 4999")
    full = house.run("iso.talk", {"lines": conf().limits.log_lines + 50})
    assert len(full.logs) == conf().limits.log_lines + 1
    assert full.logs[-1].level == "warning"  # (it says that the log is full)


def test_what_a_running_job_says_arrives_while_it_runs(house):
    held = house.start("iso.hold", {"how": "asks"})
    other = house.start("iso.talk", {"lines": 1, "steps": 3, "file": True, "seconds": 20})
    ctx = eventually(lambda: [c for c in house.dirty if c.job_id == other.claim.id], "it said something")[0]
    # The steps after the first are kept back, and said by the watchdog while the handler sleeps.
    eventually(lambda: ctx.last_progress == (66, "step 2"), "the last step")
    for one in (held, other):
        one.ask(Interrupt.CANCELLED)
    assert house.end(held).to == house.end(other).to == State.CANCELLED


def test_the_folder_of_an_execution_is_gone_after_it_also_when_the_child_was_killed(house, tmp_path):
    folder = house.result("iso.talk", {"file": True})["folder"]
    assert not Path(folder).exists()
    tell = tmp_path / "folder"
    held = house.start("iso.talk", {"file": True, "tell": str(tell), "seconds": 60})
    folder = told(tell)[0]
    assert (Path(folder) / "a.txt").exists()
    held.ask(Interrupt.LOST)
    house.end(held)
    eventually(lambda: not Path(folder).exists(), "the folder is gone")


@pytest.mark.parametrize("who", ["process", "thread"])
def test_the_folder_is_gone_too_where_somebody_was_left_who_wrote_to_it(house, tmp_path, who):
    tell = tmp_path / "folder"
    assert house.run("iso.litter", {"who": who, "tell": str(tell)}).to == State.SUCCEEDED
    [folder] = told(tell)
    eventually(lambda: not Path(folder).exists(), "the folder is gone")
    assert house.result("iso.echo")
    assert not Path(folder).exists()


def test_an_invalid_payload_fails_for_good_and_a_passing_error_is_tried_again_at_once(house, tmp_path):
    invalid = house.run("iso.echo", ["no object"])  # type: ignore[arg-type]
    assert (invalid.to, invalid.reason) == (State.FAILED, Reason.PERMANENT)
    ending = house.run("iso.transient", {"tell": str(tmp_path / "tries")})
    assert (ending.to, ending.tries) == (State.SUCCEEDED, 3)


def test_ids_random_numbers_and_jitter_differ_between_children(house):
    held = [house.start("iso.ids", {}, lost_count=1) for _ in range(4)]  # each has a child of its own
    texts = [house.end(h).result for h in held]
    found = [json.loads(text) for text in texts]
    for what in ("pid", "id", "random", "jitter"):
        assert len({f[what] for f in found}) == 4, what


def test_nothing_is_left_open_after_many_jobs(house):
    house.result("iso.fresh")
    before = files_of(), files_of(house.server.pid)
    for _ in range(30):
        house.result("iso.fresh")
    eventually(lambda: not house.pool.children, "all have ended")
    assert (files_of(), files_of(house.server.pid)) == before
    assert not zombies(house.server.pid)


def test_the_peak_of_memory_is_that_of_the_job_not_of_an_earlier_one_in_the_same_child(house):
    large = house.run("iso.memory", {"bytes": 80 * 1024**2})
    small = house.run("iso.echo")
    assert large.peak_memory > 80 * 1024**2
    assert small.peak_memory < large.peak_memory - 60 * 1024**2
