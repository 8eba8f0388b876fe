"""What a look has found is kept for two days, with the instant since which it is so; of storms the last report."""

import pytest

from jobs import invariants, queries
from jobs.invariants import Checked, Finding, Promise
from tests.transitions.rows import execute, select

pytestmark = pytest.mark.django_db


def finding(name, count=1):
    return Finding(name, Promise.LOST, count, ("a", "b"), "It holds.", "Do it.", more=count == 1000)


def checked(*names, **besides):
    usual = {"unanswered": (), "attended": True, "unsure": False, "seconds": 0.1}
    return Checked(tuple(finding(name) for name in names), **usual | besides)


def older(seconds):
    execute("UPDATE turno.promise_checks SET at = at - %s * interval '1 second'", seconds)


def test_a_look_is_told_as_it_was_stored():
    assert invariants.keep(checked("has_a_way_on", seconds=0.25, unanswered=("fired_once",))) == frozenset()

    last = queries.promises().last
    assert [(b.name, b.count, b.more, b.examples) for b in last.broken] == [("has_a_way_on", 1, False, ("a", "b"))]
    assert (last.unanswered, last.attended, last.seconds, last.kept_for) == (("fired_once",), True, 0.25, None)
    assert 0 <= last.age < 600


def test_what_stays_broken_keeps_the_instant_since_which_it_is():
    invariants.keep(checked("has_a_way_on"))
    execute("UPDATE turno.promise_checks SET found = jsonb_set(found, '{0,since}', '\"2001-01-02T03:04:05+00:00\"')")

    before = invariants.keep(checked("fired_once", "has_a_way_on"))

    assert before == {"has_a_way_on"}
    new, old = queries.promises().last.broken
    assert (old.name, old.since.isoformat()) == ("has_a_way_on", "2001-01-02T03:04:05+00:00")
    assert new.since > old.since


def test_promises_are_kept_since_the_first_good_look_after_the_last_bad_one():
    assert queries.promises().last is None
    for names in ([], ["fired_once"], [], []):
        older(60)
        invariants.keep(checked(*names))

    assert 60 <= queries.promises().last.kept_for < 120


def test_looks_are_forgotten_after_two_days_and_told_by_the_hour():
    for names in ([], ["fired_once"], []):
        older(90_000)
        invariants.keep(checked(*names))

    hours = queries.promises().hours
    assert len(hours) == 48
    assert {hour.ago: (hour.looks, hour.bad) for hour in hours if hour.looks} == {25: (1, 1), 0: (1, 0)}
    assert select("SELECT count(*) AS n FROM turno.promise_checks")[0]["n"] == 2


def test_of_storms_the_last_report_is_kept():
    assert queries.promises().storm is None
    for seed in (7, 8):
        found = [finding("fired_once", 1000)]
        invariants.keep_storm(place="embedded", seed=seed, seconds=90.0, jobs=4000, faults={"kill": 12}, findings=found)

    storm = queries.promises().storm
    assert (storm.place, storm.seed, storm.seconds) == ("embedded", 8, 90.0)
    assert (storm.jobs, storm.faults) == (4000, {"kill": 12})
    assert [(b.name, b.more, b.since) for b in storm.broken] == [("fired_once", True, None)]


def test_the_metrics_tell_how_many_are_broken_and_nothing_before_the_first_look():
    assert queries.broken_invariants() is None
    invariants.keep(checked("fired_once"))
    age, names = queries.broken_invariants()
    assert (names, age < 600) == (["fired_once"], True)
