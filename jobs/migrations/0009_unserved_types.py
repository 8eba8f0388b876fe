"""Since when types that jobs of a served queue have are had by none of its live workers: a new table, kept by who leads."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0008_circuits'),
    ]

    operations = [
        migrations.CreateModel(
            name='UnservedType',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('queue', models.TextField()),
                ('type', models.TextField()),
                ('since', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='So long without a break.')),
                ('seen_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='When somebody last looked.')),
            ],
            options={
                'db_table': '"turno"."unserved_types"',
                'constraints': [models.UniqueConstraint(fields=('queue', 'type'), name='unserved_one_pair'), models.CheckConstraint(condition=models.Q(('queue__regex', '^[a-z0-9._-]{1,100}$'), models.Q(('queue', 'dead-letter'), _negated=True), models.Q(('queue__endswith', '_error'), _negated=True)), name='unserved_queue_format'), models.CheckConstraint(condition=models.Q(('type__regex', '^[a-z0-9._-]{1,200}$')), name='unserved_type_format'), models.CheckConstraint(condition=models.Q(('seen_at__gte', models.F('since'))), name='unserved_seen_after_since')],
            },
        ),
    ]
