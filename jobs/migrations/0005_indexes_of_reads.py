"""What the screens walk and group dead letters by and find suspects by; built beside running work."""

from django.db import migrations, models

from jobs.migrations._online import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('jobs', '0004_bulk_runs'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='deadletter',
            index=models.Index(models.F('id'), condition=models.Q(('resolved_at__isnull', True)), name='dead_letters_pending'),
        ),
        AddIndexConcurrently(
            model_name='deadletter',
            index=models.Index(models.F('resolved_how'), models.OrderBy(models.F('resolved_at'), descending=True), models.OrderBy(models.F('id'), descending=True), condition=models.Q(('resolved_at__isnull', False)), name='dead_letters_resolved'),
        ),
        AddIndexConcurrently(
            model_name='deadletter',
            index=models.Index(condition=models.Q(('resolved_at__isnull', True)), fields=['fingerprint', 'created_at', 'id'], include=('type', 'queue'), name='dead_letters_causes'),
        ),
        AddIndexConcurrently(
            model_name='deadletter',
            index=models.Index(condition=models.Q(('resolved_at__isnull', False)), fields=['resolved_how', 'fingerprint', 'created_at', 'id'], include=('type', 'queue'), name='dead_letters_resolved_causes'),
        ),
        AddIndexConcurrently(
            model_name='job',
            index=models.Index(condition=models.Q(('lost_count__gte', 2), ('state__in', ['Enqueued', 'Processing', 'Scheduled']), ('state__isnull', False)), fields=['lost_count', 'id'], name='jobs_suspect'),
        ),
    ]
