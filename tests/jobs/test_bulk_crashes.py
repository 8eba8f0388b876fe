"""Acts over many: batches that a crash never counts twice, takeover, stop, locks, several processes."""

import pytest
from django.db import connections

from jobs import bulk, upkeep
from jobs.bulk import steps, store
from jobs.bulk import threads as crews
from jobs.ids import new_id
from jobs.queries import JobFilter
from jobs.states import State
from tests.jobs.bulkrows import counts, grow_old, make_job, make_jobs, states
from tests.transitions import rows


def test_a_process_that_dies_between_batches_leaves_the_rest_to_the_next(quiet):
    make_jobs(50, State.FAILED)
    begun = bulk.start("requeue", filter=JobFilter())
    steps.step(store.take(new_id()), 20)
    assert store.take(new_id()) is None, "its holder is alive"
    grow_old()
    taken = store.take(new_id())
    assert (taken.id, taken.done) == (begun.id, 20)
    crews.work(taken)
    assert counts(bulk.get(begun.id)) == (50, 50, {})
    [row] = rows.select("SELECT count(*) AS n FROM turno.job_state_changes")
    assert row["n"] == 50


def test_a_process_that_dies_within_a_batch_leaves_neither_the_act_nor_its_count(quiet, monkeypatch):
    make_jobs(30, State.FAILED)
    begun = bulk.start("requeue", filter=JobFilter())
    first = steps.step(store.take(new_id()), 10).run

    class Killed(BaseException):
        pass

    def killed(*_args):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(store, "save", killed)
        with pytest.raises(Killed):
            steps.step(first, 10)
    assert (states(State.ENQUEUED), bulk.get(begun.id).done) == (10, 10)
    grow_old()
    crews.work(store.take(new_id()))
    assert counts(bulk.get(begun.id)) == (30, 30, {})


def test_a_holder_that_was_thought_dead_and_comes_back_writes_nothing_more(quiet):
    make_jobs(30, State.FAILED)
    begun = bulk.start("requeue", filter=JobFilter())
    late = steps.step(store.take(new_id()), 10).run
    grow_old()
    taken = store.take(new_id())
    with pytest.raises(steps.Lost):
        steps.step(late, 10)
    assert states(State.ENQUEUED) == 10
    crews.work(late)
    assert bulk.get(begun.id).state == "running"
    crews.work(taken)
    assert counts(bulk.get(begun.id)) == (30, 30, {})


def test_an_answer_lost_at_the_commit_counts_nothing_twice(quiet, monkeypatch):
    from django.db import OperationalError

    make_jobs(30, State.FAILED)
    begun = bulk.start("requeue", filter=JobFilter())
    real, broken = steps.step, []

    def once(run, size):
        done = real(run, 10)
        if not broken:
            broken.append(done)
            raise OperationalError("the connection is lost")
        return done

    monkeypatch.setattr(crews, "step", once)
    monkeypatch.setattr(crews, "PAUSES", (0.0,))
    crews.work(store.take(new_id()))
    run = bulk.get(begun.id)
    assert (run.state, counts(run)) == ("done", (30, 30, {}))


def test_a_stop_takes_effect_after_the_batch(quiet, monkeypatch):
    make_jobs(30, State.FAILED)
    begun = bulk.start("requeue", filter=JobFilter())
    real = steps.step

    def stopped_meanwhile(run, _size):
        bulk.stop(run.id)
        return real(run, 10)

    monkeypatch.setattr(crews, "step", stopped_meanwhile)
    crews.work(store.take(new_id()))
    run = bulk.get(begun.id)
    assert (run.state, run.ended, run.done) == ("stopped", True, 10)
    assert states(State.FAILED) == 20


def test_a_run_that_nobody_has_begun_or_whose_process_died_is_stopped_at_once(quiet):
    make_jobs(3, State.FAILED)
    first, second = (bulk.start("requeue", filter=JobFilter()) for _ in range(2))
    assert bulk.stop(first.id).state == "stopped"
    assert store.take(new_id()).id == second.id
    grow_old()
    assert bulk.stop(second.id).state == "stopped"
    assert states(State.FAILED) == 3


