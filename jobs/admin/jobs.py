"""Jobs in the admin: found by what an index finds, cancelled, requeued and deleted as by the API."""

from contextlib import suppress
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.options import ActionLocation
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from jobs import access, operations
from jobs.admin.base import ReadOnly, named
from jobs.admin.columns import instant, labelled, short_id
from jobs.admin.filters import StateFilter, TypeFilter
from jobs.admin.listing import PAGES, PER_PAGE
from jobs.admin.site import site
from jobs.bounds import KEY_LENGTH, is_type
from jobs.models import DeadLetter, Job, JobArtifact, JobAttempt, JobLog, JobStateChange

BOTH = (ActionLocation.CHANGE_LIST, ActionLocation.CHANGE_FORM)
HISTORY = (JobAttempt, JobStateChange, JobLog, JobArtifact, DeadLetter)
FOUND = PAGES * PER_PAGE

named(Job, _("job"), _("jobs"))


def _meanings(text: str) -> list[Q]:
    """What a search may mean, each with an index of its own; the text is compared, never a pattern."""
    found = [Q(unique_key=text)] if len(text) <= KEY_LENGTH else []
    if is_type(text):
        found += [Q(type=text), Q(queue=text)]
    with suppress(ValueError):
        found.append(Q(id=UUID(text)))
    return found


@admin.register(Job, site=site)
class JobAdmin(ReadOnly):
    """The jobs, newest first."""

    list_display = ("key", "type_", "queue_", "state_", "attempts", "created", "finished", "error")
    list_filter = (StateFilter, TypeFilter)
    search_fields = ("id",)
    search_help_text = _("An id, or exactly a type, a queue or a unique key.")
    extras = ("history",)
    actions = ("cancel", "requeue", "erase")

    key = short_id(_("Id"))
    type_ = labelled("type", _("Type"))
    queue_ = labelled("queue", _("Queue"))
    state_ = labelled("state", _("State"))
    created = instant("created_at", _("Created"))
    finished = instant("finished_at", _("Finished"))
    error = labelled("error_type", _("Error"))

    @admin.display(description=_("Attempts"))
    def attempts(self, job: Job) -> str:
        """Attempts used of those allowed."""
        return f"{job.attempts_used}/{job.max_attempts}"

    @admin.display(description=_("History"))
    def history(self, job: Job) -> SafeString:
        """Ways to the job's rows in other tables."""
        links = (
            (
                f"{reverse(f'admin:jobs_{model._meta.model_name}_changelist')}?job={job.pk}",
                model._meta.verbose_name_plural,
            )
            for model in HISTORY
        )
        return format_html_join(" · ", '<a href="{}">{}</a>', links)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Without what a list does not show and may be large."""
        rows: QuerySet[Any] = super().get_queryset(request)
        return (
            rows if request.resolver_match.kwargs.get("object_id") else rows.defer("payload", "result", "worker_label")
        )

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """The newest of each meaning: one condition with OR would read the whole table."""
        text = search_term.strip()
        if not text:
            return queryset, False
        ids: set[UUID] = set()
        for meaning in _meanings(text):
            ids.update(queryset.filter(meaning).order_by("-id").values_list("id", flat=True)[:FOUND])
        return queryset.filter(id__in=ids), False

    @admin.action(permissions=["operate"], description=_("Cancel"), location=BOTH)
    def cancel(self, request: HttpRequest, rows: Any) -> None:
        """Waiting ones at once, running ones by request."""
        actor = access.actor(request)
        self.each(
            request,
            rows,
            lambda job: operations.cancel(job.id, actor=actor),
            lambda n: (
                ngettext("%(n)d job cancelled or asked to stop.", "%(n)d jobs cancelled or asked to stop.", n)
                % {"n": n}
            ),
            "cancel",
        )

    @admin.action(permissions=["operate"], description=_("Requeue"), location=BOTH)
    def requeue(self, request: HttpRequest, rows: Any) -> None:
        """Failed and cancelled ones run again."""
        actor = access.actor(request)
        self.each(
            request,
            rows,
            lambda job: operations.requeue(job.id, actor=actor),
            lambda n: ngettext("%(n)d job requeued.", "%(n)d jobs requeued.", n) % {"n": n},
            "requeue",
        )

    @admin.action(permissions=["erase"], description=_("Delete"))
    def erase(self, request: HttpRequest, rows: Any) -> None:
        """Finished ones, with their history."""
        self.each(
            request,
            rows,
            lambda job: operations.delete(job.id),
            lambda n: ngettext("%(n)d job deleted.", "%(n)d jobs deleted.", n) % {"n": n},
            "delete",
        )
