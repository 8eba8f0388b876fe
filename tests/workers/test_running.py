"""A real worker process runs jobs: results, retries, limits, snoozes, progress, logs, schedules."""

from datetime import timedelta

import pytest

import tests.kit.handlers  # noqa: F401  (registers the probe types in this process too)
from jobs.enqueue import JobRequest, enqueue, enqueue_many
from jobs.models import DeadLetter, JobLog, MetricsMinute, Worker
from tests.kit.look import attempts, job, started, steps, wait_state
from tests.kit.processes import eventually

pytestmark = pytest.mark.crash


def test_a_job_of_each_isolation_runs_once_and_keeps_result_history_and_metrics(fleet):
    fleet.start().wait_ready()
    for type_ in ("probe.async", "probe.thread"):
        id_ = enqueue(type_, {"key": type_, "result": [1, {"ü": None}]}).id
        done = wait_state(id_, "Succeeded")
        assert done.result == {"key": type_, "result": [1, {"ü": None}]}
        assert done.progress == 100
        assert len(fleet.starts(type_)) == 1
        assert attempts(id_) == [(1, "Succeeded", True)]
        assert steps(id_) == [
            (None, "Enqueued", "created"),
            ("Enqueued", "Processing", "claimed"),
            ("Processing", "Succeeded", "succeeded"),
        ]
        attempt = done.attempts.get()
        assert (attempt.worker_name, attempt.attempt, attempt.tries) == ("a", 1, 1)
    assert sum(m.succeeded for m in MetricsMinute.objects.all()) == 2


def test_a_failing_job_is_retried_with_backoff_until_its_attempts_are_used_up(fleet):
    fleet.start().wait_ready()
    id_ = enqueue("probe.async", {"key": "k", "fail": "error"}, max_attempts=3).id
    dead = wait_state(id_, "Failed")
    assert attempts(id_) == [(1, "Failed", True), (2, "Failed", True), (3, "Failed", True)]
    assert (dead.attempts_used, dead.failure_kind, dead.error_type) == (3, "error", "ValueError")
    assert [s[2] for s in steps(id_)][-1] == "attempts_used_up"
    assert len(fleet.starts("k")) == 3
    letter = DeadLetter.objects.get(job_id=id_)
    assert letter.resolved_at is None
    assert "a bad value" in (letter.stack or "")
    assert len(letter.fingerprint) == 32


def test_a_permanent_error_and_an_invalid_payload_are_not_retried(fleet):
    fleet.start().wait_ready()
    id_ = enqueue("probe.thread", {"key": "p", "fail": "permanent"}).id
    assert wait_state(id_, "Failed").failure_kind == "permanent"
    assert len(fleet.starts("p")) == 1


def test_a_transient_error_is_tried_again_at_once_within_the_attempt(fleet):
    fleet.start(TURNO_RESILIENCE__IMMEDIATE_RETRY_DELAY="20ms").wait_ready()
    for type_ in ("probe.async", "probe.thread"):
        id_ = enqueue(type_, {"key": f"t-{type_}", "fail": "transient"}, max_attempts=1).id
        wait_state(id_, "Failed")
        assert len(fleet.starts(f"t-{type_}")) == 3
        assert [a.tries for a in job(id_).attempts.all()] == [3]
        assert attempts(id_) == [(1, "Failed", True)]


def test_whatever_a_handler_raises_ends_its_job_and_never_the_worker(fleet):
    worker = fleet.start().wait_ready()
    odd = ("exit", "interrupt", "base", "generator_exit", "cancelled_error", "memory")
    made = {
        (type_, fail): enqueue(type_, {"key": f"{type_}-{fail}", "fail": fail}, max_attempts=1).id
        for type_ in ("probe.async", "probe.thread")
        for fail in odd
    }
    for (type_, fail), id_ in made.items():
        dead = wait_state(id_, "Failed")
        assert dead.error_type, (type_, fail)
        assert len(fleet.starts(f"{type_}-{fail}")) == 1
    assert wait_state(enqueue("probe.async", {"key": "after"}).id, "Succeeded")
    assert worker.process.poll() is None


def test_an_attempt_that_runs_longer_than_its_limit_ends_timed_out_and_names_the_limit(fleet):
    fleet.start().wait_ready()
    by_type = enqueue("probe.timeout", {"key": "by-type", "hold": 30}).id
    by_request = enqueue("probe.thread", {"key": "by-request", "hold": 30}, timeout=0.2, max_attempts=1).id
    above = enqueue("probe.timeout", {"key": "above", "hold": 0.6}, timeout=20).id
    for id_, limit in ((by_type, "0.3 s"), (by_request, "0.2 s")):
        dead = wait_state(id_, "Failed")
        assert dead.failure_kind == "timeout"
        assert limit in dead.error_message
        assert attempts(id_) == [(1, "TimedOut", True)]
    wait_state(above, "Succeeded")


