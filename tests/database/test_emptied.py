"""What committed tests leave is gone after each, few rows or many."""

import threading
from contextlib import contextmanager

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import connections, transaction

from jobs.models import Job, JobAttempt, JobLog
from tests.kit import emptied
from tests.kit.processes import eventually
from tests.transitions import rows

WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'turno.jobs'::regclass"
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("clean_tables")]


def test_few_rows_and_many_are_gone_and_what_no_test_changes_stays():
    before = ContentType.objects.count(), Permission.objects.count()
    assert all(before)
    for many in (1, 2000):
        User.objects.create_user("somebody")
        rows.make_jobs(many)
        emptied.empty(emptied.OURS)
        emptied.empty(emptied.DJANGOS)
        assert not Job.objects.exists()
        assert not JobAttempt.objects.exists()
        assert not JobLog.objects.exists()
        assert not User.objects.exists()
    assert (ContentType.objects.count(), Permission.objects.count()) == before


@contextmanager
def closing_all():
    """The thread's connections are closed at its end."""
    try:
        yield
    finally:
        connections.close_all()


def test_who_is_still_writing_is_waited_for():
    wrote, go_on = threading.Event(), threading.Event()

    def write():
        with closing_all(), transaction.atomic():
            rows.make_job()
            wrote.set()
            go_on.wait()

    def clear():
        with closing_all():
            emptied.empty(emptied.OURS)

    writer, emptier = threading.Thread(target=write), threading.Thread(target=clear)
    writer.start()
    wrote.wait()
    emptier.start()
    eventually(lambda: rows.select(WAITING)[0]["count"], "the emptying waits")
    go_on.set()
    writer.join()
    emptier.join()
    assert not Job.objects.exists()
