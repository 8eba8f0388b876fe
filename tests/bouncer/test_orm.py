"""What handlers do with Django's ORM works behind a PgBouncer as it does without one, within the limits."""

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError, connections, transaction
from django.test.utils import CaptureQueriesContext

from jobs.models import Pause
from tests.bouncer.test_sessions import LIMITS, ask, settings

pytestmark = pytest.mark.crash
ROWS = 300


def make(value):
    return Pause.objects.using("bounced").create(scope="queue", value=value)


def names():
    return sorted(Pause.objects.using("bounced").values_list("value", flat=True))


def test_savepoints_are_rolled_back_alone_and_keep_the_limits(through):
    with transaction.atomic(using="bounced"):
        make("outer")
        with pytest.raises(ZeroDivisionError), transaction.atomic(using="bounced"):
            raise ZeroDivisionError(make("inner"))
        with pytest.raises(DatabaseError), transaction.atomic(using="bounced"):
            ask("bounced", "SELECT 1 / 0")
        assert settings("bounced") == LIMITS
        make("after")
    assert names() == ["after", "outer"]


def test_a_lock_of_a_row_is_held_until_the_end_of_its_transaction(through):
    make("a")
    other = connections["bounced_engine"]
    with transaction.atomic(using="bounced"):
        list(Pause.objects.using("bounced").select_for_update())
        with transaction.atomic(using="bounced_engine"):
            free = Pause.objects.using("bounced_engine").select_for_update(skip_locked=True)
            assert not list(free)
    with transaction.atomic(using=other.alias):
        assert len(free.all()) == 1


def test_many_rows_are_read_in_pieces_outside_of_a_transaction(through):
    Pause.objects.using("bounced").bulk_create([Pause(scope="queue", value=f"{n}") for n in range(ROWS)])
    read = 0
    for _ in Pause.objects.using("bounced").iterator(chunk_size=10):
        read += 1
        ask("bounced", "SELECT 1")  # somebody else's turn in between
    assert read == ROWS


def test_rows_are_copied_in_and_out(through):
    with transaction.atomic(using="bounced"), connections["bounced"].cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE copied (n integer) ON COMMIT DROP")
        with cursor.copy("COPY copied (n) FROM STDIN") as copy:
            for n in range(ROWS):
                copy.write_row([n])
        with cursor.copy("COPY copied TO STDOUT") as copy:
            assert len(list(copy.rows())) == ROWS


def test_the_asynchronous_orm_has_the_limits_too(through):
    async def work():
        await Pause.objects.using("bounced").acreate(scope="queue", value="a")
        return [one.value async for one in Pause.objects.using("bounced").all()]

    with transaction.atomic(using="bounced"):
        assert async_to_sync(work)() == ["a"]
        assert settings("bounced") == LIMITS


def test_a_transaction_can_be_made_read_only_and_the_next_one_is_not(through):
    with transaction.atomic(using="bounced"):
        ask("bounced", "SELECT set_config('transaction_read_only', 'on', true)")
        with pytest.raises(DatabaseError, match="read-only"), transaction.atomic(using="bounced"):
            make("a")
    make("b")
    assert names() == ["b"]


def test_who_asks_django_for_a_transaction_by_hand_can_end_it(through):
    connection = connections["bounced"]
    connection.set_autocommit(False)
    try:
        make("a")
        connection.rollback()
        make("b")
        connection.commit()
    finally:
        connection.set_autocommit(True)
    assert names() == ["b"]
    with CaptureQueriesContext(connection), transaction.atomic(using="bounced"):
        assert settings("bounced") == LIMITS
