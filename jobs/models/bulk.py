"""Acts over many at once: what was asked, how far it has come, and what came of it."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from jobs.models.base import among, check, iff, one_of, table

# What may be done to what; `jobs.bulk.acts` has the verbs.
ACTS = {"jobs": ("cancel", "requeue", "delete", "run_now"), "letters": ("requeue", "discard")}
UNDER_WAY = ("running", "stopping")
ENDED = ("stopped", "done", "failed")
IDS_MOST = 10_000


class BulkRun(models.Model):
    """One act over the named `ids`, or over all that match `filter` and are older than `before`.

    `holder` is the thread that works on it, `beat_at` its last sign of life; `cursor` is the last id that it has dealt
    with. `total` is null where nobody knows it, and `estimated` says that it comes from statistics.
    """

    id = models.UUIDField(primary_key=True)
    act = models.TextField()
    target = models.TextField()
    ids = ArrayField(models.UUIDField(), null=True)
    filter = models.JSONField(null=True)
    before = models.DateTimeField()
    actor = models.TextField(null=True)
    reason = models.TextField(null=True)
    total = models.BigIntegerField(null=True)
    estimated = models.BooleanField(db_default=False)
    done = models.BigIntegerField(db_default=0)
    applied = models.BigIntegerField(db_default=0)
    requested = models.BigIntegerField(db_default=0)
    skipped = models.JSONField(db_default={})
    cursor = models.UUIDField(null=True)
    state = models.TextField(db_default="running")
    error = models.TextField(null=True)
    holder = models.UUIDField(null=True)
    beat_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = table("bulk_runs")
        constraints = [
            check(
                "bulk_runs_act_of_target",
                (Q(target="jobs") & among("act", ACTS["jobs"])) | (Q(target="letters") & among("act", ACTS["letters"])),
            ),
            check("bulk_runs_ids_or_filter", iff(Q(ids__isnull=True), Q(filter__isnull=False))),
            check("bulk_runs_ids_bounded", Q(ids__isnull=True) | Q(ids__len__gte=1, ids__len__lte=IDS_MOST)),
            check("bulk_runs_total_not_negative", Q(total__gte=0)),
            check(
                "bulk_runs_counts_add_up",
                Q(requested__gte=0, requested__lte=F("applied"), applied__lte=F("done")),
            ),
            check("bulk_runs_state_known", among("state", (*UNDER_WAY, *ENDED))),
            check("bulk_runs_finished_when_ended", iff(Q(finished_at__isnull=False), among("state", ENDED))),
            check("bulk_runs_error_when_failed", iff(Q(error__isnull=False), Q(state="failed"))),
            check("bulk_runs_held_while_under_way", Q(holder__isnull=True) | among("state", UNDER_WAY)),
            check("bulk_runs_holder_beats", Q(holder__isnull=True) | Q(beat_at__isnull=False)),
        ]
        indexes = [
            models.Index("id", name="bulk_runs_under_way", condition=one_of("state", UNDER_WAY)),
            models.Index("created_at", "id", name="bulk_runs_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.act} {self.target} {self.id}"
