"""What belongs to one job: its executions, its time line, its lines, its files. Shown by job, or newest first."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.admin.base import ReadOnly, named
from jobs.admin.columns import instant, job_link, labelled, short
from jobs.admin.filters import OfJobFilter, uuid_of
from jobs.admin.site import site
from jobs.models import JobArtifact, JobAttempt, JobLog, JobStateChange

named(JobAttempt, _("attempt"), _("attempts"))
named(JobStateChange, _("state change"), _("state changes"))
named(JobLog, _("log line"), _("log lines"))
named(JobArtifact, _("artifact"), _("artifacts"))


class OfJob(ReadOnly):
    """Rows of a job: `?job=<id>`, or a search for the id, shows one job's."""

    search_fields = ("id",)
    search_help_text = _("The id of a job.")
    list_filter: tuple[Any, ...] = (OfJobFilter,)
    job_ = job_link("job_id", _("Job"))

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """The rows of the job with this id, none for what is no id."""
        text = search_term.strip()
        if not text:
            return queryset, False
        job = uuid_of(text)
        return (queryset.none() if job is None else queryset.filter(job_id=job)), False


@admin.register(JobAttempt, site=site)
class AttemptAdmin(OfJob):
    """Executions that have ended."""

    list_display = ("id", "job_", "ordinal_", "outcome_", "started", "ended", "worker", "error")
    ordinal_ = labelled("ordinal", _("Execution"))
    outcome_ = labelled("outcome", _("Outcome"))
    started = instant("started_at", _("Started"))
    ended = instant("ended_at", _("Ended"))
    worker = labelled("worker_name", _("Worker"))
    error = labelled("error_type", _("Error"))


@admin.register(JobStateChange, site=site)
class ChangeAdmin(OfJob):
    """Steps of the time lines."""

    list_display = ("id", "job_", "from_", "to_", "reason_", "when", "who")
    from_ = labelled("from_state", _("From"))
    to_ = labelled("to_state", _("To"))
    reason_ = labelled("reason", _("Reason"))
    when = instant("at", _("Instant"))
    who = short("actor", _("By"))


@admin.register(JobLog, site=site)
class LogAdmin(OfJob):
    """Lines that handlers wrote."""

    list_display = ("id", "job_", "execution_", "level_", "text", "when")
    execution_ = labelled("execution", _("Execution"))
    level_ = labelled("level", _("Level"))
    text = short("message", _("Message"))
    when = instant("at", _("Instant"))


@admin.register(JobArtifact, site=site)
class ArtifactAdmin(OfJob):
    """Files that executions left."""

    list_display = ("id", "job_", "path_", "size_", "kind", "created")
    path_ = short("path", _("Path"))
    size_ = labelled("size", _("Bytes"))
    kind = short("content_type", _("Content type"))
    created = instant("created_at", _("Created"))
