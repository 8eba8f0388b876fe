"""Instants that nobody was there to fire, and instants that come while an earlier job is not final yet."""

from datetime import UTC, datetime, timedelta

import pytest

from jobs import schedules, transitions
from jobs.conf import overridden
from jobs.states import State
from tests.jobs.enqueue_types import registered
from tests.transitions.recurring import EVERY_MINUTE, fire_all, instants, jobs_of, make_recurring, minutes, recurring
from tests.transitions.rows import Sql, execute, make_job
from turno.testing import frozen_time

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
QUARTERS = "*/15 * * * * *"


@pytest.fixture(autouse=True)
def types():
    with registered():
        yield


def after(seconds, misfire, **columns):
    """One due at noon that is looked at so many seconds later."""
    id_ = make_recurring(next_run_at=NOON, misfire=misfire, **{"overlap": "allow", "cron": EVERY_MINUTE} | columns)
    with frozen_time(NOON + timedelta(seconds=seconds)):
        fire_all()
    return id_


def told(id_):
    row = recurring(id_)
    return len(jobs_of(id_)), row["skipped"], row["last_skipped_why"]


@pytest.mark.parametrize(
    ("misfire", "fired", "skipped"),
    [("once", [60], 4), ("skip", [], 5), ("all", [0, 15, 30, 45, 60], 0)],
)
def test_after_an_outage_of_a_minute_each_policy_runs_what_it_says(misfire, fired, skipped):
    id_ = after(68, misfire, cron=QUARTERS)
    assert instants(id_) == [NOON + timedelta(seconds=at) for at in fired]
    assert told(id_) == (len(fired), skipped, "misfire" if skipped else None)
    assert recurring(id_)["next_run_at"] == NOON + timedelta(seconds=75)


@pytest.mark.parametrize("misfire", ["once", "skip", "all"])
def test_one_that_is_a_little_late_and_alone_is_on_time(misfire):
    assert told(after(59, misfire, cron="0 * * * *")) == (1, 0, None)


@pytest.mark.parametrize(("misfire", "fired"), [("once", 1), ("skip", 0), ("all", 1)])
def test_one_that_is_later_than_the_grace_was_missed(misfire, fired):
    assert told(after(61, misfire, cron="0 * * * *"))[:2] == (fired, 1 - fired)


def test_the_grace_is_a_setting():
    with overridden(scheduler={"misfire_grace": 600}):
        assert told(after(599, "skip", cron="0 * * * *"))[0] == 1
        assert told(after(601, "skip", cron="0 * * * *"))[0] == 0


def test_a_grace_shorter_than_a_batch_takes_still_fires(monkeypatch):
    id_, read = make_recurring(), transitions.due
    monkeypatch.setattr(
        transitions, "due", lambda **how: [due._replace(now=due.now - timedelta(seconds=1)) for due in read(**how)]
    )
    with overridden(scheduler={"misfire_grace": 0.1}):
        assert schedules.fire_due() == 1
    assert len(jobs_of(id_)) == 1


@pytest.mark.parametrize("misfire", ["once", "skip", "all"])
def test_who_fires_each_second_loses_none_to_a_pause_of_the_loop(misfire):
    assert told(after(2, misfire, cron="* * * * * *")) == (3, 0, None)


@pytest.mark.parametrize("misfire", ["once", "skip"])
def test_without_overlap_a_pause_of_the_loop_makes_one_job_of_the_latest(misfire):
    id_ = after(2, misfire, cron="* * * * * *", overlap="skip")
    assert instants(id_) == [NOON + timedelta(seconds=2)]
    assert (recurring(id_)["skipped"], jobs_of(id_)[0]["concurrency_key"]) == (2, None)


def test_all_is_bounded_to_the_last_hundred_and_the_rest_is_counted():
    id_ = after(3 * 86_400, "all")
    last = NOON + timedelta(days=3)
    assert instants(id_) == minutes(last - timedelta(minutes=99), 100)
    assert told(id_) == (100, 3 * 1440 + 1 - 100, "misfire")


@pytest.mark.parametrize(("misfire", "jobs"), [("once", 3), ("skip", 3), ("all", 100)])
def test_a_year_of_seconds_costs_nothing_and_is_counted(misfire, jobs):
    id_ = after(365 * 86_400, misfire, cron="* * * * * *")
    assert told(id_) == (jobs, 365 * 86_400 + 1 - jobs, "misfire")


def test_the_count_of_what_was_left_out_stops_where_its_column_does():
    id_ = make_recurring(cron=EVERY_MINUTE, next_run_at=NOON, misfire="skip", skipped=2**31 - 2)
    with frozen_time(NOON + timedelta(hours=1, seconds=30)):
        schedules.fire_due()
    assert recurring(id_)["skipped"] == 2**31 - 1


