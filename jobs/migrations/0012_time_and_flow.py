"""Limits of types, rates by tenths of a window, what schedules know of themselves; two columns that nothing used go."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0011_circuit_order'),
    ]

    operations = [
        migrations.CreateModel(
            name='Counter',
            fields=[
                ('name', models.TextField(primary_key=True, serialize=False)),
                ('value', models.BigIntegerField(db_default=0)),
            ],
            options={
                'db_table': '"turno"."counters"',
            },
        ),
        migrations.RemoveConstraint(
            model_name='rate',
            name='rates_used_not_negative',
        ),
        migrations.AddField(
            model_name='job',
            name='admitted',
            field=models.UUIDField(help_text='The token for which every slot and start that the job needs was given to it already.', null=True),
        ),
        migrations.AddField(
            model_name='knowntype',
            name='declared',
            field=models.JSONField(help_text='The limits that workers declare.', null=True),
        ),
        migrations.AddField(
            model_name='knowntype',
            name='limits_by',
            field=models.TextField(help_text='Who has changed its limits; null: nobody, they are declared.', null=True),
        ),
        migrations.AddField(
            model_name='knowntype',
            name='max_running',
            field=models.SmallIntegerField(help_text='How many may run at once; null: any number.', null=True),
        ),
        migrations.AddField(
            model_name='rate',
            name='spent',
            field=models.JSONField(db_default=[]),
        ),
        migrations.AddField(
            model_name='recurringjob',
            name='disabled_by',
            field=models.TextField(null=True),
        ),
        migrations.AddField(
            model_name='recurringjob',
            name='last_job_id',
            field=models.UUIDField(null=True),
        ),
        migrations.AddField(
            model_name='recurringjob',
            name='last_skipped_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='recurringjob',
            name='last_skipped_why',
            field=models.TextField(null=True),
        ),
        migrations.AddField(
            model_name='recurringjob',
            name='owner',
            field=models.TextField(null=True),
        ),
        migrations.AddField(
            model_name='recurringjob',
            name='priority',
            field=models.SmallIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='recurringjob',
            name='skipped',
            field=models.IntegerField(db_default=0, help_text='Instants that were left out.'),
        ),
        migrations.AddField(
            model_name='recurringjob',
            name='updated_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
        ),
        migrations.AlterField(
            model_name='recurringjob',
            name='error',
            field=models.TextField(help_text="Why it can't fire; it is left alone until somebody edits it.", null=True),
        ),
        migrations.AddConstraint(
            model_name='knowntype',
            constraint=models.CheckConstraint(condition=models.Q(('max_running__isnull', True), ('max_running__gte', 1), _connector='OR'), name='job_types_limit_positive'),
        ),
        migrations.AddConstraint(
            model_name='recurringjob',
            constraint=models.CheckConstraint(condition=models.Q(('priority__isnull', True), ('priority__range', (-10, 10)), _connector='OR'), name='recurring_priority_range'),
        ),
        migrations.AddConstraint(
            model_name='recurringjob',
            constraint=models.CheckConstraint(condition=models.Q(('skipped__gte', 0)), name='recurring_skipped_not_negative'),
        ),
        migrations.AddConstraint(
            model_name='recurringjob',
            constraint=models.CheckConstraint(condition=models.Q(('last_skipped_why__isnull', True), ('last_skipped_why__in', ['overlap', 'misfire']), _connector='OR'), name='recurring_why_known'),
        ),
        migrations.AddConstraint(
            model_name='counter',
            constraint=models.CheckConstraint(condition=models.Q(('value__gte', 0)), name='counters_not_negative'),
        ),
        migrations.RemoveField(
            model_name='rate',
            name='used',
        ),
        migrations.RemoveField(
            model_name='rate',
            name='window_started_at',
        ),
    ]
