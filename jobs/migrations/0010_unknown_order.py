"""Jobs parked for an unknown type are found by queue and type; an entry only for those. Built beside running work."""

from django.db import migrations, models

from jobs.migrations._online import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('jobs', '0009_unserved_types'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='job',
            index=models.Index(models.F('queue'), models.F('gate'), models.OrderBy(models.F('priority'), descending=True), models.F('enqueued_at'), models.F('id'), condition=models.Q(('state', 'Scheduled'), ('waiting_for', 'unknown_type')), name='jobs_unknown_order'),
        ),
    ]
