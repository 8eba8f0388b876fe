"""What a running job says: progress, stage, lines of its log."""

import pytest

from jobs import transitions
from jobs.outcomes import LogLine
from jobs.transitions import Note
from tests.transitions import rows
from tests.transitions.edges import CALLER, Fence, make

pytestmark = pytest.mark.django_db


def note(*notes):
    return transitions.note(list(notes), worker_id=CALLER)


def test_progress_goes_up_and_never_down():
    case = make("processing", Fence.RIGHT)
    for progress, stored in ((10, 10), (50, 50), (20, 50), (None, 50), (100, 100)):
        note(Note(case.made.id, case.token, progress=progress))
        assert rows.job(case.made.id)["progress"] == stored


def test_a_stage_stays_until_another_one_comes():
    case = make("processing", Fence.RIGHT)
    for stage, stored in (("reading", "reading"), (None, "reading"), ("", ""), ("é 日", "é 日")):
        note(Note(case.made.id, case.token, stage=stage))
        assert rows.job(case.made.id)["stage"] == stored


def test_a_line_that_is_sent_again_is_stored_once():
    case = make("processing", Fence.RIGHT, executions=3)
    lines = (LogLine(1, "info", "one"), LogLine(2, "error", "two", 1.5))
    for _ in range(2):
        assert note(Note(case.made.id, case.token, logs=lines)) == {case.token}
    assert [(log["execution"], log["number"], log["level"], log["message"]) for log in rows.logs(case.made.id)] == [
        (3, 1, "info", "one"),
        (3, 2, "error", "two"),
    ]


def test_who_lost_the_job_writes_no_line_of_its_log():
    case = make("processing", Fence.TOKEN)
    assert note(Note(case.made.id, case.token, logs=(LogLine(1, "info", "late"),))) == set()
    assert rows.logs(case.made.id) == []


def test_nothing_said_is_no_statement(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert note() == set()
