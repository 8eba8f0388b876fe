"""The jobs table: the truth about each job, with every rule about a row as a constraint."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Now

from jobs.bounds import ATTEMPTS, PRIORITIES
from jobs.durations import LONGEST
from jobs.models.base import among, check, differs, holds, iff, none_of, one_of, queue_name, table, type_name
from jobs.states import ACTIVE, FINAL, GATED, PARKED, TIMED, FailureKind, State, Waiting

ACTIVE_STATES = sorted(str(state) for state in ACTIVE)
FINAL_STATES = sorted(str(state) for state in FINAL)
DISPATCHED = (State.ENQUEUED, State.PROCESSING)
ENQUEUED, SCHEDULED, PROCESSING = (Q(state=str(s)) for s in (State.ENQUEUED, State.SCHEDULED, State.PROCESSING))


class Job(models.Model):
    """A job. `dispatch_id` is the fencing token; ownership is (state, worker_id, dispatch_id, lease_expires_at)."""

    id = models.UUIDField(primary_key=True)
    type = models.TextField()
    queue = models.TextField()
    payload = models.JSONField()
    state = models.TextField()
    priority = models.SmallIntegerField(db_default=0)

    executions = models.IntegerField(db_default=0)
    attempts_used = models.SmallIntegerField(db_default=0)
    max_attempts = models.SmallIntegerField(db_default=5)
    lost_count = models.SmallIntegerField(db_default=0)
    at_most_once = models.BooleanField(db_default=False)
    timeout = models.FloatField(null=True, help_text="Seconds, over the whole attempt.")

    dispatch_id = models.UUIDField(null=True)
    admitted = models.UUIDField(
        null=True, help_text="The token for which every slot that the job needs was given to it already."
    )
    announced_at = models.DateTimeField(null=True)
    reannounced_at = models.DateTimeField(
        null=True, help_text="When its message was last written anew because it seemed to be gone."
    )
    claim_id = models.UUIDField(null=True)
    claimed_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    slot = models.SmallIntegerField(null=True)
    worker_id = models.UUIDField(null=True)
    worker_label = models.JSONField(null=True)
    lease_expires_at = models.DateTimeField(null=True)

    progress = models.SmallIntegerField(db_default=0)
    stage = models.TextField(db_default="")
    result = models.JSONField(null=True)
    error_type = models.TextField(null=True)
    error_message = models.TextField(null=True)
    failure_kind = models.TextField(null=True)

    run_at = models.DateTimeField(null=True, help_text="The instant a Scheduled job waits for.")
    not_before = models.DateTimeField(null=True, help_text="The instant that was asked for; kept while parked.")
    waiting_for = models.TextField(null=True)
    gate = models.TextField(null=True)

    concurrency_key = models.TextField(null=True)
    concurrency_limit = models.SmallIntegerField(null=True)
    unique_key = models.TextField(null=True)
    idempotency_key = models.TextField(null=True)
    route = models.TextField(null=True, help_text="The door that the idempotency key came through.")
    request_hash = models.TextField(null=True)

    origin = models.TextField(null=True)
    owner = models.TextField(null=True)
    tags = ArrayField(models.TextField(), db_default=[])
    recurring_job_id = models.UUIDField(null=True)
    fired_for = models.DateTimeField(null=True)
    rerun_of = models.UUIDField(null=True)

    cancel_requested_at = models.DateTimeField(null=True)
    cancel_requested_by = models.TextField(null=True)
    cancel_reason = models.TextField(null=True)

    created_at = models.DateTimeField(db_default=Now())
    enqueued_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = table("jobs")
        constraints = [
            check("jobs_state_known", among("state", State)),
            check("jobs_type_format", type_name("type")),
            check("jobs_queue_format", queue_name("queue")),
            check("jobs_priority_range", Q(priority__range=PRIORITIES)),
            check("jobs_progress_range", Q(progress__range=(0, 100))),
            check("jobs_max_attempts_range", Q(max_attempts__range=ATTEMPTS)),
            check("jobs_attempts_within_allowed", Q(attempts_used__gte=0, attempts_used__lte=F("max_attempts"))),
            check("jobs_executions_not_negative", Q(executions__gte=0)),
            check("jobs_lost_count_not_negative", Q(lost_count__gte=0)),
            check("jobs_timeout_positive", Q(timeout__gt=Value("0"), timeout__lte=Value(str(LONGEST)))),
            check("jobs_owned_when_processing", iff(PROCESSING, Q(worker_id__isnull=False))),
            check("jobs_leased_when_processing", iff(PROCESSING, Q(lease_expires_at__isnull=False))),
            check("jobs_claim_id_when_processing", iff(PROCESSING, Q(claim_id__isnull=False))),
            check("jobs_claimed_at_when_processing", iff(PROCESSING, Q(claimed_at__isnull=False))),
            check("jobs_token_when_dispatched", none_of("state", DISPATCHED) | Q(dispatch_id__isnull=False)),
            check("jobs_enqueued_has_instant", differs("state", State.ENQUEUED) | Q(enqueued_at__isnull=False)),
            check("jobs_finished_when_final", iff(among("state", FINAL_STATES), Q(finished_at__isnull=False))),
            check("jobs_waiting_known", among("waiting_for", Waiting)),
            check("jobs_waiting_when_scheduled", iff(SCHEDULED, Q(waiting_for__isnull=False))),
            check("jobs_instant_when_timed", iff(Q(run_at__isnull=False), holds(among("waiting_for", TIMED)))),
            check("jobs_gate_when_parked", Q(gate__isnull=True) | holds(among("waiting_for", PARKED))),
            check("jobs_failure_kind_known", among("failure_kind", FailureKind)),
            check(
                "jobs_failure_kind_when_failed",
                iff(Q(state=str(State.FAILED)), Q(failure_kind__isnull=False)),
            ),
            check(
                "jobs_limit_with_key",
                iff(Q(concurrency_key__isnull=False), Q(concurrency_limit__isnull=False)),
            ),
            check("jobs_limit_positive", Q(concurrency_limit__gte=1)),
            check(
                "jobs_hash_with_idempotency_key",
                iff(Q(idempotency_key__isnull=False), Q(request_hash__isnull=False)),
            ),
            check(
                "jobs_route_with_idempotency_key",
                iff(Q(idempotency_key__isnull=False), Q(route__isnull=False)),
            ),
            check(
                "jobs_fired_for_with_recurring",
                iff(Q(recurring_job_id__isnull=False), Q(fired_for__isnull=False)),
            ),
            models.UniqueConstraint(
                name="jobs_one_active_unique_key",
                fields=["unique_key"],
                condition=Q(unique_key__isnull=False) & one_of("state", ACTIVE_STATES),
            ),
            models.UniqueConstraint(
                name="jobs_one_idempotency_key",
                fields=["owner", "route", "idempotency_key"],
                condition=Q(idempotency_key__isnull=False),
                nulls_distinct=False,
            ),
            models.UniqueConstraint(
                name="jobs_one_fired_instant",
                fields=["recurring_job_id", "fired_for"],
                condition=Q(recurring_job_id__isnull=False),
            ),
        ]
        indexes = [
            models.Index(
                "queue",
                F("priority").desc(),
                "enqueued_at",
                "id",
                name="jobs_claim_order",
                condition=ENQUEUED,
            ),
            models.Index("run_at", "id", name="jobs_due_order", condition=SCHEDULED & Q(run_at__isnull=False)),
            models.Index(
                "waiting_for",
                "gate",
                F("priority").desc(),
                "created_at",
                "id",
                name="jobs_parked_order",
                condition=SCHEDULED & Q(run_at__isnull=True),
            ),
            models.Index(
                "queue",
                "gate",
                F("priority").desc(),
                "enqueued_at",
                "id",
                name="jobs_unknown_order",
                condition=SCHEDULED & Q(waiting_for=str(Waiting.UNKNOWN_TYPE)),
            ),
            # Without the state: no plan takes another index for it while the statistics are older than what is parked.
            models.Index(
                "gate",
                F("priority").desc(),
                "created_at",
                "id",
                name="jobs_circuit_order",
                condition=Q(waiting_for=str(Waiting.CIRCUIT)),
            ),
            # The same for keys, limits and pauses, for one gate at a time.
            models.Index(
                "waiting_for",
                "gate",
                F("priority").desc(),
                "created_at",
                "id",
                name="jobs_gate_order",
                condition=one_of("waiting_for", GATED),
            ),
            models.Index(fields=["gate", "id"], name="jobs_child_order", condition=Q(waiting_for=str(Waiting.PARENTS))),
            # Those of a key that are Enqueued, and the few that run; without the state for the same reason.
            models.Index(
                "concurrency_key",
                "enqueued_at",
                name="jobs_key_waiting",
                condition=Q(concurrency_key__isnull=False, finished_at__isnull=True, waiting_for__isnull=True),
            ),
            # Those that were woken at a gate, be they waiting for a worker or running.
            models.Index(
                fields=["type"],
                name="jobs_woken",
                condition=Q(admitted__isnull=False, finished_at__isnull=True, waiting_for__isnull=True),
            ),
            models.Index(
                "recurring_job_id",
                name="jobs_recurring_active",
                condition=Q(recurring_job_id__isnull=False) & one_of("state", ACTIVE_STATES),
            ),
            models.Index(
                "recurring_job_id",
                F("id").desc(),
                name="jobs_by_recurring",
                condition=Q(recurring_job_id__isnull=False),
            ),
            models.Index("lease_expires_at", "id", name="jobs_lease_order", condition=PROCESSING),
            models.Index("worker_id", name="jobs_of_worker", condition=PROCESSING),
            models.Index(
                "state",
                "finished_at",
                "id",
                name="jobs_finished_order",
                condition=one_of("state", FINAL_STATES),
            ),
            models.Index("state", F("id").desc(), name="jobs_by_state"),
            models.Index("type", F("id").desc(), name="jobs_by_type"),
            models.Index("queue", F("id").desc(), name="jobs_by_queue"),
            models.Index(
                "unique_key", F("id").desc(), name="jobs_by_unique_key", condition=Q(unique_key__isnull=False)
            ),
            models.Index(
                "idempotency_key",
                F("id").desc(),
                name="jobs_by_idempotency_key",
                condition=Q(idempotency_key__isnull=False),
            ),
            models.Index(
                "concurrency_key",
                F("id").desc(),
                name="jobs_by_concurrency_key",
                condition=Q(concurrency_key__isnull=False),
            ),
            GinIndex(fields=["tags"], name="jobs_by_tag", condition=~Q(tags=[])),
            models.Index(
                fields=["lost_count", "id"],
                name="jobs_suspect",
                condition=Q(lost_count__gte=2) & one_of("state", ACTIVE_STATES),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.id}"
