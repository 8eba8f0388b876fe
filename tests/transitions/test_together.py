"""Statements that leave together are executed one after the other, and fail as one at a time would."""

import pytest
from django.db import DataError, connections

from jobs.transitions.sql import in_transaction
from jobs.transitions.together import together
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import make_job

pytestmark = COMMITTED
CHANGE = "UPDATE turno.jobs SET stage = %(stage)s::text WHERE id = %(id)s::uuid RETURNING stage"
LOOK = "SELECT stage, xmax::text <> '0' FROM turno.jobs WHERE id = %(id)s::uuid"
BAD = "SELECT 1 / %(none)s::int"


def test_each_sees_what_those_before_it_have_written(committed, using):
    made = make_job()

    def work(cursor):
        with together(cursor) as said:
            before = said.pose(LOOK, {"id": made.id})
            changed = said.pose(CHANGE, {"id": made.id, "stage": "here"})
            after = said.pose(LOOK, {"id": made.id})
        return before, changed, after

    assert in_transaction(using, work) == ([("", False)], [("here",)], [("here", False)])
    assert rows.job(made.id)["stage"] == "here"


def test_where_one_fails_nothing_of_them_stays_and_the_connection_goes_on(committed, using):
    made = make_job()

    def work(cursor):
        with together(cursor) as said:
            said.pose(CHANGE, {"id": made.id, "stage": "gone"})
            said.pose(BAD, {"none": 0})
            said.pose(CHANGE, {"id": made.id, "stage": "never"})

    for _time in range(2):
        with pytest.raises(DataError):
            in_transaction(using, work)
    assert rows.job(made.id, using=using)["stage"] == ""


def test_only_the_engine_sends_them_in_one_go_and_not_while_somebody_watches(committed):
    seen = []

    def watch(execute, sql, params, many, context):
        seen.append(sql)
        return execute(sql, params, many, context)

    def work(cursor):
        with together(cursor) as said:
            first = said.pose(LOOK, {"id": made.id})
            there = list(first)
            said.pose(LOOK, {"id": made.id})
        return bool(there)

    made = make_job()
    assert (in_transaction("default", work), in_transaction("engine", work)) == (True, False)
    with connections["engine"].execute_wrapper(watch):
        assert in_transaction("engine", work)
    assert seen.count(LOOK) == 2
