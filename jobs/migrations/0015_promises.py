"""What the leader finds, minute by minute, when it looks whether the promises hold; and the report of the last storm."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0014_child_order'),
    ]

    operations = [
        migrations.CreateModel(
            name='PromiseCheck',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('seconds', models.FloatField(help_text='How long it took.')),
                ('attended', models.BooleanField()),
                ('found', models.JSONField(db_default=[])),
                ('unanswered', models.JSONField(db_default=[])),
            ],
            options={
                'db_table': '"turno"."promise_checks"',
                'indexes': [models.Index(fields=['at'], name='promise_checks_by_instant')],
                'constraints': [models.CheckConstraint(condition=models.Q(('seconds__gte', 0)), name='promise_checks_seconds_not_negative')],
            },
        ),
        migrations.CreateModel(
            name='StormReport',
            fields=[
                ('id', models.SmallIntegerField(db_default=1, primary_key=True, serialize=False)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('place', models.TextField()),
                ('seed', models.BigIntegerField()),
                ('seconds', models.FloatField()),
                ('jobs', models.IntegerField()),
                ('faults', models.JSONField(db_default={})),
                ('found', models.JSONField(db_default=[])),
            ],
            options={
                'db_table': '"turno"."storm_reports"',
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='storm_reports_one_row'), models.CheckConstraint(condition=models.Q(('jobs__gte', 0), ('seconds__gte', 0)), name='storm_reports_not_negative')],
            },
        ),
    ]