@pytest.mark.parametrize("state", [State.ENQUEUED, State.PROCESSING, State.SCHEDULED])
def test_skip_leaves_an_instant_out_while_a_job_of_it_is_not_final(state):
    id_ = make_recurring(cron=EVERY_MINUTE, next_run_at=NOON)
    make_job(state, recurring_job_id=id_, fired_for=NOON - timedelta(minutes=1))
    with frozen_time(NOON):
        assert schedules.fire_due() == 1
    row = recurring(id_)
    assert len(jobs_of(id_)) == 1
    assert (row["skipped"], row["last_skipped_why"], row["last_skipped_at"]) == (1, "overlap", NOON)
    assert (row["last_run_at"], row["next_run_at"]) == (None, NOON + timedelta(minutes=1))


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED, State.CANCELLED])
def test_skip_fires_when_the_earlier_job_has_ended(state):
    id_ = make_recurring(cron=EVERY_MINUTE, next_run_at=NOON)
    make_job(state, recurring_job_id=id_, fired_for=NOON - timedelta(minutes=1))
    with frozen_time(NOON):
        schedules.fire_due()
    assert len(jobs_of(id_)) == 2
    assert recurring(id_)["skipped"] == 0


def test_a_job_of_another_one_is_no_overlap():
    id_ = make_recurring(cron=EVERY_MINUTE, next_run_at=NOON)
    make_job(State.PROCESSING, recurring_job_id=make_recurring(enabled=False), fired_for=NOON)
    make_job(State.PROCESSING)
    with frozen_time(NOON):
        schedules.fire_due()
    assert len(jobs_of(id_)) == 1


def test_allow_fires_whatever_runs():
    id_ = make_recurring(cron=EVERY_MINUTE, next_run_at=NOON, overlap="allow")
    make_job(State.PROCESSING, recurring_job_id=id_, fired_for=NOON - timedelta(minutes=1))
    with frozen_time(NOON):
        schedules.fire_due()
    [_, job] = jobs_of(id_)
    assert (job["state"], job["concurrency_key"], recurring(id_)["skipped"]) == ("Enqueued", None, 0)


def test_queue_fires_and_its_jobs_run_one_after_the_other():
    id_ = make_recurring(cron=EVERY_MINUTE, next_run_at=NOON, overlap="queue", misfire="all")
    with frozen_time(NOON + timedelta(minutes=2)):
        schedules.fire_due()
    found = jobs_of(id_)
    assert {(job["concurrency_key"], job["concurrency_limit"]) for job in found} == {(f"recurring:{id_}", 1)}
    assert [job["state"] for job in found] == ["Enqueued", "Scheduled", "Scheduled"]
    assert [job["waiting_for"] for job in found] == [None, "concurrency_key", "concurrency_key"]


def test_what_somebody_triggers_waits_for_its_turn_too():
    id_ = make_recurring(cron=EVERY_MINUTE, next_run_at=NOON, overlap="queue")
    with frozen_time(NOON):
        schedules.fire_due()
    schedules.trigger(id_, actor="ana")
    found = jobs_of(id_)
    assert len(found) == 2
    assert {(job["concurrency_key"], job["concurrency_limit"]) for job in found} == {(f"recurring:{id_}", 1)}


def test_all_that_was_missed_without_overlap_runs_one_after_the_other():
    id_ = make_recurring(cron=EVERY_MINUTE, next_run_at=NOON, overlap="skip", misfire="all")
    with frozen_time(NOON + timedelta(minutes=2)):
        schedules.fire_due()
    assert [job["state"] for job in jobs_of(id_)] == ["Enqueued", "Scheduled", "Scheduled"]
    with frozen_time(NOON + timedelta(minutes=3)):
        schedules.fire_due()
    assert (len(jobs_of(id_)), recurring(id_)["skipped"], recurring(id_)["last_skipped_why"]) == (3, 1, "overlap")


def test_a_slow_one_is_never_twice_in_its_queue_and_what_it_lost_is_counted():
    id_ = make_recurring(cron="*/2 * * * * *", next_run_at=NOON)
    with frozen_time(NOON) as clock:
        for second in range(0, 60, 2):
            schedules.fire_due()
            execute(
                "UPDATE turno.jobs SET state = 'Succeeded', finished_at = now() "
                "WHERE fired_for <= now() - interval '7 seconds' AND state = 'Enqueued'"
            )
            active = [job for job in jobs_of(id_) if job["state"] == "Enqueued"]
            assert len(active) <= 1, second
            clock.advance(2)
    assert len(jobs_of(id_)) + recurring(id_)["skipped"] == 30
    assert recurring(id_)["last_skipped_why"] == "overlap"


def test_a_row_with_a_policy_that_does_not_exist_is_an_error():
    execute("ALTER TABLE turno.recurring_jobs DROP CONSTRAINT recurring_overlap_known")  # rolled back with the test
    id_ = make_recurring(overlap="maybe", next_run_at=Sql("now()"))
    schedules.fire_due()
    assert recurring(id_)["error"] == "ValueError: overlap: maybe"
