"""A look is one snapshot, can write nothing, and no statement of it takes long; what it leaves behind is nothing."""

import pytest
from django.db import connection

from jobs.invariants import INVARIANTS, Watch
from jobs.invariants.checking import TIME

HOW = """
SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only'),
    current_setting('statement_timeout')
"""


class Peeking(Watch):
    """Says in what sort of transaction it looked."""

    def _leads(self, cursor, params):
        cursor.execute(HOW)
        self.looked_in = cursor.fetchone()
        return super()._leads(cursor, params)


@pytest.mark.django_db(transaction=True)
def test_a_look_is_one_snapshot_that_can_write_nothing_and_leaves_the_connection_as_it_was():
    with connection.cursor() as cursor:
        cursor.execute(HOW)
        before = cursor.fetchone()
    watch = Peeking(margin=0)

    watch.look()

    assert watch.looked_in == ("repeatable read", "on", f"{TIME:.0f}s")
    with connection.cursor() as cursor:
        cursor.execute(HOW)
        assert cursor.fetchone() == before == ("read committed", "off", before[2])


@pytest.mark.django_db
def test_an_empty_database_keeps_every_promise():
    checked = Watch(margin=0, attended=True, whole=True).look()
    assert (checked.findings, checked.unanswered, checked.unsure) == ((), (), False)
    assert len(INVARIANTS) == len({one.name for one in INVARIANTS})
