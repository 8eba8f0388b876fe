"""What a handler says that can't be taken as it is: it is told, and costs the handler nothing."""

import pytest
from django.utils import translation

from jobs.errors import JobTimeout
from turno.testing import FakeContext


@pytest.fixture
def ctx():
    return FakeContext("context.words")


def test_any_whole_number_is_a_progress(ctx):
    ctx.report_progress(-(10**400))
    assert ctx.progress == 0
    ctx.report_progress(10**400)
    assert ctx.progress == 100


def test_a_line_that_can_not_be_formatted_costs_the_handler_nothing_and_says_where_it_stands(ctx):
    class Mute:
        def __str__(self):
            raise ZeroDivisionError

    wrong = "%d of %d"
    with translation.override("en"):
        ctx.logger.info(wrong, "many")
        ctx.logger.warning("%s", Mute())
    assert [text.split(":", 1)[0] for _, text in ctx.logs] == ["test_context_words.py"] * 2
    assert [text.split(" ", 1)[1] for _, text in ctx.logs] == [
        "(its message can't be shown: TypeError)",
        "(its message can't be shown: ZeroDivisionError)",
    ]


def test_the_word_stop_in_the_middle_of_a_line_is_none_of_the_lines(ctx):
    class Stopped:
        def __str__(self):
            raise JobTimeout("limit")

    with pytest.raises(JobTimeout):
        ctx.logger.info("%s", Stopped())
