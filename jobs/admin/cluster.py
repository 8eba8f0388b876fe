"""The cluster in the admin: workers, leases, schedules, the outbox, bulk acts, the figures by the minute."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from jobs.admin.base import ReadOnly, named
from jobs.admin.columns import instant, job_link, labelled, short, short_id
from jobs.admin.site import site
from jobs.models import BulkRun, Lease, MetricsMinute, OutboxMessage, RecurringJob, Worker

named(Worker, _("worker"), _("workers"))
named(Lease, _("lease"), _("leases"))
named(RecurringJob, _("schedule"), _("schedules"))
named(OutboxMessage, _("outbox message"), _("outbox messages"))
named(BulkRun, _("bulk act"), _("bulk acts"))
named(MetricsMinute, _("minute of metrics"), _("minutes of metrics"))


@admin.register(Worker, site=site)
class WorkerAdmin(ReadOnly):
    """Worker processes, live and gone."""

    list_display = ("name", "state_", "host_", "pid_", "version_", "started", "seen", "stopped")
    state_ = labelled("state", _("State"))
    host_ = short("host", _("Host"))
    pid_ = labelled("pid", _("Process"))
    version_ = labelled("version", _("Version"))
    started = instant("started_at", _("Started"))
    seen = instant("seen_at", _("Heartbeat"))
    stopped = instant("stopped_at", _("Stopped"))


@admin.register(Lease, site=site)
class LeaseAdmin(ReadOnly):
    """Who leads."""

    list_display = ("name", "holder_", "until_")
    ordering = ("name",)
    holder_ = labelled("holder", _("Holder"))
    until_ = instant("until", _("Until"))


@admin.register(RecurringJob, site=site)
class RecurringAdmin(ReadOnly):
    """Schedules."""

    list_display = ("name", "type_", "cron_", "zone", "enabled", "next", "last")
    ordering = ("name",)
    type_ = labelled("type", _("Type"))
    cron_ = labelled("cron", _("When"))
    zone = labelled("timezone", _("Time zone"))
    next = instant("next_run_at", _("Next"))
    last = instant("last_run_at", _("Last"))


@admin.register(OutboxMessage, site=site)
class OutboxAdmin(ReadOnly):
    """Messages that wait for the broker."""

    list_display = ("id", "kind_", "job_", "queue_", "failures_", "created", "locked")
    kind_ = labelled("kind", _("Kind"))
    job_ = job_link("job_id", _("Job"))
    queue_ = labelled("queue", _("Queue"))
    failures_ = labelled("failures", _("Failures"))
    created = instant("created_at", _("Created"))
    locked = instant("locked_until", _("Until"))


@admin.register(BulkRun, site=site)
class BulkAdmin(ReadOnly):
    """Acts over many."""

    list_display = ("key", "act_", "target_", "state_", "done_", "applied_", "who", "created")
    key = short_id(_("Id"))
    act_ = labelled("act", _("Act"))
    target_ = labelled("target", _("Target"))
    state_ = labelled("state", _("State"))
    done_ = labelled("done", _("Done"))
    applied_ = labelled("applied", _("Applied"))
    who = short("actor", _("By"))
    created = instant("created_at", _("Created"))


@admin.register(MetricsMinute, site=site)
class MetricsAdmin(ReadOnly):
    """What ended in a minute."""

    list_display = ("id", "when", "queue_", "type_", "succeeded_", "failed_", "retried_")
    when = instant("minute", _("Instant"))
    queue_ = labelled("queue", _("Queue"))
    type_ = labelled("type", _("Type"))
    succeeded_ = labelled("succeeded", _("Succeeded"))
    failed_ = labelled("failed", _("Failed"))
    retried_ = labelled("retried", _("Retried"))
