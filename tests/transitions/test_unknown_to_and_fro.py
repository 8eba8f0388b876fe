"""A broker hands messages to any worker of a queue: what meets one without its type again stays away for longer."""

import pytest

from jobs import transitions
from jobs.states import State
from tests.outbox.rows import with_broker
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import ago, execute
from tests.transitions.unserved import parked, worker

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]


@pytest.fixture(autouse=True)
def no_workers(committed):
    yield
    execute("DELETE FROM turno.workers")


def opened(using="default"):
    with with_broker():
        return transitions.open_unknown(limit=9, silent_after=15, using=using)


def meet_the_wrong_one(made):
    """The job's message comes to a worker that has not its type."""
    job = rows.job(made.id)
    assert transitions.park_unknown([(made.id, job["dispatch_id"])]) == {made.id}


def pass_seconds(made, seconds):
    """What has happened to the job so far did so many seconds earlier."""
    earlier = "enqueued_at = enqueued_at - make_interval(secs => %s)"
    execute(f"UPDATE turno.jobs SET {earlier} WHERE id = %s", seconds, made.id)
    execute("UPDATE turno.job_state_changes SET at = at - make_interval(secs => %s)", seconds)


def test_each_time_it_stays_longer_up_to_a_minute(using):
    worker()
    worker(types=["a.type"])
    made = parked(age=0)
    stays = []
    for _ in range(9):
        seconds = 0
        while not opened(using):
            seconds += 1
            assert seconds < 100
            pass_seconds(made, 1)
        stays.append(seconds)
        meet_the_wrong_one(made)
    assert stays[0] == 0, "the first time it is back at once"
    assert all(abs(got - want) <= 1 for got, want in zip(stays, (0, 1, 3, 7, 15, 31, 60, 60, 60), strict=True)), stays


def seen_often(**columns):
    """A job that came to a worker without its type a few times just now."""
    made = parked(age=0, **columns)
    for _ in range(4):
        execute(
            "INSERT INTO turno.job_state_changes (job_id, from_state, to_state, reason)"
            " VALUES (%s, 'Scheduled', 'Enqueued', 'gate_opened')",
            made.id,
        )
    return made


def test_it_is_back_at_once_when_all_workers_of_its_queue_have_its_type(using):
    old = worker()
    worker(types=["a.type", "another"])
    worker(types=["a.type"])
    made = seen_often()
    assert opened(using) == 0
    execute("UPDATE turno.workers SET state = 'Draining' WHERE id = %s", old)
    assert opened(using) == 1
    assert rows.state(made.id) == State.ENQUEUED


def test_workers_of_other_queues_keep_nobody():
    worker(queues={"r": 1})
    worker(types=["a.type"])
    seen_often()
    assert opened() == 1


def test_what_went_to_and_fro_earlier_counts_no_more():
    worker()
    worker(types=["a.type"])
    made = seen_often()
    execute(f"UPDATE turno.job_state_changes SET at = {ago(601)} WHERE job_id = %s", made.id)
    assert opened() == 1


def test_one_that_stays_keeps_no_other():
    worker()
    worker(types=["a.type"])
    seen_often(priority=9)
    fresh = parked(age=0)
    assert opened() == 1
    assert rows.state(fresh.id) == State.ENQUEUED


def test_without_a_broker_nobody_is_handed_what_it_can_not_run():
    worker()
    worker(types=["a.type"])
    seen_often()
    assert transitions.open_unknown(limit=9, silent_after=15) == 1
