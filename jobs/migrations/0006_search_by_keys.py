"""Jobs are found by their idempotency and concurrency keys: an entry only for jobs that have one."""

from django.db import migrations, models
from django.db.models import F, Q

from jobs.migrations._online import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False  # an index that is built concurrently has no transaction around it

    dependencies = [
        ('jobs', '0005_indexes_of_reads'),
    ]

    operations = [
        AddIndexConcurrently(
            'job',
            models.Index(
                'idempotency_key', F('id').desc(), name='jobs_by_idempotency_key',
                condition=Q(idempotency_key__isnull=False),
            ),
        ),
        AddIndexConcurrently(
            'job',
            models.Index(
                'concurrency_key', F('id').desc(), name='jobs_by_concurrency_key',
                condition=Q(concurrency_key__isnull=False),
            ),
        ),
    ]
