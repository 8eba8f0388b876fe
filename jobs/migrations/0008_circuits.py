"""What a breaker needs to be opened, probed and closed. The table is small, and no release before this one wrote it."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0007_jobs_reannounced_at'),
    ]

    operations = [
        migrations.AddField(
            model_name='circuit',
            name='closed_at',
            field=models.DateTimeField(help_text='When it closed last: what ended before counts no more.', null=True),
        ),
        migrations.AddField(
            model_name='circuit',
            name='executions',
            field=models.IntegerField(db_default=0, help_text='Those in the window that opened it.'),
        ),
        migrations.AddField(
            model_name='circuit',
            name='failures',
            field=models.IntegerField(db_default=0),
        ),
        migrations.AddField(
            model_name='circuit',
            name='open_for',
            field=models.FloatField(db_default=30.0, help_text='Seconds until a probe is let through.'),
        ),
        migrations.AddField(
            model_name='circuit',
            name='probe_seconds',
            field=models.FloatField(help_text='How long the probe may run.', null=True),
        ),
        migrations.AddField(
            model_name='circuit',
            name='span',
            field=models.FloatField(db_default=30.0, help_text='The length of that window, in seconds.'),
        ),
        migrations.AddConstraint(
            model_name='circuit',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state', 'half_open'), ('probe_job_id__isnull', False)), models.Q(models.Q(('state', 'half_open'), _negated=True), models.Q(('probe_job_id__isnull', False), _negated=True)), _connector='OR'), name='circuits_probe_when_half_open'),
        ),
        migrations.AddConstraint(
            model_name='circuit',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state', 'open'), _negated=True), ('retry_at__isnull', False), _connector='OR'), name='circuits_retry_when_open'),
        ),
        migrations.AddConstraint(
            model_name='circuit',
            constraint=models.CheckConstraint(condition=models.Q(('open_for__gt', 0), ('span__gt', 0)), name='circuits_spans_positive'),
        ),
        migrations.AddConstraint(
            model_name='circuit',
            constraint=models.CheckConstraint(condition=models.Q(('failures__gte', 0), ('failures__lte', models.F('executions'))), name='circuits_failures_within_executions'),
        ),
    ]
