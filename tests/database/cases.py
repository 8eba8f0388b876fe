"""What each constraint forbids: a change of a valid row that breaks it, and it alone.

`state` picks the job that is changed; `beside` is a row that exists already, of which `shared` columns are repeated.
"""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from jobs.states import PARKED, TIMED
from tests.database.rows import LATER, NOON, STATES, TYPE, Row

NOBODY = UUID(int=0)
PROBE: Row = {"probe_job_id": NOBODY, "probe_deadline": LATER}
TOO_LONG = "a" * 201
NOT_FINAL = ("Enqueued", "Scheduled", "Processing")
NOT_PROCESSING = tuple(state for state in STATES if state != "Processing")
BAD_TYPES = ("", "Report", "a b", "a/b", "á", "a\n", "a\nb", TOO_LONG)
BAD_QUEUES = ("", "Default", "a b", "q\n", "a" * 101, "dead-letter", "_error", "default_error")


@dataclass(frozen=True)
class Case:
    """A row that the constraint `name` must refuse."""

    name: str
    table: str
    change: Row = field(default_factory=dict)
    state: str | None = None
    beside: Row | None = None
    beside_state: str | None = None
    shared: tuple[str, ...] = ()

    def __str__(self) -> str:
        changed = ",".join(f"{column}={str(value)[:20]!r}" for column, value in self.change.items())
        return f"{self.name}[{self.state or ''} {changed}]"


def _each(name: str, table: str, column: str, /, *values: Any, **others: Any) -> list[Case]:
    return [Case(name, table, {column: value, **others}) for value in values]


def _job(name: str, state: str, /, **change: Any) -> Case:
    return Case(name, "jobs", change, state=state)


def _twin(name: str, table: str, /, *shared: str, **columns: Any) -> Case:
    return Case(name, table, columns, beside=columns, shared=shared)


def _only_when_processing(name: str, column: str, value: Any) -> list[Case]:
    stray = [_job(name, state, **{column: value}) for state in NOT_PROCESSING]
    return [_job(name, "Processing", **{column: None}), *stray]


