"""Jobs parked for a breaker are found by its type alone; an entry only for those. Built beside running work."""

from django.db import migrations, models

from jobs.migrations._online import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('jobs', '0010_unknown_order'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='job',
            index=models.Index(models.F('gate'), models.OrderBy(models.F('priority'), descending=True), models.F('created_at'), models.F('id'), condition=models.Q(('waiting_for', 'circuit')), name='jobs_circuit_order'),
        ),
    ]
