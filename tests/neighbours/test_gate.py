"""One neighbour takes back at a time, and none is stopped for ever by one that is frozen at it."""

import pytest

from jobs.states import State
from tests.neighbours.stand_ins import register
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import make_job
from workers import neighbours, runfiles
from workers.neighbours import Neighbours

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed"), pytest.mark.crash]


@pytest.fixture
def dead(processes):
    standing = processes.worker()
    register(standing)
    standing.kill()
    return standing


def test_while_one_neighbour_is_at_it_another_leaves_it_to_that_one(dead, processes):
    job = make_job(State.PROCESSING, worker=dead.worker_id)
    look = Neighbours()
    with runfiles.alone(processes.run_dir):
        assert look.take_back() == 0
    assert rows.state(job.id) == State.PROCESSING
    assert look.take_back() == 1


def test_one_that_is_frozen_at_it_stops_the_others_for_some_looks_only_and_that_is_said_once(dead, processes, caplog):
    job = make_job(State.PROCESSING, worker=dead.worker_id)
    look = Neighbours()
    with runfiles.alone(processes.run_dir):
        assert [look.take_back() for _ in range(neighbours.TURNS)] == [0] * neighbours.TURNS
        assert rows.state(job.id) == State.PROCESSING
        assert look.take_back() == 1
        another = make_job(State.PROCESSING, worker=dead.worker_id)
        assert look.take_back() == 1
    assert rows.edges(job.id) == [("Processing", "Enqueued", "taken_back")]
    assert rows.state(another.id) == State.ENQUEUED
    assert [record.message for record in caplog.records].count("neighbours.gate_held") == 1


def test_two_at_once_do_no_harm(dead, processes):
    from tests.races.two import together

    jobs = [make_job(State.PROCESSING, worker=dead.worker_id) for _ in range(20)]
    (processes.run_dir / runfiles.GATE).mkdir()
    assert sum(together([lambda: Neighbours().take_back()] * 4)) == 20
    for job in jobs:
        assert rows.edges(job.id) == [("Processing", "Enqueued", "taken_back")]


def test_a_doubt_is_said_once_and_not_at_every_look(dead, processes, caplog):
    caplog.set_level("INFO")
    processes.lock_file(dead).unlink()
    look = Neighbours()
    assert [look.take_back() for _ in range(3)] == [0, 0, 0]
    [said] = [record for record in caplog.records if record.message == "worker.not_proven_dead"]
    assert said.why == "no file"
