"""Every rule of every table, broken by plain SQL: the database itself refuses, and says which rule it was."""

from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from tests.database import rows
from tests.database.cases import CASES, LEGAL, Case

pytestmark = pytest.mark.django_db

NAMED = """
    SELECT conname, contype::text, conrelid::regclass::text FROM pg_constraint
    WHERE connamespace = 'turno'::regnamespace AND contype IN ('c', 'u', 'x')
    UNION
    SELECT i.relname, 'i', x.indrelid::regclass::text FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
    WHERE i.relnamespace = 'turno'::regnamespace AND x.indisunique AND NOT x.indisprimary
      AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = x.indexrelid)
"""
FOREIGN_KEYS = """
    SELECT c.conname, t.relname, a.attname FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid
    JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
    WHERE c.connamespace = 'turno'::regnamespace AND c.contype = 'f' ORDER BY 1
"""


def row_of(case: Case) -> rows.Row:
    """The row that the case is about, after the one that stands beside it."""
    row = rows.job(case.state) if case.state else rows.BASE[case.table]()
    if case.beside is not None:
        neighbour = rows.job(case.beside_state) if case.beside_state else rows.BASE[case.table]()
        neighbour |= case.beside
        rows.insert_row(case.table, neighbour)
        row |= {column: neighbour[column] for column in case.shared}
    return row | case.change


def drop(name: str, table: str) -> None:
    """Take the guard away, for the rest of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_constraint WHERE conname = %s", [name])
        is_index = cursor.fetchone()[0] == 0
        cursor.execute(
            f'DROP INDEX turno."{name}"' if is_index else f'ALTER TABLE turno."{table}" DROP CONSTRAINT "{name}"'
        )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_row_that_breaks_a_rule_is_refused_by_that_rule_and_by_no_other(case):
    row = row_of(case)

    with pytest.raises(IntegrityError) as refused, transaction.atomic():
        rows.insert_row(case.table, row)
    assert refused.value.__cause__.diag.constraint_name == case.name

    drop(case.name, case.table)
    rows.insert_row(case.table, row)


@pytest.mark.parametrize("case", LEGAL, ids=lambda case: f"{case.table}{case}")
def test_a_row_next_to_the_limits_is_accepted(case):
    rows.insert_row(case.table, row_of(case))


def test_a_job_can_not_depend_on_itself():
    itself = rows.insert("jobs")

    with pytest.raises(IntegrityError) as refused, transaction.atomic():
        rows.insert("job_dependencies", {"child_id": itself, "parent_id": itself})
    assert refused.value.__cause__.diag.constraint_name == "dependencies_not_itself"


def test_no_foreign_key_may_dangle():
    keys = rows.query(FOREIGN_KEYS)
    assert len(keys) == 10

    for name, table, column in keys:
        dangling = 2**40 if column == "key_id" else uuid4()
        with pytest.raises(IntegrityError) as refused, transaction.atomic():
            rows.insert(table, {column: dangling})
        assert refused.value.__cause__.diag.constraint_name == name


@pytest.mark.parametrize("table", rows.BASE)
def test_a_primary_key_stands_once(table):
    column, first = rows.query(
        f"SELECT a.attname, c.conname FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid "
        f"AND a.attnum = c.conkey[1] WHERE c.conrelid = 'turno.{table}'::regclass AND c.contype = 'p'"
    )[0]
    key = rows.insert(table)

    with pytest.raises(IntegrityError) as refused, transaction.atomic():
        rows.insert(table, {column: key})
    assert refused.value.__cause__.diag.constraint_name == first


@pytest.mark.parametrize("table", rows.BASE)
def test_a_column_that_must_be_set_can_not_be_null(table):
    needed = rows.query(
        f"SELECT attname FROM pg_attribute WHERE attrelid = 'turno.{table}'::regclass AND attnum > 0 AND attnotnull"
    )
    assert needed

    for (column,) in needed:
        with pytest.raises(IntegrityError) as refused, transaction.atomic():
            rows.insert(table, {column: None})
        assert refused.value.__cause__.diag.column_name == column


def test_every_named_constraint_and_unique_index_has_a_case():
    named = {name for name, _kind, _table in rows.query(NAMED)}
    tried = {case.name for case in CASES} | {"dependencies_not_itself"}

    assert named - tried == set(), "a rule that no test tries to break"
    assert tried - named == set(), "a case whose rule is gone"


def test_every_table_has_a_valid_row_to_start_from():
    tables = {name for (name,) in rows.query("SELECT tablename FROM pg_tables WHERE schemaname = 'turno'")}

    assert tables == set(rows.BASE)
