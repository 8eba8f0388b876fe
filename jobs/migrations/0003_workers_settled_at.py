"""When a worker was proven dead and owned nothing."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0002_tables'),
    ]

    operations = [
        migrations.AddField(
            model_name='worker',
            name='settled_at',
            field=models.DateTimeField(help_text='When it was proven dead and owned nothing: what it owns later never started.', null=True),
        ),
    ]