JOB_CASES = [
    *_each("jobs_state_known", "jobs", "state", "", "enqueued", "Paused"),
    *_each("jobs_type_format", "jobs", "type", *BAD_TYPES),
    *_each("jobs_queue_format", "jobs", "queue", *BAD_QUEUES),
    *_each("jobs_priority_range", "jobs", "priority", -11, 11),
    *_each("jobs_progress_range", "jobs", "progress", -1, 101),
    *_each("jobs_max_attempts_range", "jobs", "max_attempts", 0, 101),
    *_each("jobs_attempts_within_allowed", "jobs", "attempts_used", -1, 6, max_attempts=5),
    *_each("jobs_executions_not_negative", "jobs", "executions", -1),
    *_each("jobs_lost_count_not_negative", "jobs", "lost_count", -1),
    *_each("jobs_timeout_positive", "jobs", "timeout", 0, -1, float("nan"), float("inf")),
    *_only_when_processing("jobs_owned_when_processing", "worker_id", NOBODY),
    *_only_when_processing("jobs_leased_when_processing", "lease_expires_at", LATER),
    *_only_when_processing("jobs_claim_id_when_processing", "claim_id", NOBODY),
    *_only_when_processing("jobs_claimed_at_when_processing", "claimed_at", NOON),
    *[_job("jobs_token_when_dispatched", state, dispatch_id=None) for state in ("Enqueued", "Processing")],
    _job("jobs_enqueued_has_instant", "Enqueued", enqueued_at=None),
    *[_job("jobs_finished_when_final", state, finished_at=None) for state in ("Succeeded", "Failed", "Cancelled")],
    *[_job("jobs_finished_when_final", state, finished_at=LATER) for state in (*NOT_FINAL, "Parked")],
    *[_job("jobs_waiting_known", "Parked", waiting_for=value, gate=None) for value in ("", "Due", "moon")],
    _job("jobs_waiting_when_scheduled", "Parked", waiting_for=None, gate=None),
    *[
        _job("jobs_waiting_when_scheduled", state, waiting_for="pause")
        for state in STATES
        if state not in {"Scheduled", "Parked"}
    ],
    *[_job("jobs_instant_when_timed", "Parked", waiting_for=value, gate=None) for value in TIMED],
    *[_job("jobs_instant_when_timed", "Scheduled", waiting_for=value) for value in PARKED],
    _job("jobs_instant_when_timed", "Enqueued", run_at=LATER),
    *[_job("jobs_gate_when_parked", "Scheduled", waiting_for=value, gate="x") for value in TIMED],
    *[_job("jobs_gate_when_parked", state, gate="x") for state in ("Enqueued", "Processing", "Succeeded")],
    *[_job("jobs_failure_kind_known", "Failed", failure_kind=value) for value in ("", "Error", "bad luck")],
    _job("jobs_failure_kind_when_failed", "Failed", failure_kind=None),
    *[_job("jobs_failure_kind_when_failed", state, failure_kind="error") for state in STATES if state != "Failed"],
    _job("jobs_limit_with_key", "Enqueued", concurrency_key="k"),
    _job("jobs_limit_with_key", "Enqueued", concurrency_limit=1),
    *[_job("jobs_limit_positive", "Enqueued", concurrency_key="k", concurrency_limit=limit) for limit in (0, -1)],
    _job("jobs_hash_with_idempotency_key", "Enqueued", idempotency_key="k", route="api"),
    _job("jobs_hash_with_idempotency_key", "Enqueued", request_hash="h"),
    _job("jobs_route_with_idempotency_key", "Enqueued", idempotency_key="k", request_hash="h"),
    _job("jobs_route_with_idempotency_key", "Enqueued", route="api"),
    _job("jobs_fired_for_with_recurring", "Enqueued", recurring_job_id=NOBODY),
    _job("jobs_fired_for_with_recurring", "Enqueued", fired_for=NOON),
    *[
        Case("jobs_one_active_unique_key", "jobs", {"unique_key": "k"}, new, {"unique_key": "k"}, old)
        for new in (*NOT_FINAL, "Parked")
        for old in (*NOT_FINAL, "Parked")
    ],
    _twin("jobs_one_idempotency_key", "jobs", owner="ana", route="api", idempotency_key="k", request_hash="h"),
    _twin("jobs_one_idempotency_key", "jobs", owner=None, route="api", idempotency_key="k", request_hash="h"),
    _twin("jobs_one_fired_instant", "jobs", recurring_job_id=NOBODY, fired_for=NOON),
]

HISTORY_CASES = [
    _twin("attempts_one_ordinal", "job_attempts", "job_id", ordinal=3),
    _twin("attempts_one_dispatch", "job_attempts", dispatch_id=NOBODY),
    Case("attempts_end_after_start", "job_attempts", {"started_at": LATER, "ended_at": NOON}),
    *_each("attempts_outcome_known", "job_attempts", "outcome", "", "succeeded", "Lost"),
    *_each("attempts_ordinal_positive", "job_attempts", "ordinal", 0, -1),
    *_each("attempts_ordinal_positive", "job_attempts", "attempt", 0, -1),
    *_each("attempts_ordinal_positive", "job_attempts", "tries", -1),
    *_each("attempts_duration_not_negative", "job_attempts", "duration", -0.001),
    # A start of NULL compares as unknown, which a CHECK lets pass unless it is told otherwise.
    *_each("changes_legal_edge", "job_state_changes", "to_state", "Processing", "Succeeded", "Failed", "Cancelled"),
    *_each("changes_legal_edge", "job_state_changes", "from_state", "Succeeded", "Enqueued", "", to_state="Enqueued"),
    _twin("logs_one_number", "job_logs", "job_id", execution=2, number=5),
    *_each("logs_level_known", "job_logs", "level", "", "INFO", "fatal"),
    *_each("logs_number_positive", "job_logs", "number", 0),
    *_each("logs_number_positive", "job_logs", "execution", 0),
    _twin("artifacts_one_path", "job_artifacts", "job_id", execution=2, path="a.txt"),
    *_each("artifacts_path_relative", "job_artifacts", "path", "", "/", "/etc/passwd"),
    *_each("artifacts_path_stays_inside", "job_artifacts", "path", "..", "../a", "a/..", "a/../b", "a/b/../../.."),
    *_each("artifacts_size_not_negative", "job_artifacts", "size", -1),
    *_each("artifacts_sha256_format", "job_artifacts", "sha256", "", "0" * 63, "0" * 65, "A" * 64, "0" * 64 + "\n"),
    _twin("dead_letters_one_pending", "dead_letters", "job_id"),
    *_each("dead_letters_resolution_known", "dead_letters", "resolved_how", "", "lost", resolved_at=LATER),
    Case("dead_letters_resolved_with_how", "dead_letters", {"resolved_at": LATER}),
    Case("dead_letters_resolved_with_how", "dead_letters", {"resolved_how": "requeued"}),
]

