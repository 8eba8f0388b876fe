"""The rules of the tables that are written all the time: in few words, for each statement reads them anew."""

import pytest

from tests.database import rows

pytestmark = pytest.mark.django_db

# Characters of all checks of a table as PostgreSQL keeps them: what version 15 takes, and room for what later ones say
# of each column besides. Before anybody counted they were 29,800, 5,300, 4,400, 2,000 and 1,800.
MOST = {
    "jobs": 23_500,
    "job_state_changes": 2_500,
    "job_attempts": 3_200,
    "metrics_minute": 1_250,
    "outbox_messages": 1_790,
}
LENGTH = """
    SELECT sum(length(conbin::text)) FROM pg_constraint WHERE contype = 'c' AND conrelid = %s::regclass
"""
SAID = """
    SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE contype = 'c' AND connamespace = 'turno'::regnamespace ORDER BY 1
"""


@pytest.mark.parametrize("table", sorted(MOST))
def test_all_rules_of_a_table_that_is_written_all_the_time_are_read_in_a_moment(table):
    ((length,),) = rows.query(LENGTH, [f"turno.{table}"])

    assert 0 < length < MOST[table], (
        f"the checks of {table} have grown: each statement that writes it reads all of this"
    )


def test_a_list_of_values_is_one_constant_and_not_a_node_for_each():
    said = rows.query(SAID)
    lists = [name for name, rule in said if " ANY " in rule or " ALL " in rule]

    assert {"jobs_state_known", "attempts_outcome_known", "changes_legal_edge"} <= set(lists)
    assert not [name for name, rule in said if "ARRAY[" in rule], "see jobs.models.base.among"