def test_a_coroutine_that_notices_its_limit_by_itself_ends_timed_out_too(fleet):
    fleet.start().wait_ready()
    id_ = enqueue("probe.async", {"key": "noticed", "hold": 60}, timeout=0.3, max_attempts=1).id
    assert wait_state(id_, "Failed").failure_kind == "timeout"
    assert attempts(id_) == [(1, "TimedOut", True)]


def test_a_coroutine_that_blocks_its_loop_past_its_limit_is_no_success(fleet):
    fleet.start().wait_ready()
    id_ = enqueue("probe.async", {"key": "blocking", "spin": 1}, timeout=0.3, max_attempts=1).id
    assert wait_state(id_, "Failed").failure_kind == "timeout"
    assert attempts(id_) == [(1, "TimedOut", True)]


def test_a_batch_smaller_than_the_number_of_queues_starves_none(fleet):
    fleet.start(queues="default:2,critical:1,reports:1", TURNO_WORKER__BATCH_SIZE="1").wait_ready()
    for queue in ("reports", "critical", "default"):
        wait_state(enqueue("probe.async", {"key": queue}, queue=queue).id, "Succeeded")


def test_a_transaction_that_a_handler_forgot_harms_no_later_handler(fleet):
    fleet.start(queues="default:1").wait_ready()
    for type_ in ("probe.forgets_transaction", "probe.orm_thread", "probe.forgets_transaction", "probe.orm_thread"):
        wait_state(enqueue(type_, max_attempts=1).id, "Succeeded")


def test_a_snoozed_job_runs_again_and_no_attempt_is_counted(fleet):
    fleet.start().wait_ready()
    id_ = enqueue("probe.async", {"key": "z", "snooze": 0.1}).id
    done = wait_state(id_, "Succeeded")
    assert attempts(id_) == [(1, "Snoozed", False), (2, "Succeeded", True)]
    assert done.attempts_used == 1


def test_progress_stage_and_log_lines_are_seen_while_the_job_runs(fleet):
    fleet.start().wait_ready()
    id_ = enqueue("probe.talk", {"key": "talk", "hold": 1.5}).id
    eventually(lambda: (j := job(id_)).state == "Processing" and j.progress == 40, "progress while it runs")
    assert job(id_).stage == "first half"
    eventually(lambda: JobLog.objects.filter(job_id=id_).count() == 1, "a log line while it runs")
    done = wait_state(id_, "Succeeded")
    assert (done.progress, done.stage, done.result) == (100, "second half", {"said": 2})
    lines = list(JobLog.objects.filter(job_id=id_).order_by("number").values_list("number", "level", "message"))
    assert lines == [(1, "info", "one line"), (2, "warning", "another line")]


def test_a_scheduled_job_waits_for_its_instant_by_the_databases_clock(fleet):
    fleet.start().wait_ready()
    id_ = enqueue("probe.async", {"key": "later"}, delay=1.0).id
    assert job(id_).state == "Scheduled"
    wait_state(id_, "Succeeded")
    changes = dict(job(id_).changes.values_list("to_state", "at"))
    assert changes["Enqueued"] - job(id_).created_at >= timedelta(seconds=1)


def test_higher_priority_starts_first_and_ties_go_by_age(fleet):
    wanted = [("low", -5), ("first", 0), ("second", 0), ("high", 10)]
    enqueue_many([JobRequest("probe.async", {"key": key}, priority=priority) for key, priority in wanted])
    fleet.start(queues="default:1").wait_ready()
    eventually(lambda: len(fleet.starts()) == 4, "all four started")
    assert [parts[1] for parts in fleet.starts()] == ["high", "first", "second", "low"]


def test_a_type_that_no_worker_knows_stays_in_its_queue_and_blocks_nobody(fleet):
    from tests.transitions.rows import make_job

    made = make_job("Enqueued", type="nobody.knows", priority=10)
    fleet.start().wait_ready()
    wait_state(enqueue("probe.async", {"key": "known"}).id, "Succeeded")
    assert job(made.id).state == "Enqueued"
    assert attempts(made.id) == []


def test_a_handler_module_that_cannot_be_imported_takes_down_nothing_else(fleet, tmp_path):
    (tmp_path / "broken_one.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "broken_two.py").write_text("def (:\n")
    fleet.start(
        TURNO_HANDLERS='["broken_one", "broken_two", "tests.kit.handlers"]', TURNO_PYTHON_PATH=f'["{tmp_path}"]'
    ).wait_ready()
    wait_state(enqueue("probe.async", {"key": "fine"}).id, "Succeeded")
    problems = {p["module"]: p["error"] for p in Worker.objects.get(name="a").problems}
    assert "SystemExit" in problems["broken_one"]
    assert "SyntaxError" in problems["broken_two"]


def test_a_result_that_is_no_json_ends_its_job_failed_and_says_where(fleet):
    fleet.start().wait_ready()
    id_ = enqueue("probe.odd_result", {"key": "odd"}).id
    dead = wait_state(id_, "Failed")
    assert dead.failure_kind == "permanent"
    assert "result" in dead.error_message
    assert started(fleet, "odd")