FLOW_CASES = [
    _twin("dependencies_one_pair", "job_dependencies", "child_id", "parent_id"),
    *_each("dependencies_policy_known", "job_dependencies", "policy", "", "wait"),
    _twin("keys_one_value", "concurrency_keys", kind="key", value="k"),
    *_each("keys_kind_known", "concurrency_keys", "kind", "", "resource"),
    _twin("slots_one_holder", "concurrency_slots", "key_id", slot=2),
    Case("slots_one_a_job", "concurrency_slots", {"slot": 2}, beside={"slot": 1}, shared=("key_id", "job_id")),
    *_each("slots_number_positive", "concurrency_slots", "slot", 0, -1),
    *_each("queues_name_format", "queues", "name", *BAD_QUEUES),
    *_each("queues_slots_range", "queues", "slots", -1, 1001),
    *_each("queues_priority_range", "queues", "default_priority", -11, 11),
    _twin("pauses_one_target", "pauses", scope="type", value="v"),
    *_each("pauses_scope_known", "pauses", "scope", "", "worker"),
    *_each("pauses_value_not_empty", "pauses", "value", ""),
    *_each("circuits_type_format", "circuits", "type", *BAD_TYPES),
    *_each("circuits_state_known", "circuits", "state", "", "half-open", opened_at=NOON),
    Case("circuits_open_has_instant", "circuits", {"state": "open", "retry_at": LATER}),
    Case("circuits_open_has_instant", "circuits", {"state": "half_open", **PROBE}),
    Case("circuits_retry_when_open", "circuits", {"state": "open", "opened_at": NOON}),
    Case("circuits_probe_when_half_open", "circuits", {"state": "half_open", "opened_at": NOON}),
    Case("circuits_probe_when_half_open", "circuits", PROBE),
    *_each("circuits_spans_positive", "circuits", "open_for", 0, -1),
    *_each("circuits_spans_positive", "circuits", "span", 0, -1),
    *_each("circuits_failures_within_executions", "circuits", "failures", -1, 1),
    Case("circuits_probe_has_deadline", "circuits", {"state": "half_open", "opened_at": NOON, "probe_job_id": NOBODY}),
    Case("circuits_probe_has_deadline", "circuits", {"probe_deadline": LATER}),
    *_each("rates_type_format", "rates", "type", *BAD_TYPES),
    *_each("rates_allowed_positive", "rates", "allowed", 0, -1),
    *_each("rates_allowed_positive", "rates", "window", 0, -1),
    *_each("counters_not_negative", "counters", "value", -1),
    *_each("job_types_limit_positive", "job_types", "max_running", 0, -1),
    *_each("job_types_name_format", "job_types", "name", *BAD_TYPES),
    _twin("unserved_one_pair", "unserved_types", queue="q", type="t"),
    *_each("unserved_queue_format", "unserved_types", "queue", *BAD_QUEUES),
    *_each("unserved_type_format", "unserved_types", "type", *BAD_TYPES),
    Case("unserved_seen_after_since", "unserved_types", {"since": LATER, "seen_at": NOON}),
]

