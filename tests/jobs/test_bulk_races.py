"""Acts over many while others work: what changes between the look and the act, two runs over the same, one more id."""

import threading
from uuid import uuid4

import pytest
from django.db import connections

from jobs import bulk, transitions
from jobs.bulk import steps, store, targets
from jobs.bulk import threads as crews
from jobs.errors import Conflict
from jobs.ids import new_id
from jobs.queries import JobFilter
from jobs.states import State
from tests.jobs.bulkrows import counts, make_job, make_jobs, states
from tests.races.two import rival
from tests.transitions import rows
from tests.transitions.edges import claimant

BACK_TO_SCHEDULED = """
UPDATE turno.jobs SET state = 'Scheduled', run_at = now() + interval '1 hour', waiting_for = 'retry', worker_id = NULL,
    lease_expires_at = NULL, slot = NULL, claim_id = NULL, dispatch_id = NULL, claimed_at = NULL, started_at = NULL
WHERE id = %s
"""


def between(monkeypatch, happens):
    """`happens` after a batch has been looked for, and before it is acted on."""
    real = steps.following

    def looked(run, size):
        found = real(run, size)
        happens()
        return found

    monkeypatch.setattr(steps, "following", looked)


def test_a_job_that_a_worker_claims_meanwhile_is_not_among_the_queued_any_more(quiet, monkeypatch):
    first, second = make_job(State.ENQUEUED), make_job(State.ENQUEUED)
    between(monkeypatch, lambda: transitions.claim([(first.id, first.token, 0)], **claimant()))
    begun = bulk.start("cancel", filter=JobFilter(shown="Enqueued"))
    crews.work(store.take(new_id()))
    assert counts(bulk.get(begun.id)) == (2, 1, {"state": 1})
    assert rows.job(first.id)["cancel_requested_at"] is None
    assert rows.state(second.id) == State.CANCELLED


def test_a_job_that_is_claimed_meanwhile_is_asked_to_stop_where_no_state_was_named(quiet, monkeypatch):
    made = make_job(State.ENQUEUED)
    between(monkeypatch, lambda: transitions.claim([(made.id, made.token, 0)], **claimant()))
    begun = bulk.start("cancel", filter=JobFilter(type=made.type))
    crews.work(store.take(new_id()))
    run = bulk.get(begun.id)
    assert (counts(run), run.requested) == ((1, 1, {}), 1)


def test_a_job_that_failed_again_otherwise_meanwhile_is_not_deleted(quiet, monkeypatch):
    kept, gone = (make_job(State.FAILED, error_type="A") for _ in range(2))
    sql = "UPDATE turno.jobs SET error_type = 'B' WHERE id = %s"
    between(monkeypatch, lambda: rows.execute(sql, kept.id))
    begun = bulk.start("delete", filter=JobFilter(error_type="A"))
    crews.work(store.take(new_id()))
    assert counts(bulk.get(begun.id)) == (2, 1, {"state": 1})
    assert rows.state(kept.id) == State.FAILED
    assert not rows.select("SELECT FROM turno.jobs WHERE id = %s", gone.id)


def test_a_job_that_is_deleted_meanwhile_is_counted_as_gone(quiet, monkeypatch):
    made = make_job(State.FAILED)
    between(monkeypatch, lambda: rows.execute("DELETE FROM turno.jobs WHERE id = %s", made.id))
    begun = bulk.start("requeue", filter=JobFilter())
    crews.work(store.take(new_id()))
    assert counts(bulk.get(begun.id)) == (1, 0, {"not_found": 1})


def test_a_job_that_moves_between_two_states_while_they_are_looked_at_is_met(quiet, monkeypatch):
    made, queued = make_job(State.PROCESSING), make_job(State.ENQUEUED)
    real, looks = targets.walk, []

    def moves(part, **options):
        found = real(part, **options)
        looks.append(part.shown)
        if len(looks) == 1:  # the scheduled ones have been looked at, the running ones have not
            with rival() as other:
                other.execute(BACK_TO_SCHEDULED, [made.id])
                other.commit()
        return found

    monkeypatch.setattr(targets, "walk", moves)
    begun = bulk.start("cancel", filter=JobFilter(queue="default"))
    crews.work(store.take(new_id()))
    assert looks[:3] == ["Scheduled", "Enqueued", "Processing"]
    assert counts(bulk.get(begun.id)) == (2, 2, {})
    assert {rows.state(made.id), rows.state(queued.id)} == {State.CANCELLED}


def test_a_cancel_among_claiming_workers_leaves_nothing_out_and_counts_nothing_twice(clean_tables):
    make_jobs(600, State.ENQUEUED)
    taken, end = [], threading.Event()

    def works():
        while not end.is_set():
            free = [("default", slot) for slot in range(1, 5)]
            taken.extend(one.id for one in transitions.claim_next(free, types=["test.echo"], **claimant()))
        connections.close_all()

    workers = [threading.Thread(target=works) for _ in range(2)]
    for worker in workers:
        worker.start()
    run = bulk.wait(bulk.start("cancel", filter=JobFilter(queue="default")).id, 60)
    end.set()
    for worker in workers:
        worker.join()
    bulk.crew.join()
    cancelled, running = states(State.CANCELLED), states(State.PROCESSING)
    [asked] = rows.select("SELECT count(*) AS n FROM turno.jobs WHERE cancel_requested_at IS NOT NULL")
    assert (run.state, cancelled + running) == ("done", 600)
    assert (run.applied, run.requested, run.skipped) == (600, running, {})
    assert (asked["n"], len(set(taken))) == (600, running)


def test_two_runs_over_the_same_jobs_delete_each_once(clean_tables):
    make_jobs(700, State.FAILED)
    first, second = (bulk.start("delete", filter=JobFilter()) for _ in range(2))
    ended = [bulk.wait(run.id, 60) for run in (first, second)]
    bulk.crew.join()
    assert [run.state for run in ended] == ["done", "done"]
    assert sum(run.applied for run in ended) == 700
    assert states(State.FAILED) == 0


@pytest.mark.parametrize(
    "other", [{"filter": JobFilter(type="b")}, {"ids": [uuid4(), uuid4()]}, {"filter": JobFilter(queue="a")}]
)
def test_the_id_of_one_act_does_not_stand_for_another_filter(quiet, other):
    begun = bulk.start("cancel", filter=JobFilter(type="a"), id=new_id())
    assert bulk.start("cancel", filter=JobFilter(type="a"), id=begun.id).id == begun.id
    with pytest.raises(Conflict):
        bulk.start("cancel", id=begun.id, **other)
