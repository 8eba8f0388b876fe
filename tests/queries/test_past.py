"""What has ended: the chart's minutes, the usual durations, the figures of a worker, an hour and a day."""

import re
from itertools import pairwise
from uuid import uuid4

import pytest

from jobs.metrics import BUCKETS
from jobs.queries import durations, past, rhythm, stats, worker_figures
from jobs.queries.histogram import SUMS, percentile
from tests.queries.house import histogram, letter, minute, worker
from tests.transitions import rows

pytestmark = pytest.mark.django_db


def test_a_house_without_metrics_has_sixty_quiet_minutes():
    found = rhythm()
    assert len(found) == 60
    assert {(m.succeeded, m.failed, m.retried) for m in found} == {(0, 0, 0)}
    assert {(after.minute - before.minute).total_seconds() for before, after in pairwise(found)} == {60}


def test_each_minute_adds_up_its_workers_queues_and_types():
    minute(0, succeeded=3, failed=1)
    minute(0, succeeded=4, queue="other", worker_id=uuid4())
    minute(59, retried=2)
    minute(60, succeeded=1000)
    found = rhythm()
    assert (found[-1].succeeded, found[-1].failed, found[0].retried) == (7, 1, 2)
    assert sum(m.succeeded for m in found) == 7


@pytest.mark.parametrize(("asked", "given"), [(1, 1), (15, 15), (0, 1), (-5, 1), (10**9, 1440)])
def test_the_span_of_the_chart_has_its_bounds(asked, given):
    assert len(rhythm(asked)) == given


def test_more_than_an_integer_holds_can_end_in_a_minute():
    for _ in range(3):
        minute(1, succeeded=2**31 - 1, worker_id=uuid4())
    assert rhythm()[-2].succeeded == 3 * (2**31 - 1)
    assert past().last_hour.succeeded == 3 * (2**31 - 1)


def test_the_percentile_lies_within_its_bucket():
    counts = histogram(b0=50, b7=50)  # half below 10 ms, half from 1 to 2 s
    assert percentile(counts).seconds == pytest.approx(1 + 0.9)
    assert percentile(histogram(b3=20)).seconds == pytest.approx(0.05 + 0.05 * 0.95)
    assert percentile(histogram(b0=20)).seconds == pytest.approx(0.01 * 0.95)


def test_too_few_executions_have_no_percentile():
    assert percentile(histogram(b7=19)) is None
    assert percentile(histogram()) is None


def test_a_percentile_in_the_open_bucket_is_known_from_below_only():
    found = percentile(histogram(b0=10, b15=10))
    assert (found.seconds, found.beyond) == (BUCKETS[-1], True)


def test_usual_durations_are_by_type_over_a_day():
    minute(5, type="fast", durations=histogram(b0=15))
    minute(60 * 20, type="fast", durations=histogram(b0=15))
    minute(5, type="slow", durations=histogram(b12=100))
    minute(5, type="rare", durations=histogram(b5=3))
    minute(5, type="endless", durations=histogram(b15=100))
    minute(60 * 30, type="yesterday", durations=histogram(b5=100))
    found = durations()
    assert found == {"fast": pytest.approx(0.0095), "slow": pytest.approx(60 + 240 * 0.95)}


def test_a_histogram_of_another_length_spoils_nothing():
    minute(5, type="short", durations=[10, 20])
    assert durations()["short"] < BUCKETS[1]


def test_the_day_has_a_percentile_and_an_empty_one_has_none():
    assert (past().p95_duration, past().p95_beyond) == (None, False)
    minute(5, succeeded=100, durations=histogram(b8=100))
    assert past().p95_duration == pytest.approx(2 + 3 * 0.95)
    minute(6, succeeded=1000, durations=histogram(b15=1000))
    assert (past().p95_duration, past().p95_beyond) == (1800, True)


def test_a_lost_execution_counts_once_in_the_mean():
    minute(5, succeeded=1, retried=1, lost=1, duration_sum=10)
    assert past().last_hour.mean_duration == 5


def test_the_figures_of_now_take_those_of_the_past_from_who_has_them(django_assert_num_queries):
    minute(5, succeeded=7)
    known = past()
    with django_assert_num_queries(3):
        found = stats(known)
    assert found.last_hour.succeeded == 7


def test_figures_say_how_long_and_how_soon():
    empty = stats()
    assert (empty.oldest_for, empty.next_in, empty.causes) == (None, None, 0)
    rows.make_job(enqueued_at=rows.ago(712))
    rows.make_job("Scheduled", run_at=rows.ahead(60))
    rows.make_job("Scheduled", waiting_for="rate", gate="x")
    found = stats()
    assert 712 <= found.oldest_for < 730
    assert 40 < found.next_in <= 60
    assert (found.waiting, found.timed) == (2, 1)
    rows.make_job("Scheduled", run_at=rows.ago(5))
    assert stats().next_in == 0


def test_causes_of_pending_letters_are_counted_to_a_bound(monkeypatch):
    for cause in ("a", "b", "c", ""):
        letter(cause)
        letter(cause)
    letter("d", resolved_how="discarded")
    assert (stats().causes, stats().dead_letters) == (4, 8)
    monkeypatch.setattr("jobs.queries.figures.CAUSES_COUNTED", 2)
    found = stats()
    assert found.causes >= 2
    assert found.estimated == ["causes"]


def test_a_worker_has_its_own_last_hour():
    first, second = worker("a"), worker("b")
    minute(1, worker_id=first, succeeded=5, failed=1)
    minute(59, worker_id=first, succeeded=2, retried=1, type="x")
    minute(1, worker_id=second, cancelled=4, lost=1)
    minute(90, worker_id=second, succeeded=100)
    minute(1, succeeded=50)
    found = worker_figures()
    assert found.keys() == {first, second}
    assert (found[first].done, found[first].failed, found[first].retried) == (7, 1, 1)
    assert (found[second].done, found[second].cancelled, found[second].lost) == (0, 4, 1)


def test_the_sums_of_the_histogram_name_every_bucket():
    assert len(re.findall(r"durations\[\d+\]", SUMS)) == len(BUCKETS) + 1