CLUSTER_CASES = [
    *_each("workers_state_known", "workers", "state", "", "online", "Gone"),
    *_each("workers_name_not_empty", "workers", "name", ""),
    _twin("workers_one_live_identity", "workers", "boot_id"),
    Case(
        "workers_one_live_identity",
        "workers",
        {"state": "Draining"},
        beside={"state": "Online"},
        shared=("boot_id",),
    ),
    _twin("recurring_one_name", "recurring_jobs", name="nightly"),
    *_each("recurring_type_format", "recurring_jobs", "type", *BAD_TYPES),
    *_each("recurring_queue_format", "recurring_jobs", "queue", *BAD_QUEUES),
    *_each("recurring_overlap_known", "recurring_jobs", "overlap", "", "never"),
    *_each("recurring_misfire_known", "recurring_jobs", "misfire", "", "twice"),
    *_each("recurring_source_known", "recurring_jobs", "source", "", "code"),
    *_each("recurring_priority_range", "recurring_jobs", "priority", -11, 11),
    *_each("recurring_skipped_not_negative", "recurring_jobs", "skipped", -1),
    *_each("recurring_why_known", "recurring_jobs", "last_skipped_why", "", "late"),
    *_each("outbox_kind_known", "outbox_messages", "kind", "", "event"),
    Case("outbox_dispatch_has_token", "outbox_messages", {"dispatch_id": None}),
    *_each("outbox_failures_not_negative", "outbox_messages", "failures", -1),
    _twin("metrics_one_row", "metrics_minute", worker_id=NOBODY, type=TYPE),
    _twin("metrics_one_row", "metrics_minute", worker_id=None, type=TYPE),
    *[
        Case("metrics_counts_not_negative", "metrics_minute", {column: -1})
        for column in ("succeeded", "failed", "retried", "cancelled", "lost")
    ],
]

BULK_CASES = [
    *_each("bulk_runs_act_of_target", "bulk_runs", "act", "", "discard", "explode"),
    *_each("bulk_runs_act_of_target", "bulk_runs", "act", "cancel", "delete", "run_now", target="letters"),
    Case("bulk_runs_act_of_target", "bulk_runs", {"target": "workers"}),
    Case("bulk_runs_ids_or_filter", "bulk_runs", {"filter": None}),
    Case("bulk_runs_ids_or_filter", "bulk_runs", {"ids": [NOBODY]}),
    Case("bulk_runs_ids_bounded", "bulk_runs", {"filter": None, "ids": []}),
    Case("bulk_runs_ids_bounded", "bulk_runs", {"filter": None, "ids": [NOBODY] * 10_001}),
    *_each("bulk_runs_total_not_negative", "bulk_runs", "total", -1),
    *_each("bulk_runs_counts_add_up", "bulk_runs", "applied", 1, -1),
    *_each("bulk_runs_counts_add_up", "bulk_runs", "requested", 1, -1),
    *_each("bulk_runs_state_known", "bulk_runs", "state", "", "paused"),
    *_each("bulk_runs_finished_when_ended", "bulk_runs", "state", "done", "stopped"),
    Case("bulk_runs_finished_when_ended", "bulk_runs", {"finished_at": NOON}),
    Case("bulk_runs_error_when_failed", "bulk_runs", {"error": "no"}),
    Case("bulk_runs_error_when_failed", "bulk_runs", {"state": "failed", "finished_at": NOON}),
    Case(
        "bulk_runs_held_while_under_way",
        "bulk_runs",
        {"state": "done", "finished_at": NOON, "holder": NOBODY, "beat_at": NOON},
    ),
    Case("bulk_runs_holder_beats", "bulk_runs", {"holder": NOBODY}),
]

PROMISE_CASES = [
    *_each("promise_checks_seconds_not_negative", "promise_checks", "seconds", -0.1),
    *_each("storm_reports_one_row", "storm_reports", "id", 0, 2),
    *_each("storm_reports_not_negative", "storm_reports", "seconds", -1.0),
    *_each("storm_reports_not_negative", "storm_reports", "jobs", -1),
]

CASES = [*JOB_CASES, *HISTORY_CASES, *FLOW_CASES, *CLUSTER_CASES, *BULK_CASES, *PROMISE_CASES]

