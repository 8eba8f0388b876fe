"""What the leader found when it looked whether the promises hold, and the report of the last storm."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from jobs.models.base import check, table


class PromiseCheck(models.Model):
    """One look at the invariants. `found` has one object for each that is broken: name, count, examples, since.

    `unanswered`: the names of those that took too long to be answered. `attended`: somebody led, so that what is only
    soon true was looked at too.
    """

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    seconds = models.FloatField(help_text="How long it took.")
    attended = models.BooleanField()
    found = models.JSONField(db_default=[])
    unanswered = models.JSONField(db_default=[])

    class Meta:
        db_table = table("promise_checks")
        constraints = [check("promise_checks_seconds_not_negative", Q(seconds__gte=0))]
        indexes = [models.Index(fields=["at"], name="promise_checks_by_instant")]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M}: {len(self.found)}"


class StormReport(models.Model):
    """The last storm that was run, one row: where, for how long, what was struck, and what was found afterwards.

    `faults`: how many of each kind. `found`: as in `PromiseCheck`, empty where every promise was kept.
    """

    id = models.SmallIntegerField(primary_key=True, db_default=1)
    at = models.DateTimeField(db_default=Now())
    place = models.TextField()
    seed = models.BigIntegerField()
    seconds = models.FloatField()
    jobs = models.IntegerField()
    faults = models.JSONField(db_default={})
    found = models.JSONField(db_default=[])

    class Meta:
        db_table = table("storm_reports")
        constraints = [
            check("storm_reports_one_row", Q(id=1)),
            check("storm_reports_not_negative", Q(seconds__gte=0, jobs__gte=0)),
        ]

    def __str__(self) -> str:
        return f"{self.place}, seed {self.seed}"
