"""Acts over many: what is acted on and what is not, the cut-off, the question before, and what is refused."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from jobs import bulk, transitions
from jobs.bulk import previews, steps, store
from jobs.bulk import threads as crews
from jobs.errors import Conflict, Invalid, NotFound
from jobs.ids import new_id
from jobs.queries import JobFilter
from jobs.queries.bounded import TooSlow
from jobs.queries.letterfilter import LetterFilter
from jobs.states import State
from tests.jobs.bulkrows import EARLIEST, counts, make_dead, make_job, make_jobs, states
from tests.transitions import rows
from tests.transitions.rows import Sql, ago, make_letter


def test_everything_that_matches_is_acted_on_and_nothing_else(crew):
    make_jobs(5000, State.FAILED, type="a.b")
    make_jobs(7, State.SUCCEEDED, type="a.b")
    make_jobs(3, State.FAILED, type="other")
    run = bulk.wait(bulk.start("requeue", filter=JobFilter(type="a.b"), actor="ana").id, 60)
    assert (run.state, counts(run)) == ("done", (5000, 5000, {}))
    assert (run.total, run.estimated, run.actor) == (5000, False, "ana")
    assert (states(State.ENQUEUED), states(State.SUCCEEDED), states(State.FAILED)) == (5000, 7, 3)
    [row] = rows.select("SELECT count(*) AS n, count(DISTINCT job_id) AS jobs FROM turno.job_state_changes")
    assert row == {"n": 5000, "jobs": 5000}


def test_the_named_are_acted_on_each_once_and_what_does_not_apply_is_counted_by_its_reason(crew):
    failed, done = make_job(State.FAILED), make_job(State.SUCCEEDED)
    keyed = make_job(State.FAILED, unique_key="k")
    make_job(State.ENQUEUED, unique_key="k")
    ids = [failed.id, failed.id, done.id, uuid4(), keyed.id]
    run = bulk.wait(bulk.start("requeue", ids=ids).id, 20)
    assert (run.total, run.done, run.applied) == (4, 4, 1)
    assert run.skipped == {"state": 1, "not_found": 1, "unique_key": 1}


def test_a_running_job_is_asked_to_stop_and_counted_so(crew):
    running, waiting = make_job(State.PROCESSING), make_job(State.ENQUEUED)
    run = bulk.wait(bulk.start("cancel", filter=JobFilter(), actor="ana", reason="wrong\x00 month").id, 20)
    assert (run.applied, run.requested) == (2, 1)
    assert rows.job(running.id)["cancel_reason"] == rows.job(waiting.id)["cancel_reason"] == "wrong month"


@pytest.mark.parametrize(("act", "how"), [("requeue", "requeued"), ("discard", "discarded")])
def test_dead_letters_of_one_cause_are_resolved_and_others_left(crew, act, how):
    _made, letters = make_dead(3)
    other = make_job(State.FAILED)
    make_letter(other, fingerprint="g")
    run = bulk.wait(bulk.start(act, "letters", filter=LetterFilter(fingerprint="f"), actor="ana").id, 20)
    assert counts(run) == (3, 3, {})
    found = rows.select("SELECT id, resolved_by FROM turno.dead_letters WHERE resolved_how = %s ORDER BY id", how)
    assert [row["id"] for row in found] == sorted(letters)
    assert {row["resolved_by"] for row in found} == {"ana"}
    assert rows.letters(other.id)[0]["resolved_at"] is None


def test_a_search_of_letters_compares_text_and_is_no_pattern(crew):
    make_dead(2)
    run = bulk.wait(bulk.start("discard", "letters", filter=LetterFilter(search="t%t_.")).id, 20)
    assert run.done == 0


def test_what_came_or_ended_after_the_cut_off_is_left(quiet):
    old, late, ended = (make_job(State.FAILED, created_at=ago(60), finished_at=ago(60)) for _ in range(3))
    run = bulk.start("requeue", filter=JobFilter())
    rows.execute("UPDATE turno.jobs SET created_at = now() + interval '1 s' WHERE id = %s", late.id)
    rows.execute("UPDATE turno.jobs SET finished_at = now() + interval '1 s' WHERE id = %s", ended.id)
    crews.work(store.take(new_id()))
    assert counts(bulk.get(run.id)) == (1, 1, {})
    assert [rows.state(made.id) for made in (old, late, ended)] == ["Enqueued", "Failed", "Failed"]


def test_a_job_that_the_run_requeued_and_that_fails_again_is_not_requeued_twice(quiet):
    made = sorted((make_job(State.FAILED) for _ in range(4)), key=lambda job: job.id)
    bulk.start("requeue", filter=JobFilter())
    first = steps.step(store.take(new_id()), 2).run
    rows.execute(
        "UPDATE turno.jobs SET state = 'Failed', finished_at = now(), failure_kind = 'error' WHERE id = %s", made[0].id
    )
    crews.work(first)
    assert len(rows.history(made[0].id)) == 1
    assert states(State.ENQUEUED) == 3


def test_a_repeated_start_with_the_preview_s_id_is_the_first_one(crew):
    make_jobs(3, State.FAILED)
    seen = bulk.preview("requeue", filter=JobFilter())
    first, second = (bulk.start("requeue", filter=JobFilter(), before=seen.before, id=seen.id) for _ in range(2))
    assert first.id == second.id == seen.id
    with pytest.raises(Conflict):
        bulk.start("delete", filter=JobFilter(), id=seen.id)


def test_a_preview_counts_what_the_act_applies_to_by_state_with_samples(quiet):
    make_jobs(4, State.FAILED)
    make_jobs(3, State.CANCELLED)
    make_jobs(9, State.SUCCEEDED)
    make_job(State.SCHEDULED, waiting_for="pause", run_at=None)
    seen = bulk.preview("requeue", filter=JobFilter())
    assert (seen.count, seen.estimated) == (7, False)
    assert seen.by_state == {State.FAILED: 4, State.CANCELLED: 3}
    assert len(seen.samples) == 5
    assert {sample.state for sample in seen.samples} <= {"Failed", "Cancelled"}
    parked = bulk.preview("cancel", filter=JobFilter())
    assert parked.by_state == {State.ENQUEUED: 1}
    assert bulk.preview("run_now", filter=JobFilter()).count == 0


def test_a_preview_of_the_named_counts_only_those_that_it_applies_to(quiet):
    failed, done = make_job(State.FAILED), make_job(State.SUCCEEDED)
    seen = bulk.preview("requeue", ids=[failed.id, done.id, uuid4()])
    assert (seen.count, seen.by_state) == (1, {State.FAILED: 1})


def test_a_preview_of_letters_counts_the_pending_ones(quiet):
    made, letters = make_dead(3)
    transitions.discard(letters[:1])
    seen = bulk.preview("discard", "letters", filter=LetterFilter())
    assert (seen.count, seen.by_state) == (2, {State.FAILED: 2})
    assert {sample.id for sample in seen.samples} == {job.id for job in made[1:]}


def test_what_can_t_be_counted_in_time_is_not_counted_and_done_all_the_same(quiet, monkeypatch):
    def slow(*_args, **_params):
        raise TooSlow

    make_dead(2)
    with monkeypatch.context() as patch:
        patch.setattr(previews, "_rows", slow)
        seen = bulk.preview("discard", "letters", filter=LetterFilter())
        begun = bulk.start("discard", "letters", filter=LetterFilter())
    assert (seen.count, seen.samples, begun.total) == (None, [], None)
    crews.work(store.take(new_id()))
    assert counts(bulk.get(begun.id)) == (2, 2, {})


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: bulk.start("explode", ids=[uuid4()]), "act"),
        (lambda: bulk.start("discard", ids=[uuid4()]), "act"),
        (lambda: bulk.start("cancel", "letters", ids=[uuid4()]), "act"),
        (lambda: bulk.start("cancel", "worlds", ids=[uuid4()]), "target"),
        (lambda: bulk.start("cancel"), "ids"),
        (lambda: bulk.start("cancel", ids=[]), "ids"),
        (lambda: bulk.start("cancel", ids=[uuid4()], filter=JobFilter()), "ids"),
        (lambda: bulk.start("cancel", ids=[UUID(int=n) for n in range(bulk.IDS_MOST + 1)]), "ids"),
        (lambda: bulk.start("cancel", ids=[uuid4()], id=uuid4()), "id"),
        (lambda: bulk.preview("cancel"), "ids"),
        (lambda: bulk.start("cancel", ids=[uuid4()], before=datetime(2026, 1, 1)), "before"),  # noqa: DTZ001
        (lambda: bulk.start("cancel", ids=[uuid4()], before=EARLIEST), "before"),
    ],
)
def test_what_can_t_be_done_is_refused_with_the_field(call, field):
    with pytest.raises(Invalid) as refused:
        call()
    assert list(refused.value.errors) == [field]


@pytest.mark.django_db
@pytest.mark.parametrize("call", [bulk.get, bulk.stop, lambda id_: bulk.wait(id_, 1)])
def test_a_run_that_is_not_there_is_not_found(call):
    with pytest.raises(NotFound):
        call(uuid4())


def test_instants_of_a_filter_survive_the_database(quiet):
    old = {"created_at": Sql("'2020-01-02T03:04:05Z'"), "id": UUID("016f6435-cc88-7000-8000-000000000000")}
    make_job(State.FAILED, finished_at=ago(9), **old)
    make_job(State.FAILED)
    moment = datetime.fromisoformat("2020-01-02T03:04:05Z")
    wanted = JobFilter(created_from=moment, created_to=moment + timedelta(seconds=1))
    begun = bulk.start("requeue", filter=wanted)
    crews.work(store.take(new_id()))
    assert counts(bulk.get(begun.id)) == (1, 1, {})
