"""The schema of every table of ours."""

from django.db import migrations


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.RunSQL(
            sql="CREATE SCHEMA IF NOT EXISTS turno",
            reverse_sql="DROP SCHEMA IF EXISTS turno",
        ),
    ]
