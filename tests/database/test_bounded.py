"""No table grows for ever: each has a rule of its own, hangs on one that has, or is as large as people make it."""

import pytest

from tests.database.rows import query
from workers.retention import rules
from workers.routines import services

pytestmark = pytest.mark.django_db

TABLES = """
SELECT CASE n.nspname WHEN 'turno' THEN c.relname ELSE n.nspname || '.' || c.relname END
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname IN ('turno', 'public') ORDER BY 1
"""
# Foreign keys that cascade, and whether an index begins with their column: else each row deleted reads the other table.
HANGING = """
SELECT f.conrelid::regclass::text, f.confrelid::regclass::text, f.confdeltype::text, EXISTS (
    SELECT FROM pg_index AS i
    WHERE i.indrelid = f.conrelid AND i.indkey[0] = f.conkey[1] AND i.indpred IS NULL AND i.indisvalid
)
FROM pg_constraint AS f WHERE f.contype = 'f' AND f.connamespace = 'turno'::regnamespace ORDER BY 1, 2
"""
# By a rule of `workers.retention`, of these names.
RULED = {
    "jobs": ("jobs_succeeded", "jobs_cancelled", "jobs_failed"),
    "concurrency_keys": ("concurrency_keys",),
    "job_types": ("job_types",),
    "circuits": ("circuits",),
    "metrics_minute": ("metrics_minute", "metrics_folded_over_workers", "metrics_folded_by_hour"),
    "bulk_runs": ("bulk_runs",),
    "public.django_session": ("django_session",),
    "public.django_admin_log": ("django_admin_log",),
}
# With a row of another table.
HUNG = {
    "job_attempts", "job_state_changes", "job_logs", "job_artifacts", "job_dependencies", "dead_letters",
    "outbox_messages", "concurrency_slots",
}  # fmt: skip
# By the routine of this name, whose purpose it is.
KEPT_SMALL = {
    "workers": "presence",
    "pauses": "pauses",
    "unserved_types": "unknown types",
    "promise_checks": "promises",
}
# Goes with its type: `transitions.forget_types`.
WITH_ITS_TYPE = {"rates"}
# One row a name, a setting, a person or a version: nothing that happens adds one.
SMALL = {
    "leases", "counters", "queues", "recurring_jobs", "storm_reports",
    "public.auth_group", "public.auth_group_permissions", "public.auth_permission", "public.auth_user",
    "public.auth_user_groups", "public.auth_user_user_permissions", "public.django_content_type",
    "public.django_migrations",
}  # fmt: skip


def test_of_every_table_somebody_has_thought():
    """A new one fails here: give it a rule where its rules are, in small batches, and name it above."""
    thought_of = [*RULED, *HUNG, *KEPT_SMALL, *WITH_ITS_TYPE, *SMALL]
    assert len(thought_of) == len(set(thought_of))
    assert {name for (name,) in query(TABLES)} == set(thought_of)


def test_every_rule_is_one_of_a_table():
    names = [rule.name for rule in rules()]
    assert sorted(names) == sorted(name for named in RULED.values() for name in named)


def test_what_hangs_on_others_goes_with_them_and_is_found_by_an_index():
    found = query(HANGING)
    assert {table.removeprefix("turno.") for table, *_rest in found} == HUNG
    for table, target, on_delete, indexed in found:
        assert target.removeprefix("turno.") in RULED, table
        assert (on_delete, indexed) == ("c", True), f"{table} -> {target}"


def test_the_routines_that_keep_tables_small_are_there():
    assert {*KEPT_SMALL.values(), "retention"} <= services().keys()
