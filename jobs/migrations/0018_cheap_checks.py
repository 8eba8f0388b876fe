"""Checks in few words: each statement that writes a table reads all of its checks anew, and a pattern that counts took
twenty microseconds of each change of a job."""

from django.db import migrations
from django.db.models import BooleanField, CheckConstraint, F, Func, Q, TextField, Value
from django.db.models.functions import Length
from django.db.models.lookups import GreaterThanOrEqual, In, LessThanOrEqual

from jobs.migrations._online import ReplaceChecks

PROCESSING = Q(state='Processing')


def named(field, length):
    sized = Q(GreaterThanOrEqual(Length(F(field)), 1)) & Q(LessThanOrEqual(Length(F(field)), length))
    return sized & ~Q(**{f'{field}__regex': '[^a-z0-9._-]'})


def type_name(field):
    return named(field, 200)


def queue_name(field):
    return named(field, 100) & ~Q(**{field: 'dead-letter'}) & ~Q(**{f'{field}__endswith': '_error'})


def iff(left, right):
    return Q(Func(left, right, template='(%(expressions)s)', arg_joiner=' = ', output_field=BooleanField()))


def is_set(field):
    return Q(**{f'{field}__isnull': False})


def one_of(field, *values):
    return Q(**{f'{field}__isnull': False, f'{field}__in': list(values)})


def legal_edges():
    pair = Func(F('from_state'), Value('>'), F('to_state'), template='(%(expressions)s)', arg_joiner=' || ', output_field=TextField())
    steps = [
        'Scheduled>Enqueued', 'Scheduled>Failed', 'Scheduled>Cancelled', 'Enqueued>Processing', 'Enqueued>Scheduled',
        'Enqueued>Cancelled', 'Processing>Succeeded', 'Processing>Scheduled', 'Processing>Enqueued',
        'Processing>Failed', 'Processing>Cancelled', 'Failed>Enqueued', 'Failed>Scheduled', 'Cancelled>Enqueued',
        'Cancelled>Scheduled',
    ]
    born = Q(from_state__isnull=True, to_state__in=['Scheduled', 'Enqueued'])
    return born | Q(from_state__isnull=False) & Q(In(pair, steps))


def replaced(model, **conditions):
    return ReplaceChecks(model, [CheckConstraint(name=name, condition=said) for name, said in conditions.items()])


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('jobs', '0017_jobs_woken'),
    ]

    operations = [
        replaced(
            'circuit',
            circuits_type_format=type_name('type'),
            circuits_probe_has_deadline=iff(is_set('probe_job_id'), is_set('probe_deadline')),
            circuits_probe_when_half_open=iff(Q(state='half_open'), is_set('probe_job_id')),
        ),
        replaced(
            'bulkrun',
            bulk_runs_ids_or_filter=iff(Q(ids__isnull=True), is_set('filter')),
            bulk_runs_finished_when_ended=iff(is_set('finished_at'), one_of('state', 'stopped', 'done', 'failed')),
            bulk_runs_error_when_failed=iff(is_set('error'), Q(state='failed')),
        ),
        replaced('deadletter', dead_letters_resolved_with_how=iff(is_set('resolved_at'), is_set('resolved_how'))),
        replaced('knowntype', job_types_name_format=type_name('name')),
        replaced('queue', queues_name_format=queue_name('name')),
        replaced('rate', rates_type_format=type_name('type')),
        replaced(
            'recurringjob',
            recurring_type_format=type_name('type'),
            recurring_queue_format=Q(queue__isnull=True) | queue_name('queue'),
        ),
        replaced('unservedtype', unserved_queue_format=queue_name('queue'), unserved_type_format=type_name('type')),
        replaced(
            'job',
            jobs_type_format=type_name('type'),
            jobs_queue_format=queue_name('queue'),
            jobs_owned_when_processing=iff(PROCESSING, is_set('worker_id')),
            jobs_leased_when_processing=iff(PROCESSING, is_set('lease_expires_at')),
            jobs_claim_id_when_processing=iff(PROCESSING, is_set('claim_id')),
            jobs_claimed_at_when_processing=iff(PROCESSING, is_set('claimed_at')),
            jobs_finished_when_final=iff(one_of('state', 'Cancelled', 'Failed', 'Succeeded'), is_set('finished_at')),
            jobs_waiting_when_scheduled=iff(Q(state='Scheduled'), is_set('waiting_for')),
            jobs_instant_when_timed=iff(is_set('run_at'), one_of('waiting_for', 'due', 'retry', 'snooze', 'lock')),
            jobs_failure_kind_when_failed=iff(Q(state='Failed'), is_set('failure_kind')),
            jobs_limit_with_key=iff(is_set('concurrency_key'), is_set('concurrency_limit')),
            jobs_hash_with_idempotency_key=iff(is_set('idempotency_key'), is_set('request_hash')),
            jobs_route_with_idempotency_key=iff(is_set('idempotency_key'), is_set('route')),
            jobs_fired_for_with_recurring=iff(is_set('recurring_job_id'), is_set('fired_for')),
        ),
        replaced('jobstatechange', changes_legal_edge=legal_edges()),
    ]
