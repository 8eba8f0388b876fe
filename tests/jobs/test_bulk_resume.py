"""What a process left undone is gone on with by the next one that starts, though nobody asks for it."""

import threading

from jobs import bulk
from jobs.bulk import store
from jobs.bulk import threads as crews
from jobs.queries import JobFilter
from jobs.states import State
from tests.jobs.bulkrows import counts, make_jobs


def test_a_process_that_starts_goes_on_with_what_another_left(clean_tables, monkeypatch):
    monkeypatch.setattr(store, "SILENT", 600)  # its second look is not waited for
    make_jobs(5, State.FAILED)
    with monkeypatch.context() as patch:
        patch.setattr(bulk.crew, "wake", lambda: None)  # the process dies at once
        begun = bulk.start("requeue", filter=JobFilter())
    before = set(threading.enumerate())
    bulk.resume()
    bulk.crew.join()
    assert counts(store.get(begun.id)) == (5, 5, {})
    for thread in set(threading.enumerate()) - before:
        if isinstance(thread, threading.Timer):
            thread.cancel()


def test_a_database_that_is_away_does_not_stop_the_start(clean_tables, monkeypatch, caplog):
    from django.db import OperationalError

    def away(_holder):
        raise OperationalError("no database")

    monkeypatch.setattr(crews.store, "take", away)
    monkeypatch.setattr(store, "SILENT", 600)
    before = set(threading.enumerate())
    bulk.resume()
    bulk.crew.join()
    assert [record.getMessage() for record in caplog.records] == ["bulk.interrupted"]
    for thread in set(threading.enumerate()) - before:
        if isinstance(thread, threading.Timer):
            thread.cancel()
