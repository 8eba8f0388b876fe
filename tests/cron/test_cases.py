"""The agreed cases: what each expression gives in its zone, and which are refused and why."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.cron import BadCron, parse

CASES = json.loads((Path(__file__).parents[1] / "cases" / "cron.json").read_text("utf-8"))
# Field, part of the expression, and a word of the reason.
REFUSED = {
    "X01": ("cron", "", "never"),
    "X04": ("cron", "minute", "60"),
    "X06": ("cron", "day", "1 to 31"),
    "X08": ("cron", "weekday", "0 to 7"),
    "X09": ("cron", "minute", "step"),
    "X10": ("cron", "", "got 4"),
    "X12": ("cron", "", "expression"),
    "X16": ("timezone", "", "IANA"),
    "X17": ("timezone", "", "Eastern Standard Time"),
}


def instants(texts):
    return [datetime.fromisoformat(text) for text in texts]


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: case["id"])
def test_each_case_runs_at_exactly_its_instants(case):
    schedule = parse(case["expression"], case["timezone"])
    start, expected = datetime.fromisoformat(case["start_utc"]), instants(case["expected_utc"])

    assert schedule.upcoming(start, len(expected)) == expected
    assert schedule.missed(start, expected[-1], 100) == expected
    assert schedule.count(start, expected[-1]) == len(expected)


@pytest.mark.parametrize("case", CASES["must_reject"], ids=lambda case: case["id"])
def test_each_refusal_names_the_field_and_the_reason(case):
    field, part, word = REFUSED[case["id"]]

    with pytest.raises(BadCron) as refused:
        parse(case["expression"], case["timezone"])

    assert (refused.value.field, refused.value.part) == (field, part)
    assert list(refused.value.errors) == [field]
    assert word in refused.value.errors[field][0]


def test_a_range_of_weekdays_goes_over_the_end_of_the_week():
    (case,) = CASES["reject_or_as_stated"]
    schedule = parse(case["expression"], case["timezone"])

    week = schedule.upcoming(datetime(2025, 1, 1, tzinfo=UTC), 4)

    assert [f"{instant:%a}" for instant in week] == ["Fri", "Sat", "Sun", "Mon"]
