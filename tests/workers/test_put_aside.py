"""What is told of messages that could not be processed: those of the last hour."""

from django.utils import translation

from workers.transports.aside import LATELY, PutAside


def told(aside, total):
    with translation.override("en"):
        return [problem["error"].split(" ", 1)[0] for problem in aside.problems(total)]


def test_only_those_of_the_last_hour_are_counted():
    now = [1000.0]
    aside = PutAside(lambda: now[0])
    assert told(aside, 0) == []
    now[0] += 100
    assert told(aside, 2) == ["2"]
    now[0] += LATELY / 2
    assert told(aside, 5) == ["5"]
    now[0] += LATELY / 2
    assert told(aside, 5) == ["3"]
    now[0] += LATELY / 2
    assert told(aside, 5) == []
    now[0] += LATELY * 10
    assert told(aside, 6) == ["1"]


def test_what_came_before_the_first_look_counts_from_then():
    now = [1000.0]
    aside = PutAside(lambda: now[0])
    assert told(aside, 1) == ["1"]
    now[0] += LATELY
    assert told(aside, 1) == []


def test_one_is_said_as_one():
    with translation.override("en"):
        [problem] = PutAside().problems(1)
    assert problem == {
        "part": "messages",
        "error": "1 message that could not be processed was put into an error queue within an hour",
    }
