"""A claim that is committed when its worker is dead already: nobody started the job, so nobody is charged for it."""

import pytest

from jobs import presence, transitions
from jobs.ids import new_id
from jobs.models import Worker
from jobs.states import State
from tests.neighbours.stand_ins import register
from tests.races.two import holding, rival
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import LABEL, execute, make_job
from workers import estate
from workers.neighbours import Neighbours
from workers.release import release_everything

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed"), pytest.mark.crash]
RETURNED = [("Enqueued", "Processing", "claimed"), ("Processing", "Enqueued", "released")]


@pytest.fixture
def standing(processes):
    made = processes.worker()
    register(made)
    return made


def claim(standing):
    """The worker's own claim, as its last transaction."""
    [claimed] = transitions.claim_next(
        [("default", 0)],
        types=["test.echo"],
        worker_id=standing.worker_id,
        claim_id=new_id(),
        label=LABEL,
        lease=60.0,
    )
    return claimed


@pytest.mark.parametrize("at_most_once", [False, True])
@pytest.mark.parametrize("by", ["a neighbour", "its supervisor"])
def test_a_claim_that_is_committed_after_the_take_back_returns_uncharged_at_the_next_look(standing, at_most_once, by):
    job = make_job(at_most_once=at_most_once)
    with holding():
        claim(standing)
        standing.kill()
        if by == "a neighbour":
            assert Neighbours().take_back() == 0  # (on the engine's connection, which does not see it)
        else:
            assert release_everything(standing.worker_id) == 0
        assert rows_of(standing) == ("Offline", True)
    assert rows.state(job.id) == State.PROCESSING
    assert Neighbours().take_back() == 1
    assert rows.edges(job.id) == RETURNED
    assert [attempt["counted"] for attempt in rows.attempts(job.id)] == [False]
    assert Neighbours().take_back() == 0


def rows_of(standing):
    """State, and whether it is settled, as the engine's connection sees them."""
    row = Worker.objects.using("engine").get(pk=standing.worker_id)
    return row.state, row.settled_at is not None


def test_the_release_by_hand_of_a_settled_worker_charges_nothing_either(standing):
    standing.kill()
    assert release_everything(standing.worker_id) == 0
    once = make_job(State.PROCESSING, worker=standing.worker_id, at_most_once=True)
    assert release_everything(standing.worker_id, lost=True) == 1
    assert rows.edges(once.id) == [("Processing", "Enqueued", "released")]


def test_what_was_committed_while_its_worker_lived_is_charged(standing):
    job = make_job(at_most_once=True)
    claim(standing)
    standing.kill()
    assert Neighbours().take_back() == 1
    assert rows.edges(job.id)[-1] == ("Processing", "Failed", "never_repeated")


def test_a_worker_that_left_by_itself_is_not_settled_by_that(standing):
    once = make_job(State.PROCESSING, worker=standing.worker_id, at_most_once=True)
    presence.leave(standing.worker_id)
    execute("UPDATE turno.workers SET stopped_at = now() - interval '1 hour', seen_at = now() - interval '1 hour'")
    standing.kill()
    assert Neighbours().take_back() == 1
    assert rows.state(once.id) == State.FAILED


def test_a_sign_of_life_that_comes_late_is_taken_seriously_and_the_death_proven_anew(standing):
    standing.kill()
    assert Neighbours().take_back() == 0
    register(standing)
    assert rows_of(standing) == ("Online", False)
    once = make_job(State.PROCESSING, worker=standing.worker_id, at_most_once=True)
    assert Neighbours().take_back() == 1
    assert (rows_of(standing), rows.state(once.id)) == (("Offline", True), State.FAILED)


def test_without_a_proof_nothing_of_a_settled_worker_is_touched(standing, processes):
    standing.kill()
    assert Neighbours().take_back() == 0
    job = make_job(State.PROCESSING, worker=standing.worker_id)
    processes.lock_file(standing).unlink()
    assert Neighbours().take_back() == 0
    assert rows.state(job.id) == State.PROCESSING


def test_what_only_the_second_look_of_a_release_sees_was_not_started(standing, monkeypatch):
    first, once = make_job(State.PROCESSING, worker=standing.worker_id, at_most_once=True), make_job(at_most_once=True)
    standing.kill()
    release = transitions.release
    with rival() as other:
        other.execute(
            "UPDATE turno.jobs SET state = 'Processing', worker_id = %s, claim_id = gen_random_uuid(), executions = 1,"
            " claimed_at = now(), started_at = now(), lease_expires_at = now() + interval '1 minute', slot = 0"
            " WHERE id = %s",
            [standing.worker_id, once.id],
        )

        def released(*arguments, **options):
            found = release(*arguments, **options)
            other.commit()  # between the two looks
            return found

        monkeypatch.setattr(transitions, "release", released)
        wound = estate.wind_up(standing.worker_id, policy_of=None, settled=False)
    assert (set(wound.jobs), wound.done) == ({str(first.id), str(once.id)}, True)
    assert (rows.state(first.id), rows.state(once.id)) == (State.FAILED, State.ENQUEUED)
