"""What only holds soon is broken when it was so at every look for the margin; and what a look does to the database."""

import pytest
from django.db import connection

from jobs import invariants
from jobs.invariants import Watch
from jobs.invariants.checking import LIVE
from tests.database.explain import generate_jobs, plan_of, tables_scanned
from tests.transitions.rows import execute, select

LATE = "UPDATE turno.jobs SET run_at = now() - interval '1 hour' WHERE id = %s"


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def names(checked):
    return [finding.name for finding in checked.findings]


def test_what_holds_soon_is_broken_only_after_the_margin(house):
    clock = Clock()
    watch = Watch(margin=30, attended=True, clock=clock)
    execute(LATE, house["due"])

    first = watch.look()
    clock.now += 29
    second = watch.look()
    clock.now += 1
    third = watch.look()

    assert (names(first), first.unsure) == ([], True)
    assert (names(second), second.unsure) == ([], True)
    assert (names(third), third.unsure) == (["due_is_enqueued"], False)
    assert third.findings[0].examples == (str(house["due"]),)


def test_two_looks_that_are_far_apart_say_nothing_of_the_time_between(house):
    clock = Clock()
    watch = Watch(margin=30, attended=True, clock=clock)
    execute(LATE, house["due"])
    watch.look()
    clock.now += 60

    assert (names(watch.look()), watch.look().unsure) == ([], True)


def test_another_job_at_each_look_is_a_house_that_works(house):
    clock = Clock()
    watch = Watch(margin=30, attended=True, clock=clock)
    for name in ("due", "parent", "due"):
        execute("UPDATE turno.jobs SET run_at = now() + interval '1 hour' WHERE run_at < now()")
        execute(LATE, house[name])
        checked = watch.look()
        clock.now += 30

    assert names(checked) == []


def test_where_nobody_leads_what_holds_soon_is_not_asked(house):
    execute(LATE, house["due"])
    assert names(invariants.examine(margin=0)) == ["due_is_enqueued"]

    execute("UPDATE turno.workers SET seen_at = now() - interval '1 hour'")
    alone = invariants.examine(margin=0)

    assert (names(alone), alone.attended) == ([], False)
    assert [finding.name for finding in invariants.check(margin=0, whole=True)] == ["due_is_enqueued"]


def test_a_worker_that_has_just_come_is_given_the_margin(house):
    execute(LATE, house["due"])
    execute("UPDATE turno.workers SET started_at = now() - interval '5 seconds'")
    assert not invariants.examine(margin=10).attended
    assert invariants.examine(margin=0).attended


def test_a_finding_is_told_in_one_line_with_five_ids_at_most(house):
    execute("DELETE FROM turno.job_state_changes")
    (found,) = invariants.check(margin=0, attended=True)

    assert found.name == "history_is_whole"
    assert found.promise == "truth"
    assert len(found.examples) == 5
    assert found.count == select("SELECT count(*) AS n FROM turno.jobs")[0]["n"]
    assert str(found).startswith(f"history_is_whole: {found.count} (")
    assert str(found).endswith(", …)")


def test_a_statement_that_takes_too_long_is_left_out_and_named(house, monkeypatch):
    monkeypatch.setitem(LIVE, "fired_once", "SELECT 'x' FROM pg_sleep(30)")
    monkeypatch.setattr("jobs.invariants.checking.TIME", 1.0)
    monkeypatch.setattr("jobs.invariants.checking.BUDGET", 600.0)  # a busy machine leaves no other out

    checked = invariants.examine(margin=0, attended=True)

    assert checked.unanswered == ("fired_once",)
    assert checked.findings == ()


@pytest.mark.django_db
def test_a_look_at_a_living_house_reads_no_jobs_from_end_to_end():
    generate_jobs()
    with connection.cursor() as cursor:
        params = Watch(attended=True)._params(cursor)

    for name, statement in sorted(LIVE.items()):
        assert "jobs" not in tables_scanned(plan_of(statement, params)), name
