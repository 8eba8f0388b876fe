"""Which failures repeat a transaction, and which the values themselves are to blame for."""

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction

from jobs.transitions.sql import TRIES, as_array, fetch, in_transaction, refused
from tests.transitions import COMMITTED

RAISE = "DO $$ BEGIN RAISE EXCEPTION 'provoked' USING ERRCODE = '{code}'; END $$"


def failing(code, times=100):
    """Work that PostgreSQL ends with an error of this code, so many times; and the list of its calls."""
    calls = []

    def work(cursor):
        calls.append(code)
        if len(calls) <= times:
            cursor.execute(RAISE.format(code=code))
        return "done"

    return work, calls


@COMMITTED
@pytest.mark.parametrize("code", ["40P01", "40001"])
def test_a_conflict_repeats_the_transaction_until_it_lands(code, using):
    work, calls = failing(code, times=2)
    assert in_transaction(using, work) == "done"
    assert len(calls) == 3


@COMMITTED
def test_a_conflict_that_does_not_end_is_raised_in_the_end(using):
    work, calls = failing("40001")
    with pytest.raises(OperationalError, match="provoked"):
        in_transaction(using, work)
    assert len(calls) == TRIES


@COMMITTED
@pytest.mark.parametrize("code", ["57014", "53100", "22P02"])
def test_any_other_failure_is_raised_at_once(code, using):
    work, calls = failing(code)
    with pytest.raises(DatabaseError, match="provoked"):
        in_transaction(using, work)
    assert len(calls) == 1


@COMMITTED
def test_within_the_transaction_of_a_caller_nothing_is_repeated(using):
    work, calls = failing("40001")
    with pytest.raises(OperationalError, match="provoked"), transaction.atomic(using=using):
        in_transaction(using, work)
    assert len(calls) == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("code", "blamed"),
    [
        ("22P05", True),
        ("23514", True),
        ("54000", True),
        ("54001", True),
        ("57014", False),
        ("53100", False),
        ("40001", False),
    ],
)
def test_the_values_are_to_blame_for_data_errors_broken_rules_and_exceeded_limits_alone(code, blamed):
    work, _ = failing(code)
    with pytest.raises(DatabaseError) as caught, transaction.atomic():
        work(connection.cursor())
    assert refused(caught.value) is blamed


def test_text_that_has_no_utf8_is_the_values_fault():
    with pytest.raises(UnicodeError) as caught:
        "\ud800".encode()
    assert refused(caught.value)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "values",
    [[], [""], ["default", "a.b-c_d"], ["null", "NULL"], ['"', "\\", '\\"', "{}", ",", "a\nb", " é "]],
    ids=["none", "an empty one", "names", "the word null", "what would have to be quoted"],
)
def test_an_array_as_text_is_read_as_it_was_written(values):
    with connection.cursor() as cursor:
        assert fetch(cursor, "SELECT %(given)s::text[]", {"given": as_array(values)}) == [(values,)]


@pytest.mark.django_db
def test_an_array_of_numbers_as_text_is_read_as_it_was_written():
    with connection.cursor() as cursor:
        assert fetch(cursor, "SELECT %(given)s::int[]", {"given": as_array([3, -1])}) == [([3, -1],)]
