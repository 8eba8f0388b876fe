"""Checks that are short to read: a list is one constant, what may be NULL is not said twice, a number is no cast."""

from django.db import migrations
from django.db.models import BooleanField, CheckConstraint, F, Func, Q, TextField, Value
from django.db.models.functions import Least, Length
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual

from jobs.migrations._online import ReplaceChecks


def said(joiner, *parts, end=""):
    return Q(Func(*parts, template=f"(%(expressions)s{end})", arg_joiner=joiner, output_field=BooleanField()))


def listed(values):
    return Value("{" + ",".join(f'"{value}"' for value in values) + "}")


def among(field, *values):
    return said(" = ANY (", F(field) if isinstance(field, str) else field, listed(values), end=")")


def none_of(field, *values):
    return said(" <> ALL (", F(field), listed(values), end=")")


def differs(field, value):
    return said(" <> ", F(field), Value(value))


def holds(condition):
    return said("", condition, end=" IS TRUE")


def iff(left, right):
    return said(" = ", left, right)


def is_set(field):
    return Q(**{f"{field}__isnull": False})


def sized(field, most):
    return Q(LessThanOrEqual(Length(F(field)), most))


def type_name(field):
    return sized(field, 200) & Q(**{f"{field}__regex": "^[a-z0-9._-]+$"})


def queue_name(field):
    return sized(field, 100) & none_of(field, "", "dead-letter") & said(" !~ ", F(field), Value("[^a-z0-9._-]|_error$"))


def legal_edges():
    start = Func(F("from_state"), function="quote_nullable", output_field=TextField())
    pair = Func(start, F("to_state"), template="(%(expressions)s)", arg_joiner=" || ", output_field=TextField())
    return among(
        pair,
        "NULLScheduled", "NULLEnqueued", "'Scheduled'Enqueued", "'Scheduled'Failed", "'Scheduled'Cancelled",
        "'Enqueued'Processing", "'Enqueued'Scheduled", "'Enqueued'Cancelled", "'Processing'Succeeded",
        "'Processing'Scheduled", "'Processing'Enqueued", "'Processing'Failed", "'Processing'Cancelled",
        "'Failed'Enqueued", "'Failed'Scheduled", "'Cancelled'Enqueued", "'Cancelled'Scheduled",
    )


def replaced(model, **conditions):
    return ReplaceChecks(model, [CheckConstraint(name=name, condition=rule) for name, rule in conditions.items()])


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("jobs", "0018_cheap_checks"),
    ]

    operations = [
        replaced(
            "bulkrun",
            bulk_runs_act_of_target=(
                Q(target="jobs") & among("act", "cancel", "requeue", "delete", "run_now")
                | Q(target="letters") & among("act", "requeue", "discard")
            ),
            bulk_runs_total_not_negative=Q(total__gte=0),
            bulk_runs_state_known=among("state", "running", "stopping", "stopped", "done", "failed"),
            bulk_runs_finished_when_ended=iff(is_set("finished_at"), among("state", "stopped", "done", "failed")),
            bulk_runs_held_while_under_way=Q(holder__isnull=True) | among("state", "running", "stopping"),
        ),
        replaced(
            "circuit",
            circuits_type_format=type_name("type"),
            circuits_state_known=among("state", "closed", "open", "half_open"),
            circuits_retry_when_open=differs("state", "open") | is_set("retry_at"),
            circuits_spans_positive=Q(open_for__gt=Value("0"), span__gt=Value("0")),
        ),
        replaced("concurrencykey", keys_kind_known=among("kind", "key", "type")),
        replaced("deadletter", dead_letters_resolution_known=among("resolved_how", "requeued", "discarded")),
        replaced("jobdependency", dependencies_policy_known=among("policy", "cancel", "run")),
        replaced("joblog", logs_level_known=among("level", "debug", "info", "warning", "error")),
        replaced("knowntype", job_types_name_format=type_name("name"), job_types_limit_positive=Q(max_running__gte=1)),
        replaced(
            "metricsminute",
            metrics_counts_not_negative=Q(
                GreaterThanOrEqual(Least(*map(F, ("succeeded", "failed", "retried", "cancelled", "lost"))), 0)
            ),
        ),
        replaced(
            "outboxmessage",
            outbox_kind_known=among("kind", "dispatch", "dead_letter"),
            outbox_dispatch_has_token=differs("kind", "dispatch") | is_set("dispatch_id"),
        ),
        replaced("pause", pauses_scope_known=among("scope", "queue", "type", "tag", "key")),
        replaced(
            "queue",
            queues_name_format=queue_name("name"),
            queues_slots_range=Q(slots__range=(0, 1000)),
            queues_priority_range=Q(default_priority__range=(-10, 10)),
        ),
        replaced(
            "rate",
            rates_type_format=type_name("type"),
            rates_allowed_positive=Q(allowed__gte=1, window__gt=Value("0")),
        ),
        replaced(
            "recurringjob",
            recurring_type_format=type_name("type"),
            recurring_queue_format=queue_name("queue"),
            recurring_overlap_known=among("overlap", "skip", "allow", "queue"),
            recurring_misfire_known=among("misfire", "once", "skip", "all"),
            recurring_source_known=among("source", "declared", "manual"),
            recurring_priority_range=Q(priority__range=(-10, 10)),
            recurring_why_known=among("last_skipped_why", "overlap", "misfire"),
        ),
        replaced("unservedtype", unserved_queue_format=queue_name("queue"), unserved_type_format=type_name("type")),
        replaced("worker", workers_state_known=among("state", "Online", "Draining", "Offline")),
        replaced(
            "job",
            jobs_state_known=among("state", "Scheduled", "Enqueued", "Processing", "Succeeded", "Failed", "Cancelled"),
            jobs_type_format=type_name("type"),
            jobs_queue_format=queue_name("queue"),
            jobs_timeout_positive=Q(timeout__gt=Value("0"), timeout__lte=Value("3162240000.0")),
            jobs_token_when_dispatched=none_of("state", "Enqueued", "Processing") | is_set("dispatch_id"),
            jobs_enqueued_has_instant=differs("state", "Enqueued") | is_set("enqueued_at"),
            jobs_finished_when_final=iff(among("state", "Cancelled", "Failed", "Succeeded"), is_set("finished_at")),
            jobs_waiting_known=among(
                "waiting_for", "due", "retry", "snooze", "lock", "parents", "concurrency_key", "type_limit",
                "rate", "pause", "circuit", "unknown_type",
            ),
            jobs_instant_when_timed=iff(
                is_set("run_at"), holds(among("waiting_for", "due", "retry", "snooze", "lock"))
            ),
            jobs_gate_when_parked=Q(gate__isnull=True)
            | holds(
                among(
                    "waiting_for", "parents", "concurrency_key", "type_limit", "rate", "pause", "circuit",
                    "unknown_type",
                )
            ),
            jobs_failure_kind_known=among(
                "failure_kind", "error", "permanent", "timeout", "worker_lost", "interrupted", "business",
                "unknown_type",
            ),
            jobs_limit_positive=Q(concurrency_limit__gte=1),
        ),
        replaced(
            "jobattempt",
            attempts_outcome_known=among(
                "outcome", "Succeeded", "Failed", "TimedOut", "Cancelled", "WorkerLost", "Interrupted", "Snoozed",
                "Business",
            ),
            attempts_duration_not_negative=Q(duration__gte=Value("0")),
        ),
        replaced("jobstatechange", changes_legal_edge=legal_edges()),
    ]
