"""The demonstration: what it plants obeys the product's own reads and rules, and its life goes on by the verbs."""

from datetime import UTC, datetime
from random import Random

import pytest
from django.core.management import CommandError, call_command

from jobs.fingerprint import fingerprint
from jobs.models import DeadLetter, Job, JobAttempt, JobStateChange, MetricsMinute, Worker
from jobs.queries.board import board
from jobs.queries.figures import stats
from jobs.states import EDGES
from tests.transitions.rows import make_job
from workers.demo.fill import NotEmpty, fill, tell
from workers.demo.life import Life

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture
def planted():
    """A small demonstration."""
    return fill(seed=7, finished=150)


def test_the_figures_of_the_painel_are_those_of_the_rows(planted):
    now = stats()
    assert (now.processing, now.dead_letters, now.causes, now.parked) == (25, 37, 4, 1)
    assert now.enqueued == 44 + 84
    assert planted.workers == 6
    ended = now.last_24_hours
    succeeded = Job.objects.filter(state="Succeeded").count()
    assert ended.succeeded == succeeded
    assert ended.failed == DeadLetter.objects.count()
    assert Job.objects.filter(state="Failed").count() == DeadLetter.objects.exclude(resolved_how="requeued").count()


def test_the_board_has_a_silent_worker_with_two_lost_jobs_and_one_that_drains(planted):
    shown = board()
    assert [(w.name, w.state, w.busy) for w in shown.workers] == [
        ("worker-05", "Silent", 2),
        ("worker-04", "Draining", 2),
        ("worker-01", "Online", 7),
        ("worker-02", "Online", 6),
        ("worker-03", "Online", 5),
        ("worker-06", "Online", 3),
    ]
    assert shown.strays == []
    assert any(job.slow for worker in shown.workers for job in worker.running)
    assert all(job.returns_in for job in shown.workers[0].running)


def test_every_time_line_is_one_chain_of_legal_steps_that_ends_in_the_state_of_its_job(planted):
    states = dict(Job.objects.values_list("id", "state"))
    last, at = {}, {}
    for step in JobStateChange.objects.order_by("id"):
        assert step.from_state == last.get(step.job_id)
        assert (step.from_state, step.to_state) in EDGES
        assert step.at >= at.get(step.job_id, step.at)
        last[step.job_id], at[step.job_id] = step.to_state, step.at
    assert last == states


def test_executions_are_counted_as_they_were_written(planted):
    for job in Job.objects.prefetch_related("attempts"):
        ordinals = sorted(attempt.ordinal for attempt in job.attempts.all())
        assert ordinals == list(range(1, len(ordinals) + 1))
        assert job.executions == len(ordinals) + (job.state == "Processing")
    in_minutes = MetricsMinute.objects.values_list("succeeded", "failed", "retried", "cancelled")
    assert sum(map(sum, in_minutes)) == JobAttempt.objects.count()


def test_letters_carry_the_fingerprint_that_the_product_would_give(planted):
    for letter in DeadLetter.objects.filter(error_type="ValueError"):
        assert letter.fingerprint == fingerprint(letter.type, "ValueError", letter.error_message, "planilha:_indice")
        assert letter.stack.startswith("Traceback (most recent call last):\n")


def test_the_same_seed_tells_the_same_story():
    first, second, other = (list(tell(lambda: NOON, seed=seed, workers=6, finished=50)) for seed in (7, 7, 8))
    assert first == second
    assert [row["payload"] for row in first[0]["jobs"]] != [row["payload"] for row in other[0]["jobs"]]


def test_many_workers_are_of_three_sorts():
    _past, rows = tell(lambda: NOON, seed=7, workers=56, finished=0)
    assert len(rows["workers"]) == 56
    assert sum(sum(worker["queues"].values()) for worker in rows["workers"]) == 40 * 8 + 12 * 16 + 4 * 64


def test_a_database_that_is_not_empty_is_left_alone_with_exit_code_2():
    made = make_job()
    with pytest.raises(CommandError) as refused:
        call_command("turno", "demo")
    assert refused.value.returncode == 2
    assert list(Job.objects.values_list("id", flat=True)) == [made.id]
    assert not Worker.objects.exists()
    with pytest.raises(NotEmpty):
        fill(seed=7)


def test_its_life_goes_on_by_the_verbs():
    fill(seed=7, finished=20)
    before = Job.objects.filter(state="Succeeded").count()
    lost = set(Job.objects.filter(worker_label__name="worker-05").values_list("id", flat=True))
    life = Life(Random(7))
    for _ in range(12):
        life.beat()
        life.renew()
        life.move(60.0)
    assert Job.objects.filter(state="Succeeded").count() > before
    assert set(Job.objects.filter(worker_label__name="worker-05").values_list("id", flat=True)) == lost
    shown = board()
    assert shown.workers[0].state == "Silent"
    assert {worker.state for worker in shown.workers[2:]} == {"Online"}
    assert 0 < shown.busy <= shown.capacity