def test_a_stop_of_a_run_that_has_ended_changes_nothing(crew):
    make_jobs(3, State.FAILED)
    run = bulk.wait(bulk.start("requeue", filter=JobFilter()).id, 20)
    assert bulk.stop(run.id) == run


def test_a_job_that_somebody_holds_is_left_out_and_the_others_go_on(quiet, monkeypatch):
    from tests.races.two import lock, rival

    monkeypatch.setattr(steps, "LOCK_WAIT", 0.05)
    make_jobs(20, State.FAILED)
    held = make_job(State.FAILED)
    begun = bulk.start("requeue", filter=JobFilter())
    with rival() as other:
        lock(other, held.id)
        crews.work(store.take(new_id()))
    assert counts(bulk.get(begun.id)) == (21, 20, {"busy": 1})
    assert rows.state(held.id) == State.FAILED


def test_a_filter_that_another_version_wrote_is_not_half_understood(quiet):
    make_jobs(3, State.FAILED)
    begun = bulk.start("delete", filter=JobFilter(type="none"))
    rows.execute('UPDATE turno.bulk_runs SET filter = \'{"colour": "red"}\'')
    crews.work(store.take(new_id()))
    run = bulk.get(begun.id)
    assert (run.state, run.done) == ("failed", 0)
    assert "colour" in run.error
    assert states(State.FAILED) == 3


def test_two_processes_share_the_runs_and_do_each_once(clean_tables):
    make_jobs(1500, State.FAILED)
    first, second = crews.Crew(2), crews.Crew(2)
    values = [{"type": "test.echo"}, {"queue": "default"}, {}]
    runs = [bulk.start("requeue", filter=JobFilter(**value)) for value in values]
    for crew in (first, second, first, second):
        crew.wake()
    for crew in (first, second, bulk.crew):
        crew.join()
    ended = [bulk.get(run.id) for run in runs]
    assert {run.state for run in ended} == {"done"}
    assert sum(run.applied for run in ended) == 1500
    [row] = rows.select("SELECT count(*) AS n, count(DISTINCT job_id) AS jobs FROM turno.job_state_changes")
    assert row == {"n": 1500, "jobs": 1500}


def test_more_runs_than_threads_wait_and_are_done_in_turn(crew):
    made = [make_job(State.FAILED) for _ in range(8)]
    runs = [bulk.start("delete", ids=[job.id]) for job in made]
    assert [bulk.wait(run.id, 60).state for run in runs] == ["done"] * 8
    assert len(crew._threads) <= crews.THREADS


def test_whoever_looks_takes_over_a_run_that_nobody_works_on(crew):
    make_jobs(3, State.FAILED)
    with connections["default"].cursor() as cursor:
        values = {"id": new_id(), "act": "requeue", "target": "jobs", "ids": None, "filter": "{}", "before": None}
        cursor.execute(store.INSERT, values | {"actor": None, "reason": None, "total": None, "estimated": False})
    [run] = bulk.active()
    assert run.waiting
    assert bulk.wait(run.id, 60).state == "done"
    assert bulk.active() == []


def test_runs_that_ended_long_ago_are_forgotten_and_others_kept(quiet):
    old, fresh, left, alive = (bulk.start("requeue", filter=JobFilter()).id for _ in range(4))
    past = "now() - interval '8 days'"
    rows.execute(f"UPDATE turno.bulk_runs SET created_at = {past}")
    ended = "UPDATE turno.bulk_runs SET state = 'done', finished_at = {} WHERE id = %s"
    rows.execute(ended.format(past), old)
    rows.execute(ended.format("now()"), fresh)
    rows.execute("UPDATE turno.bulk_runs SET beat_at = now() WHERE id = %s", alive)
    assert upkeep.forget_bulk(limit=1) + upkeep.forget_bulk(limit=9) == 2
    kept = {row["id"] for row in rows.select("SELECT id FROM turno.bulk_runs")}
    assert kept == {fresh, alive}
    assert left not in kept
