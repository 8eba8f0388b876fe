"""When a job's message was last written anew because it seemed to be gone."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0006_search_by_keys'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='reannounced_at',
            field=models.DateTimeField(help_text='When its message was last written anew because it seemed to be gone.', null=True),
        ),
    ]
