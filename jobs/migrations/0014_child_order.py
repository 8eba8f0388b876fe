"""Jobs parked for their parents are found by the parent that is their gate; an entry only for those.

And the planner is told how many children a parent has: where one has nearly all of them it would believe so of each,
and read the table from end to end for every job.
"""

from django.db import migrations, models

from jobs.migrations._online import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('jobs', '0013_gate_order'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='job',
            index=models.Index(fields=['gate', 'id'], condition=models.Q(('waiting_for', 'parents')), name='jobs_child_order'),
        ),
        migrations.RunSQL(
            "ALTER TABLE turno.job_dependencies ALTER COLUMN parent_id SET (n_distinct = -1)",
            "ALTER TABLE turno.job_dependencies ALTER COLUMN parent_id RESET (n_distinct)",
        ),
    ]
