"""Jobs that were woken at a gate are found by their type: while one waits for a worker, its rate has a start less."""

from django.db import migrations, models

from jobs.migrations._online import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('jobs', '0016_folding'),
    ]

    operations = [
        migrations.AlterField(
            model_name='job',
            name='admitted',
            field=models.UUIDField(help_text='The token for which every slot that the job needs was given to it already.', null=True),
        ),
        AddIndexConcurrently(
            model_name='job',
            index=models.Index(fields=['type'], condition=models.Q(('admitted__isnull', False), ('finished_at__isnull', True), ('waiting_for__isnull', True)), name='jobs_woken'),
        ),
    ]
