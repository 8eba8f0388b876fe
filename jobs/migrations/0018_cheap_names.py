"""What a name may be is checked by what it lacks and by its length: a pattern that counts took a tenth of each change."""

from django.db import migrations
from django.db.models import CheckConstraint, F, Q
from django.db.models.functions import Length
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual

from jobs.migrations._online import ReplaceCheck


def named(field, length):
    sized = Q(GreaterThanOrEqual(Length(F(field)), 1)) & Q(LessThanOrEqual(Length(F(field)), length))
    return sized & ~Q(**{f'{field}__regex': '[^a-z0-9._-]'})


def type_name(field):
    return named(field, 200)


def queue_name(field):
    return named(field, 100) & ~Q(**{field: 'dead-letter'}) & ~Q(**{f'{field}__endswith': '_error'})


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('jobs', '0017_jobs_woken'),
    ]

    operations = [
        ReplaceCheck(model, name, CheckConstraint(name=name, condition=condition))
        for model, name, condition in [
            ('circuit', 'circuits_type_format', type_name('type')),
            ('job', 'jobs_type_format', type_name('type')),
            ('job', 'jobs_queue_format', queue_name('queue')),
            ('knowntype', 'job_types_name_format', type_name('name')),
            ('queue', 'queues_name_format', queue_name('name')),
            ('rate', 'rates_type_format', type_name('type')),
            ('recurringjob', 'recurring_type_format', type_name('type')),
            ('recurringjob', 'recurring_queue_format', Q(queue__isnull=True) | queue_name('queue')),
            ('unservedtype', 'unserved_queue_format', queue_name('queue')),
            ('unservedtype', 'unserved_type_format', type_name('type')),
        ]
    ]
