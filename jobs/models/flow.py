"""Flow control: continuations, concurrency keys and their slots, pauses, circuits, rates, queues, known types."""

from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Now

from jobs.bounds import PRIORITIES
from jobs.models.base import among, check, differs, iff, queue_name, table, type_name
from jobs.models.job import Job


class JobDependency(models.Model):
    """`child` starts when its parents are final; `policy` says what a failed parent does to it."""

    id = models.BigAutoField(primary_key=True)
    child = models.ForeignKey(Job, on_delete=models.DB_CASCADE, related_name="dependencies", db_index=False)
    parent = models.ForeignKey(Job, on_delete=models.DB_CASCADE, related_name="dependents")
    policy = models.TextField(db_default="cancel")

    class Meta:
        db_table = table("job_dependencies")
        constraints = [
            models.UniqueConstraint(name="dependencies_one_pair", fields=["child", "parent"]),
            check("dependencies_not_itself", ~Q(child=F("parent"))),
            check("dependencies_policy_known", among("policy", ["cancel", "run"])),
        ]

    def __str__(self) -> str:
        return f"{self.child_id} after {self.parent_id}"


class ConcurrencyKey(models.Model):
    """A key in use. `kind` keeps a client's key and a type's limit of the same text apart."""

    id = models.BigAutoField(primary_key=True)
    kind = models.TextField()
    value = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = table("concurrency_keys")
        constraints = [
            models.UniqueConstraint(name="keys_one_value", fields=["kind", "value"]),
            check("keys_kind_known", among("kind", ["key", "type"])),
        ]

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}"


class ConcurrencySlot(models.Model):
    """Which execution holds which slot of a key."""

    id = models.BigAutoField(primary_key=True)
    key = models.ForeignKey(ConcurrencyKey, on_delete=models.DB_CASCADE, related_name="slots", db_index=False)
    slot = models.SmallIntegerField()
    job = models.ForeignKey(Job, on_delete=models.DB_CASCADE, related_name="slots_held", db_index=False)
    dispatch_id = models.UUIDField()
    taken_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = table("concurrency_slots")
        constraints = [
            models.UniqueConstraint(name="slots_one_holder", fields=["key", "slot"]),
            models.UniqueConstraint(name="slots_one_a_job", fields=["job", "key"]),
            check("slots_number_positive", Q(slot__gte=1)),
        ]

    def __str__(self) -> str:
        return f"{self.key_id}/{self.slot}"


class Queue(models.Model):
    """Settings of a queue; a queue without a row has the defaults."""

    name = models.TextField(primary_key=True)
    slots = models.SmallIntegerField(null=True, help_text="Slots a worker, over its own setting.")
    default_priority = models.SmallIntegerField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = table("queues")
        constraints = [
            check("queues_name_format", queue_name("name")),
            check("queues_slots_range", Q(slots__range=(0, 1000))),
            check("queues_priority_range", Q(default_priority__range=PRIORITIES)),
        ]

    def __str__(self) -> str:
        return self.name


class Pause(models.Model):
    """Something that is paused, by whom, why and until when (null: until somebody resumes it)."""

    id = models.BigAutoField(primary_key=True)
    scope = models.TextField()
    value = models.TextField()
    reason = models.TextField(db_default="")
    paused_by = models.TextField(null=True)
    until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = table("pauses")
        constraints = [
            models.UniqueConstraint(name="pauses_one_target", fields=["scope", "value"]),
            check("pauses_scope_known", among("scope", ["queue", "type", "tag", "key"])),
            check("pauses_value_not_empty", ~Q(value="")),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.value}"


