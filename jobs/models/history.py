"""What happened to a job: executions, state changes, log lines, artifacts. Gone with the job."""

from django.db import models
from django.db.models import F, Func, Q, TextField, Value
from django.db.models.functions import Now

from jobs.models.base import among, check, iff, table
from jobs.models.job import Job
from jobs.states import EDGES, Outcome


class JobAttempt(models.Model):
    """One execution, written at its end. The worker's data are copied: they outlive the worker's row."""

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey(Job, on_delete=models.DB_CASCADE, related_name="attempts", db_index=False)
    ordinal = models.IntegerField(help_text="The execution's number within the job, from 1.")
    attempt = models.SmallIntegerField(help_text="Which attempt it was, from 1.")
    tries = models.SmallIntegerField(db_default=1, help_text="1 + the immediate retries.")
    counted = models.BooleanField()
    dispatch_id = models.UUIDField()
    worker_id = models.UUIDField(null=True)
    worker_name = models.TextField(null=True)
    worker_host = models.TextField(null=True)
    worker_pid = models.IntegerField(null=True)
    worker_version = models.TextField(null=True)
    slot = models.SmallIntegerField(null=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    duration = models.FloatField(null=True, help_text="Seconds, as the worker measured; null for lost workers.")
    outcome = models.TextField()
    error_type = models.TextField(null=True)
    error_message = models.TextField(null=True)
    stack = models.TextField(null=True)
    exit_code = models.IntegerField(null=True)
    signal = models.IntegerField(null=True)
    peak_memory = models.BigIntegerField(null=True, help_text="Bytes.")
    discarded_at = models.DateTimeField(null=True, help_text="When an owner that had lost its lease came back.")

    class Meta:
        db_table = table("job_attempts")
        constraints = [
            models.UniqueConstraint(name="attempts_one_ordinal", fields=["job", "ordinal"]),
            models.UniqueConstraint(name="attempts_one_dispatch", fields=["dispatch_id"]),
            check("attempts_end_after_start", Q(ended_at__gte=F("started_at"))),
            check("attempts_outcome_known", among("outcome", Outcome)),
            check("attempts_ordinal_positive", Q(ordinal__gte=1, attempt__gte=1, tries__gte=0)),
            check("attempts_duration_not_negative", Q(duration__gte=Value("0"))),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} #{self.ordinal} {self.outcome}"


def legal_edges() -> Q:
    """EDGES as one condition: what `job_state_changes` accepts.

    Pairs are looked up as one text. The start is quoted: marks tell where a text ends, and only no start at all is NULL
    without them. So (NULL, to) is not unknown, which would pass.
    """
    start = Func(F("from_state"), function="quote_nullable", output_field=TextField())
    pair = Func(start, F("to_state"), template="(%(expressions)s)", arg_joiner=" || ", output_field=TextField())
    return among(pair, [f"NULL{after}" if before is None else f"'{before}'{after}" for before, after in EDGES])


class JobStateChange(models.Model):
    """One step of the time line, with its reason and who or what made it."""

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey(Job, on_delete=models.DB_CASCADE, related_name="changes", db_index=False)
    from_state = models.TextField(null=True)
    to_state = models.TextField()
    at = models.DateTimeField(db_default=Now())
    reason = models.TextField()
    detail = models.TextField(null=True)
    worker_id = models.UUIDField(null=True)
    actor = models.TextField(null=True)
    execution = models.IntegerField(null=True)

    class Meta:
        db_table = table("job_state_changes")
        constraints = [check("changes_legal_edge", legal_edges())]
        indexes = [models.Index(fields=["job", "id"], name="changes_of_job")]

    def __str__(self) -> str:
        return f"{self.from_state} -> {self.to_state} ({self.reason})"


class JobLog(models.Model):
    """A line that a handler wrote."""

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey(Job, on_delete=models.DB_CASCADE, related_name="logs", db_index=False)
    execution = models.IntegerField()
    number = models.IntegerField()
    level = models.TextField(db_default="info")
    message = models.TextField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = table("job_logs")
        constraints = [
            models.UniqueConstraint(name="logs_one_number", fields=["job", "execution", "number"]),
            check("logs_level_known", among("level", ["debug", "info", "warning", "error"])),
            check("logs_number_positive", Q(number__gte=1, execution__gte=1)),
        ]

    def __str__(self) -> str:
        return self.message[:80]


class JobArtifact(models.Model):
    """A file that an execution left: where it stands under the artifacts' folder, and in S3 when `uri` is set."""

    id = models.BigAutoField(primary_key=True)
    job = models.ForeignKey(Job, on_delete=models.DB_CASCADE, related_name="artifacts", db_index=False)
    execution = models.IntegerField()
    path = models.TextField()
    size = models.BigIntegerField()
    sha256 = models.TextField()
    content_type = models.TextField()
    uri = models.TextField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = table("job_artifacts")
        constraints = [
            models.UniqueConstraint(name="artifacts_one_path", fields=["job", "execution", "path"]),
            check("artifacts_path_relative", ~Q(path__startswith="/") & ~Q(path="")),
            check("artifacts_path_stays_inside", ~Q(path__regex=r"(^|/)\.\.(/|$)")),
            check("artifacts_size_not_negative", Q(size__gte=0)),
            check("artifacts_sha256_format", Q(sha256__regex=r"^[0-9a-f]{64}$")),
        ]

    def __str__(self) -> str:
        return self.path


class DeadLetter(models.Model):
    """A job that ended Failed and waits for a person: requeue or discard."""

    id = models.UUIDField(primary_key=True)
    job = models.ForeignKey(Job, on_delete=models.DB_CASCADE, related_name="dead_letters")
    type = models.TextField()
    queue = models.TextField()
    failure_kind = models.TextField()
    error_type = models.TextField(null=True)
    error_message = models.TextField(null=True)
    stack = models.TextField(null=True)
    fingerprint = models.TextField()
    attempts = models.IntegerField()
    created_at = models.DateTimeField(db_default=Now())
    resolved_at = models.DateTimeField(null=True)
    resolved_how = models.TextField(null=True)
    resolved_by = models.TextField(null=True)

    class Meta:
        db_table = table("dead_letters")
        constraints = [
            models.UniqueConstraint(
                name="dead_letters_one_pending", fields=["job"], condition=Q(resolved_at__isnull=True)
            ),
            check(
                "dead_letters_resolution_known",
                among("resolved_how", ["requeued", "discarded"]),
            ),
            check(
                "dead_letters_resolved_with_how",
                iff(Q(resolved_at__isnull=False), Q(resolved_how__isnull=False)),
            ),
        ]
        indexes = [
            models.Index("fingerprint", "id", name="dead_letters_by_cause", condition=Q(resolved_at__isnull=True)),
            models.Index("created_at", "id", name="dead_letters_by_age"),
            models.Index("id", name="dead_letters_pending", condition=Q(resolved_at__isnull=True)),
            models.Index(
                "resolved_how",
                F("resolved_at").desc(),
                F("id").desc(),
                name="dead_letters_resolved",
                condition=Q(resolved_at__isnull=False),
            ),
            models.Index(
                name="dead_letters_causes",
                fields=["fingerprint", "created_at", "id"],
                include=["type", "queue"],
                condition=Q(resolved_at__isnull=True),
            ),
            models.Index(
                name="dead_letters_resolved_causes",
                fields=["resolved_how", "fingerprint", "created_at", "id"],
                include=["type", "queue"],
                condition=Q(resolved_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type}: {self.error_type}"
