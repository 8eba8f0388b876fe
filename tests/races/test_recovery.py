"""Recovery with very much to do: all of it leaves in a few sweeps, nobody starves, and live jobs start meanwhile."""

import pytest

from jobs import transitions
from jobs.states import State
from tests.races.two import Other, holding, lock, rival
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import claimant, lose
from tests.transitions.rows import Sql, ago, execute, make_job, make_jobs, select
from workers.connections import ENGINE
from workers.estate import wind_up
from workers.policies import retry_policy
from workers.routines import Recovery

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
BATCH = 200  # recovery.batch_size
# What the end of an execution can't be written with: psycopg or PostgreSQL refuses it, whoever tries.
REFUSED = {"worker_label": {"name": "w", "pid": "not a number"}}


def sweep(recovery, after_each=lambda: None):
    """One run of the routine: batches at once one after the other, while they are full."""
    sizes = []
    while True:
        sizes.append(recovery.recover())
        after_each()
        if sizes[-1] < BATCH:
            return sizes


def expired():
    [found] = select("SELECT count(*) AS n FROM turno.jobs WHERE state = 'Processing' AND lease_expires_at < now()")
    return found["n"]


def start_one(types):
    live = make_job(type="live.job")
    [claimed] = transitions.claim_next([("default", 1)], types=types, **claimant(), using=ENGINE)
    assert claimed.id == live.id


def test_six_thousand_expired_jobs_leave_within_one_sweep_in_bounded_batches_and_live_jobs_start_meanwhile():
    make_jobs(6000, State.PROCESSING, lease_expires_at=Sql("now() - n * interval '1 second' - interval '60 seconds'"))
    sizes = sweep(Recovery(), lambda: start_one(["live.job"]))
    assert (max(sizes), sum(sizes), expired()) == (BATCH, 6000, 0)
    assert rows.total("lost") == 6000


def test_a_batch_of_recovery_that_is_not_committed_yet_keeps_no_live_job_from_starting():
    make_jobs(BATCH, State.PROCESSING, lease_expires_at=ago(60))
    with holding():
        assert len(lose("default", limit=BATCH)) == BATCH
        Other(lambda: start_one(["live.job"])).answer()


def test_rows_that_recovery_can_not_touch_starve_no_others_however_many_and_old_they_are():
    make_jobs(BATCH + 50, State.PROCESSING, lease_expires_at=ago(9000), **REFUSED)
    held = [make_job(State.PROCESSING, lease_expires_at=ago(8000)) for _ in range(3)]
    make_jobs(BATCH + 50, State.PROCESSING, lease_expires_at=ago(60))
    recovery = Recovery()
    with rival() as slow:
        for made in held:
            lock(slow, made.id)
        sweep(recovery)
        assert rows.total("lost") == BATCH + 50
        assert expired() == BATCH + 50 + len(held)
    sweep(recovery)
    assert {rows.state(made.id) for made in held} == {State.ENQUEUED}
    assert expired() == BATCH + 50


def test_what_the_database_refused_is_tried_again_later(monkeypatch):
    monkeypatch.setattr("workers.routines.REFUSED", 0.0)
    made = make_job(State.PROCESSING, lease_expires_at=ago(60), **REFUSED)
    recovery = Recovery()
    assert [recovery.recover(), rows.state(made.id)] == [1, State.PROCESSING]
    execute("""UPDATE turno.jobs SET worker_label = '{"name": "w"}' WHERE id = %s""", made.id)
    assert [recovery.recover(), rows.state(made.id)] == [1, State.ENQUEUED]


def test_a_take_back_is_not_starved_by_what_the_database_refuses():
    dead = make_job(State.PROCESSING).worker
    worker = Sql(f"'{dead}'::uuid")
    low = {"id": Sql("('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid")}
    make_jobs(BATCH + 5, State.PROCESSING, worker_id=worker, **low, **REFUSED)
    make_jobs(BATCH + 5, State.PROCESSING, worker_id=worker)
    wound = wind_up(dead, policy_of=retry_policy, settled=False)
    assert (len(wound.jobs), wound.done) == (BATCH + 6, False)
    assert rows.total("lost") == BATCH + 6