class Circuit(models.Model):
    """The breaker of a type, one for the whole cluster: gate of the jobs that wait while it is not closed."""

    type = models.TextField(primary_key=True)
    state = models.TextField(db_default="closed")
    opened_at = models.DateTimeField(null=True)
    retry_at = models.DateTimeField(null=True)
    probe_job_id = models.UUIDField(null=True)
    probe_deadline = models.DateTimeField(null=True)
    probe_seconds = models.FloatField(null=True, help_text="How long the probe may run.")
    closed_at = models.DateTimeField(null=True, help_text="When it closed last: what ended before counts no more.")
    open_for = models.FloatField(db_default=30.0, help_text="Seconds until a probe is let through.")
    executions = models.IntegerField(db_default=0, help_text="Those in the window that opened it.")
    failures = models.IntegerField(db_default=0)
    span = models.FloatField(db_default=30.0, help_text="The length of that window, in seconds.")

    class Meta:
        db_table = table("circuits")
        constraints = [
            check("circuits_type_format", type_name("type")),
            check("circuits_state_known", among("state", ["closed", "open", "half_open"])),
            check("circuits_open_has_instant", Q(state="closed") | Q(opened_at__isnull=False)),
            check(
                "circuits_probe_has_deadline",
                iff(Q(probe_job_id__isnull=False), Q(probe_deadline__isnull=False)),
            ),
            check("circuits_probe_when_half_open", iff(Q(state="half_open"), Q(probe_job_id__isnull=False))),
            check("circuits_retry_when_open", differs("state", "open") | Q(retry_at__isnull=False)),
            check("circuits_spans_positive", Q(open_for__gt=Value("0"), span__gt=Value("0"))),
            check("circuits_failures_within_executions", Q(failures__gte=0, failures__lte=F("executions"))),
        ]

    def __str__(self) -> str:
        return f"{self.type}: {self.state}"


class Rate(models.Model):
    """How many jobs of a type may start in any window (seconds), cluster-wide, and those that did lately.

    `spent` has the starts of the last window in order: pairs of the number of a tenth of a window, and of starts in it.
    """

    type = models.TextField(primary_key=True)
    allowed = models.IntegerField()
    window = models.FloatField()
    spent = models.JSONField(db_default=[])

    class Meta:
        db_table = table("rates")
        constraints = [
            check("rates_type_format", type_name("type")),
            check("rates_allowed_positive", Q(allowed__gte=1, window__gt=Value("0"))),
        ]

    def __str__(self) -> str:
        return f"{self.type}: {self.allowed}/{self.window:g} s"


class Counter(models.Model):
    """Something that is counted since the database was made, such as what the sweep of the gates had to do."""

    name = models.TextField(primary_key=True)
    value = models.BigIntegerField(db_default=0)

    class Meta:
        db_table = table("counters")
        constraints = [check("counters_not_negative", Q(value__gte=0))]

    def __str__(self) -> str:
        return f"{self.name}: {self.value}"


class UnservedType(models.Model):
    """A type that jobs of a served queue have and none of its live workers has, as whoever leads has seen it."""

    id = models.BigAutoField(primary_key=True)
    queue = models.TextField()
    type = models.TextField()
    since = models.DateTimeField(db_default=Now(), help_text="So long without a break.")
    seen_at = models.DateTimeField(db_default=Now(), help_text="When somebody last looked.")

    class Meta:
        db_table = table("unserved_types")
        constraints = [
            models.UniqueConstraint(name="unserved_one_pair", fields=["queue", "type"]),
            check("unserved_queue_format", queue_name("queue")),
            check("unserved_type_format", type_name("type")),
            check("unserved_seen_after_since", Q(seen_at__gte=F("since"))),
        ]

    def __str__(self) -> str:
        return f"{self.queue}: {self.type}"


class KnownType(models.Model):
    """A type that was seen, when a live worker last served it, and its limits in the whole cluster.

    Limits hold as workers declare them, until a person changes them (`limits_by`).
    """

    name = models.TextField(primary_key=True)
    first_seen_at = models.DateTimeField(db_default=Now())
    last_served_at = models.DateTimeField(null=True)
    max_running = models.SmallIntegerField(null=True, help_text="How many may run at once; null: any number.")
    declared = models.JSONField(null=True, help_text="The limits that workers declare.")
    limits_by = models.TextField(null=True, help_text="Who has changed its limits; null: nobody, they are declared.")

    class Meta:
        db_table = table("job_types")
        constraints = [
            check("job_types_name_format", type_name("name")),
            check("job_types_limit_positive", Q(max_running__gte=1)),
        ]

    def __str__(self) -> str:
        return self.name