# Neighbours of the cases that must pass: a constraint that refuses them is too strict.
LEGAL = [
    *[Case("", "jobs", {}, state=state) for state in STATES],
    *_each("", "jobs", "type", "a", "inss.consulta-2_b", "a" * 200),
    *_each("", "jobs", "queue", "a", "a" * 100, "dead-letters", "error", "my-error", "a_errors"),
    *_each("", "jobs", "priority", -10, 10),
    *_each("", "jobs", "progress", 0, 100),
    *_each("", "jobs", "attempts_used", 0, 100, max_attempts=100),
    *_each("", "jobs", "timeout", None, 0.001, 86400.0),
    *[_job("", "Parked", waiting_for=value, gate=gate) for value in PARKED for gate in (None, "g")],
    *[_job("", "Scheduled", waiting_for=value) for value in TIMED],
    _job("", "Enqueued", concurrency_key="k", concurrency_limit=1),
    *[Case("", "jobs", {"unique_key": "k"}, "Enqueued", {"unique_key": "k"}, old) for old in ("Succeeded", "Failed")],
    *[Case("", "jobs", {"unique_key": "k"}, new, {"unique_key": "k"}, "Enqueued") for new in ("Failed", "Cancelled")],
    Case("", "jobs", {"unique_key": None}, beside={"unique_key": None}),
    *[
        Case(
            "",
            "jobs",
            {"owner": owner, "route": route, "idempotency_key": "k", "request_hash": "h"},
            beside={"owner": None, "route": "api", "idempotency_key": "k", "request_hash": "h"},
        )
        for owner, route in (("ana", "api"), (None, "batch"))
    ],
    Case("", "jobs", {"owner": "ana"}, beside={"owner": "ana"}),
    Case(
        "",
        "jobs",
        {"recurring_job_id": NOBODY, "fired_for": LATER},
        beside={"recurring_job_id": NOBODY, "fired_for": NOON},
    ),
    Case("", "job_attempts", {"started_at": NOON, "ended_at": NOON, "duration": 0, "tries": 0}),
    *_each("", "job_attempts", "duration", None, float("inf")),
    *_each("", "job_artifacts", "path", "a", "a/b/c", "..a", "a..", "a/..b/c..", "..."),
    Case("", "dead_letters", {"resolved_at": LATER, "resolved_how": "discarded"}),
    Case("", "dead_letters", beside={"resolved_at": LATER, "resolved_how": "requeued"}, shared=("job_id",)),
    *_each("", "queues", "slots", None, 0, 1000),
    *_each("", "queues", "default_priority", None, -10, 10),
    *_each("", "job_types", "max_running", None, 1),
    Case("", "circuits", {"state": "closed", "opened_at": NOON, "executions": 10, "failures": 10}),
    Case("", "circuits", {"state": "open", "opened_at": NOON, "retry_at": LATER}),
    Case("", "circuits", {"state": "half_open", "opened_at": NOON, **PROBE}),
    Case("", "workers", {"state": "Online"}, beside={"state": "Offline"}, shared=("boot_id",)),
    Case("", "concurrency_keys", {"kind": "type", "value": "k"}, beside={"kind": "key", "value": "k"}),
    *_each("", "recurring_jobs", "queue", None, "default"),
    *_each("", "recurring_jobs", "priority", None, -10, 10),
    *_each("", "recurring_jobs", "last_skipped_why", None, "misfire"),
    Case("", "outbox_messages", {"kind": "dead_letter", "dispatch_id": None}),
    *_each("", "bulk_runs", "act", "requeue", "discard", target="letters"),
    Case("", "bulk_runs", {"filter": None, "ids": [NOBODY] * 10_000}),
    Case("", "bulk_runs", {"state": "failed", "error": "no", "finished_at": NOON}),
    Case("", "bulk_runs", {"state": "stopping", "holder": NOBODY, "beat_at": NOON}),
    Case("", "metrics_minute", {"type": TYPE, "worker_id": NOBODY}, beside={"type": TYPE, "worker_id": None}),
]
