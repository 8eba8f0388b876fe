"""Acts over many at once."""

import django.contrib.postgres.fields
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0003_workers_settled_at'),
    ]

    operations = [
        migrations.CreateModel(
            name='BulkRun',
            fields=[
                ('id', models.UUIDField(primary_key=True, serialize=False)),
                ('act', models.TextField()),
                ('target', models.TextField()),
                ('ids', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), null=True)),
                ('filter', models.JSONField(null=True)),
                ('before', models.DateTimeField()),
                ('actor', models.TextField(null=True)),
                ('reason', models.TextField(null=True)),
                ('total', models.BigIntegerField(null=True)),
                ('estimated', models.BooleanField(db_default=False)),
                ('done', models.BigIntegerField(db_default=0)),
                ('applied', models.BigIntegerField(db_default=0)),
                ('requested', models.BigIntegerField(db_default=0)),
                ('skipped', models.JSONField(db_default={})),
                ('cursor', models.UUIDField(null=True)),
                ('state', models.TextField(db_default='running')),
                ('error', models.TextField(null=True)),
                ('holder', models.UUIDField(null=True)),
                ('beat_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(null=True)),
            ],
            options={
                'db_table': '"turno"."bulk_runs"',
            },
        ),
        migrations.AddIndex(
            model_name='bulkrun',
            index=models.Index(models.F('id'), condition=models.Q(('state__in', ['running', 'stopping']), ('state__isnull', False)), name='bulk_runs_under_way'),
        ),
        migrations.AddIndex(
            model_name='bulkrun',
            index=models.Index(models.F('created_at'), models.F('id'), name='bulk_runs_by_age'),
        ),
        migrations.AddConstraint(
            model_name='bulkrun',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('target', 'jobs'), ('act__in', ['cancel', 'requeue', 'delete', 'run_now']), ('act__isnull', False)), models.Q(('target', 'letters'), ('act__in', ['requeue', 'discard']), ('act__isnull', False)), _connector='OR'), name='bulk_runs_act_of_target'),
        ),
        migrations.AddConstraint(
            model_name='bulkrun',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('ids__isnull', True), ('filter__isnull', False)), models.Q(models.Q(('ids__isnull', True), _negated=True), models.Q(('filter__isnull', False), _negated=True)), _connector='OR'), name='bulk_runs_ids_or_filter'),
        ),
        migrations.AddConstraint(
            model_name='bulkrun',
            constraint=models.CheckConstraint(condition=models.Q(('ids__isnull', True), models.Q(('ids__len__gte', 1), ('ids__len__lte', 10000)), _connector='OR'), name='bulk_runs_ids_bounded'),
        ),
        migrations.AddConstraint(
            model_name='bulkrun',
            constraint=models.CheckConstraint(condition=models.Q(('total__isnull', True), ('total__gte', 0), _connector='OR'), name='bulk_runs_total_not_negative'),
        ),
        migrations.AddConstraint(
            model_name='bulkrun',
            constraint=models.CheckConstraint(condition=models.Q(('applied__lte', models.F('done')), ('requested__gte', 0), ('requested__lte', models.F('applied'))), name='bulk_runs_counts_add_up'),
        ),
        migrations.AddConstraint(
            model_name='bulkrun',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['running', 'stopping', 'stopped', 'done', 'failed']), ('state__isnull', False)), name='bulk_runs_state_known'),
        ),
        migrations.AddConstraint(
            model_name='bulkrun',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', False), ('state__in', ['stopped', 'done', 'failed']), ('state__isnull', False)), models.Q(models.Q(('finished_at__isnull', False), _negated=True), models.Q(('state__in', ['stopped', 'done', 'failed']), ('state__isnull', False), _negated=True)), _connector='OR'), name='bulk_runs_finished_when_ended'),
        ),
        migrations.AddConstraint(
            model_name='bulkrun',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('error__isnull', False), ('state', 'failed')), models.Q(models.Q(('error__isnull', False), _negated=True), models.Q(('state', 'failed'), _negated=True)), _connector='OR'), name='bulk_runs_error_when_failed'),
        ),
        migrations.AddConstraint(
            model_name='bulkrun',
            constraint=models.CheckConstraint(condition=models.Q(('holder__isnull', True), models.Q(('state__in', ['running', 'stopping']), ('state__isnull', False)), _connector='OR'), name='bulk_runs_held_while_under_way'),
        ),
        migrations.AddConstraint(
            model_name='bulkrun',
            constraint=models.CheckConstraint(condition=models.Q(('holder__isnull', True), ('beat_at__isnull', False), _connector='OR'), name='bulk_runs_holder_beats'),
        ),
    ]
