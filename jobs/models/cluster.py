"""The cluster: workers, leases, recurring jobs, the outbox, metrics by the minute."""

from zoneinfo import ZoneInfo

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import ExtractMinute, Least, Now
from django.db.models.lookups import Exact, GreaterThanOrEqual

from jobs.bounds import PRIORITIES
from jobs.models.base import among, check, differs, queue_name, table, type_name
from jobs.models.job import Job


class Worker(models.Model):
    """A worker process, from its start to its end; a restarted one is another row."""

    id = models.UUIDField(primary_key=True)
    name = models.TextField()
    host = models.TextField()
    boot_id = models.TextField()
    pid_namespace = models.TextField()
    pid = models.IntegerField()
    pid_started = models.TextField(help_text="The process's start time, as the kernel counts it.")
    version = models.TextField()
    queues = models.JSONField(help_text="Slots by queue.")
    types = ArrayField(models.TextField(), db_default=[])
    state = models.TextField(db_default="Online")
    started_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())
    stopped_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(
        null=True, help_text="When it was proven dead and owned nothing: what it owns later never started."
    )
    problems = models.JSONField(
        db_default=[], help_text="What a person should know, such as modules that fail to load."
    )

    class Meta:
        db_table = table("workers")
        constraints = [
            check("workers_state_known", among("state", ["Online", "Draining", "Offline"])),
            check("workers_name_not_empty", ~Q(name="")),
            models.UniqueConstraint(
                name="workers_one_live_identity",
                fields=["boot_id", "pid_namespace", "pid", "pid_started"],
                condition=~Q(state="Offline"),
            ),
        ]
        indexes = [models.Index(fields=["seen_at"], name="workers_by_sign_of_life")]

    def __str__(self) -> str:
        return self.name


class Lease(models.Model):
    """Leadership by name: `holder` leads while `until` is in the future of the database's clock."""

    name = models.TextField(primary_key=True)
    holder = models.UUIDField(null=True)
    until = models.DateTimeField()

    class Meta:
        db_table = table("leases")

    def __str__(self) -> str:
        return self.name


class RecurringJob(models.Model):
    """A schedule. `version` grows at each write: the compare-and-set of firing."""

    id = models.UUIDField(primary_key=True)
    name = models.TextField()
    type = models.TextField()
    queue = models.TextField(null=True)
    payload = models.JSONField()
    cron = models.TextField()
    timezone = models.TextField(db_default="UTC")
    enabled = models.BooleanField(db_default=True)
    next_run_at = models.DateTimeField(null=True)
    last_run_at = models.DateTimeField(null=True)
    overlap = models.TextField(db_default="skip")
    misfire = models.TextField(db_default="once")
    source = models.TextField(db_default="manual")
    error = models.TextField(null=True, help_text="Why it can't fire; it is left alone until somebody edits it.")
    version = models.BigIntegerField(db_default=0)
    priority = models.SmallIntegerField(null=True)
    last_job_id = models.UUIDField(null=True)
    skipped = models.IntegerField(db_default=0, help_text="Instants that were left out.")
    last_skipped_at = models.DateTimeField(null=True)
    last_skipped_why = models.TextField(null=True)
    disabled_by = models.TextField(null=True)
    owner = models.TextField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = table("recurring_jobs")
        constraints = [
            models.UniqueConstraint(name="recurring_one_name", fields=["name"]),
            check("recurring_type_format", type_name("type")),
            check("recurring_queue_format", queue_name("queue")),
            check("recurring_overlap_known", among("overlap", ["skip", "allow", "queue"])),
            check("recurring_misfire_known", among("misfire", ["once", "skip", "all"])),
            check("recurring_source_known", among("source", ["declared", "manual"])),
            check("recurring_priority_range", Q(priority__range=PRIORITIES)),
            check("recurring_skipped_not_negative", Q(skipped__gte=0)),
            check("recurring_why_known", among("last_skipped_why", ["overlap", "misfire"])),
        ]
        indexes = [models.Index(fields=["next_run_at"], name="recurring_due_order", condition=Q(enabled=True))]

    def __str__(self) -> str:
        return self.name


class OutboxMessage(models.Model):
    """A message that waits for the broker; leased by a relay until `locked_until`."""

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey(Job, on_delete=models.DB_CASCADE, related_name="outbox")
    kind = models.TextField(db_default="dispatch")
    dispatch_id = models.UUIDField(null=True)
    queue = models.TextField()
    priority = models.SmallIntegerField(db_default=0)
    body = models.JSONField(db_default={})
    lock_id = models.UUIDField(null=True)
    locked_until = models.DateTimeField(null=True)
    failures = models.IntegerField(db_default=0)
    last_error = models.TextField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = table("outbox_messages")
        constraints = [
            check("outbox_kind_known", among("kind", ["dispatch", "dead_letter"])),
            check("outbox_dispatch_has_token", differs("kind", "dispatch") | Q(dispatch_id__isnull=False)),
            check("outbox_failures_not_negative", Q(failures__gte=0)),
        ]
        indexes = [models.Index(fields=["locked_until", "id"], name="outbox_lease_order")]

    def __str__(self) -> str:
        return f"{self.kind} {self.job_id}"


class MetricsMinute(models.Model):
    """What ended in a minute, by worker, queue and type; every chart and 24 h figure reads this.

    `durations` counts executions by `jobs.metrics.BUCKETS` (one more than the bounds); sums are seconds.
    """

    id = models.BigAutoField(primary_key=True)
    minute = models.DateTimeField()
    worker_id = models.UUIDField(null=True)
    queue = models.TextField()
    type = models.TextField()
    succeeded = models.IntegerField(db_default=0)
    failed = models.IntegerField(db_default=0)
    retried = models.IntegerField(db_default=0)
    cancelled = models.IntegerField(db_default=0)
    lost = models.IntegerField(db_default=0)
    duration_sum = models.FloatField(db_default=0)
    wait_sum = models.FloatField(db_default=0)
    durations = ArrayField(models.IntegerField())

    class Meta:
        db_table = table("metrics_minute")
        constraints = [
            models.UniqueConstraint(
                name="metrics_one_row", fields=["minute", "worker_id", "queue", "type"], nulls_distinct=False
            ),
            check(
                "metrics_counts_not_negative",
                Q(GreaterThanOrEqual(Least(*map(F, ("succeeded", "failed", "retried", "cancelled", "lost"))), 0)),
            ),
        ]
        # What is still to be folded (`jobs.upkeep.folding`), over workers and by the hour.
        indexes = [
            models.Index(fields=["minute"], name="metrics_of_workers", condition=Q(worker_id__isnull=False)),
            models.Index(
                fields=["minute"],
                name="metrics_by_minute",
                condition=~Q(Exact(ExtractMinute("minute", tzinfo=ZoneInfo("UTC")), 0)),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.minute:%H:%M} {self.type}"
