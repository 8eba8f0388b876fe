"""The promises in the admin: the leader's looks, and the last storm."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from jobs.admin.base import ReadOnly, named
from jobs.admin.columns import instant, labelled
from jobs.admin.site import site
from jobs.models import PromiseCheck, StormReport

named(PromiseCheck, _("check of the promises"), _("checks of the promises"))
named(StormReport, _("storm"), _("storms"))


@admin.register(PromiseCheck, site=site)
class PromiseCheckAdmin(ReadOnly):
    """Looks at the promises, the newest first."""

    list_display = ("id", "made", "took", "led")
    ordering = ("-id",)
    made = instant("at", _("At"))
    took = labelled("seconds", _("Seconds"))
    led = labelled("attended", _("Somebody led"))


@admin.register(StormReport, site=site)
class StormReportAdmin(ReadOnly):
    """The last storm."""

    list_display = ("id", "made", "where", "seed_", "took", "jobs_")
    made = instant("at", _("At"))
    where = labelled("place", _("Place"))
    seed_ = labelled("seed", _("Seed"))
    took = labelled("seconds", _("Seconds"))
    jobs_ = labelled("jobs", _("Jobs"))
