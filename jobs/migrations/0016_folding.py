"""What is still to be folded of the metrics is found without a look at what was folded before."""

import zoneinfo

import django.db.models.functions.datetime
import django.db.models.lookups
from django.db import migrations, models

from jobs.migrations._online import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('jobs', '0015_promises'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='metricsminute',
            index=models.Index(fields=['minute'], condition=models.Q(('worker_id__isnull', False)), name='metrics_of_workers'),
        ),
        AddIndexConcurrently(
            model_name='metricsminute',
            index=models.Index(fields=['minute'], condition=models.Q(django.db.models.lookups.Exact(django.db.models.functions.datetime.ExtractMinute('minute', tzinfo=zoneinfo.ZoneInfo(key='UTC')), 0), _negated=True), name='metrics_by_minute'),
        ),
    ]
