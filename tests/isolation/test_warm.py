"""What a child puts back between two jobs, and what makes it end."""

import gc
import os
import signal

import pytest
from django.db import connections

import tests.isolation.handlers  # noqa: F401
from jobs.states import Outcome, State
from tests.isolation.house import House, told
from tests.kit.processes import eventually
from workers.execution import Execution

pytestmark = pytest.mark.crash


@pytest.mark.parametrize(
    "ways",
    [
        ["cwd"],
        ["umask"],
        ["environment"],
        ["putenv"],
        ["signals"],
        ["equal"],
        ["blocked"],
        ["faulthandler"],
        ["c_signals"],
        ["dump"],
        ["streams"],
        ["nonblock"],
        ["interpreter"],
        ["random"],
        ["language"],
        ["zombie"],
    ],
)
def test_what_can_be_put_back_is_and_the_child_stays(house, ways):
    before = house.result("iso.look")
    house.result("iso.dirty", {"ways": ways})
    after = house.result("iso.look")
    assert before.pop("random") != after.pop("random")
    assert before == after


def test_random_numbers_are_no_sequence_that_an_earlier_handler_began(house):
    numbers = [house.result("iso.dirty", {"ways": ["random"]})["random"] for _ in range(2)]
    assert numbers[0] == numbers[1]  # it was seeded by the handler
    assert house.result("iso.look")["random"] != house.result("iso.look")["random"]


@pytest.mark.parametrize("way", ["thread", "limits", "stdout", "files", "process", "detach", "reconfigure", "closed"])
def test_what_can_not_be_put_back_ends_the_child_and_the_job_is_well(house, way):
    clean = house.result("iso.look")
    dirty = house.result("iso.dirty", {"ways": [way]})["pid"]
    after = house.result("iso.look")
    assert clean["pid"] == dirty != after["pid"]
    eventually(lambda: house.pool.children == [after["pid"]], "the one before has ended")


def test_processes_that_a_handler_ends_itself_keep_the_child(house):
    first = house.result("iso.look")["pid"]
    assert house.run("iso.dirty", {"ways": ["pool"]}).to == State.SUCCEEDED
    assert house.result("iso.look")["pid"] in (first, *house.pool.children)


def test_a_handler_that_registers_with_faulthandler_takes_no_word_stop_from_the_next(house, tmp_path):
    warm = house.result("iso.dirty", {"ways": ["faulthandler"]})["pid"]
    held = house.start("iso.hold", {"how": "sleeps", "tell": str(tmp_path / "pid")}, timeout=0.4, max_attempts=1)
    ending = house.end(held)
    assert (ending.outcome, ending.signal) == (Outcome.TIMED_OUT, None)
    assert told(tmp_path / "pid") == [str(warm)]


def test_a_delayed_dump_that_would_end_the_process_ends_no_other_job(house):
    warm = house.result("iso.dirty", {"ways": ["dump"]})["pid"]
    assert house.result("iso.hold", {"how": "deaf", "seconds": 0.8}) == {"pid": warm}


def test_standard_output_blocks_again_for_everybody_when_the_child_that_changed_it_is_killed(house):
    before = [os.get_blocking(number) for number in (1, 2)]
    ending = house.run("iso.dirty", {"ways": ["nonblock", "kill"]})
    assert ending.signal == signal.SIGKILL
    assert [os.get_blocking(number) for number in (1, 2)] == before


BACKENDS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def test_no_connection_to_the_database_exists_before_a_handler_uses_the_orm_and_none_after_it(transactional_db):
    connections.close_all()
    house = House()
    try:
        others = backends()
        for _ in range(3):
            house.result("iso.echo")
        house.result("iso.fresh")
        assert backends() == others
        first = house.result("iso.orm")
        eventually(lambda: first["backend"] not in backends(), "its connection is closed")
        second = house.result("iso.orm")
        assert first["pid"] == second["pid"]
        assert first["backend"] != second["backend"]
    finally:
        house.close()


def backends() -> set[int]:
    with connections["default"].cursor() as cursor:
        cursor.execute(BACKENDS)
        return {pid for (pid,) in cursor.fetchall()}


def test_what_has_ended_leaves_the_workers_memory_at_once_and_waits_for_no_collection(house):
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            house.run("iso.echo")
        house.forget()
        assert not [one for one in gc.get_objects() if isinstance(one, Execution)]
    finally:
        gc.enable()
