"""The legal transitions, as the database holds them: every pair of states tried, exactly the drawn edges pass."""

import pytest
from django.db import IntegrityError, transaction

from jobs.states import EDGES, State
from tests.database import rows

pytestmark = pytest.mark.django_db

STARTS = [None, *State]


def accepted(before: str | None, after: str | None) -> bool:
    """Whether the table of changes takes this step."""
    refused_by = None
    try:
        with transaction.atomic():
            rows.insert("job_state_changes", {"from_state": before, "to_state": after})
    except IntegrityError as error:
        refused_by = error.__cause__.diag.constraint_name
    return {None: True, "changes_legal_edge": False}[refused_by]


@pytest.mark.parametrize("after", State)
@pytest.mark.parametrize("before", STARTS)
def test_a_step_is_accepted_exactly_when_it_is_an_edge_of_the_drawing(before, after):
    assert accepted(before and str(before), str(after)) == ((before, after) in EDGES)


@pytest.mark.parametrize("stranger", ["", "enqueued", "Paused", "NULL", "'Scheduled'", "Scheduled'", "{Enqueued}"])
def test_a_state_outside_the_six_is_no_end_of_a_step(stranger):
    assert not any(accepted(before and str(before), stranger) for before in STARTS)
    assert not any(accepted(stranger, str(after)) for after in State)


# As one text, in quotation marks or not, each of them looks like a legal step.
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Sched", "uledEnqueued"),
        ("", "Enqueued"),
        ("Failed'", "Enqueued"),
        (None, "'Failed'Enqueued"),
        ("NULL", "Enqueued"),
    ],
)
def test_a_step_whose_ends_only_together_read_like_a_legal_one_is_none(before, after):
    assert not accepted(before, after)


def test_seventeen_of_forty_two_pairs_are_legal():
    assert len(set(EDGES)) == len(EDGES) == 17
    assert len(STARTS) * len(State) == 42
