"""What the supervisor takes from the command line, and what it leaves to the worker."""

import pytest

from workers.supervision.arguments import of_process, parse_processes, split


@pytest.mark.parametrize(
    ("arguments", "count", "others"),
    [
        ([], 1, []),
        (["--queues", "default:4"], 1, ["--queues", "default:4"]),
        (["--processes", "3", "--name", "a"], 3, ["--name", "a"]),
        (["--name=a", "--processes=64"], 64, ["--name=a"]),
        (["--proc", "2"], 2, []),
        (["--pr=2"], 2, []),
        (["--processes", "2", "--processes", "5"], 5, []),
        (["--pythonpath", "x", "-p", "2"], 1, ["--pythonpath", "x", "-p", "2"]),
        (["--processes-of-mine", "2"], 1, ["--processes-of-mine", "2"]),
    ],
)
def test_the_number_of_processes_is_taken_out_and_the_rest_stays_as_it_is(arguments, count, others):
    assert split(arguments) == (count, others)


@pytest.mark.parametrize("text", ["0", "65", "-1", "1.5", "", "two", "٣", "1e1", " 2", "9" * 5000])
def test_a_number_that_can_not_be_is_refused_with_a_sentence(text, monkeypatch):
    monkeypatch.setenv("TURNO_LANG", "en")
    with pytest.raises(ValueError, match="1 to 64 are possible"):
        parse_processes(text)
    with pytest.raises(ValueError, match="1 to 64"):
        split(["--processes", text])


def test_an_option_without_its_number_is_refused():
    with pytest.raises(ValueError, match="64"):
        split(["--processes"])


def test_each_of_several_gets_a_name_of_its_own_where_one_was_given():
    assert of_process(["--name", "a", "--queues", "x:1"], 2) == ["--name", "a-2", "--queues", "x:1"]
    assert of_process(["--name=a"], 1) == ["--name=a-1"]
    assert of_process(["--nam", "a"], 3) == ["--nam", "a-3"]
    assert of_process(["--queues", "x:1"], 3) == ["--queues", "x:1"]
