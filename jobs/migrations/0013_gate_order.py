"""What waits at a key, a limit or a pause is found by its gate alone, and jobs by their schedule."""

from django.db import migrations, models

from jobs.migrations._online import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('jobs', '0012_time_and_flow'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='job',
            index=models.Index(models.F('waiting_for'), models.F('gate'), models.OrderBy(models.F('priority'), descending=True), models.F('created_at'), models.F('id'), condition=models.Q(('waiting_for__in', ['concurrency_key', 'type_limit', 'rate', 'pause']), ('waiting_for__isnull', False)), name='jobs_gate_order'),
        ),
        AddIndexConcurrently(
            model_name='job',
            index=models.Index(models.F('concurrency_key'), models.F('enqueued_at'), condition=models.Q(('concurrency_key__isnull', False), ('finished_at__isnull', True), ('waiting_for__isnull', True)), name='jobs_key_waiting'),
        ),
        AddIndexConcurrently(
            model_name='job',
            index=models.Index(models.F('recurring_job_id'), condition=models.Q(('recurring_job_id__isnull', False), ('state__in', ['Enqueued', 'Processing', 'Scheduled']), ('state__isnull', False)), name='jobs_recurring_active'),
        ),
        AddIndexConcurrently(
            model_name='job',
            index=models.Index(models.F('recurring_job_id'), models.OrderBy(models.F('id'), descending=True), condition=models.Q(('recurring_job_id__isnull', False)), name='jobs_by_recurring'),
        ),
    ]
