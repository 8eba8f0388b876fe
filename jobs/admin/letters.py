"""Dead letters in the admin: requeued or discarded as by the API."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from jobs import access, operations
from jobs.admin.base import named
from jobs.admin.columns import instant, labelled, short, short_id
from jobs.admin.filters import OfJobFilter, PendingFilter, uuid_of
from jobs.admin.history import OfJob
from jobs.admin.jobs import BOTH
from jobs.admin.site import site
from jobs.models import DeadLetter

named(DeadLetter, _("dead letter"), _("dead letters"))


@admin.register(DeadLetter, site=site)
class LetterAdmin(OfJob):
    """Jobs that ended Failed and wait for a person, newest first."""

    list_display = ("key", "job_", "type_", "queue_", "error", "message", "created", "resolution", "who")
    list_filter = (PendingFilter, OfJobFilter)
    search_help_text = _("The id of a job or of a dead letter, or a fingerprint.")
    actions = ("requeue", "discard")

    key = short_id(_("Id"))
    type_ = labelled("type", _("Type"))
    queue_ = labelled("queue", _("Queue"))
    error = labelled("error_type", _("Error"))
    message = short("error_message", _("Message"))
    created = instant("created_at", _("Created"))
    resolution = labelled("resolved_how", _("Resolution"))
    who = short("resolved_by", _("By"))

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """By either id, or the pending ones of a cause, which have an index by fingerprint."""
        text = search_term.strip()
        if not text:
            return queryset, False
        id_ = uuid_of(text)
        if id_ is None:
            return queryset.filter(fingerprint=text, resolved_at__isnull=True), False
        own = queryset.filter(id=id_)
        return (own if own.exists() else queryset.filter(job_id=id_)), False

    @admin.action(permissions=["operate"], description=_("Requeue"), location=BOTH)
    def requeue(self, request: HttpRequest, rows: Any) -> None:
        """Run their jobs again."""
        actor = access.actor(request)
        self.each(
            request,
            rows,
            lambda letter: operations.requeue_letter(letter.id, actor=actor),
            lambda n: ngettext("%(n)d job requeued.", "%(n)d jobs requeued.", n) % {"n": n},
            "requeue",
        )

    @admin.action(permissions=["operate"], description=_("Discard"), location=BOTH)
    def discard(self, request: HttpRequest, rows: Any) -> None:
        """Take them off the list; their jobs stay Failed."""
        actor = access.actor(request)
        self.each(
            request,
            rows,
            lambda letter: operations.discard_letter(letter.id, actor=actor),
            lambda n: ngettext("%(n)d dead letter discarded.", "%(n)d dead letters discarded.", n) % {"n": n},
            "discard",
        )
