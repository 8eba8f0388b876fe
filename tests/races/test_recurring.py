"""Recurring jobs when many fire, edit and trigger them at once, freeze between two statements, or die there."""

from datetime import datetime, timedelta

import pytest
from django.db import connection, transaction

from jobs import schedules, transitions
from jobs.conf import overridden
from jobs.errors import Conflict
from jobs.schedules import Wanted
from jobs.schedules.declared import synchronise
from tests.jobs.enqueue_types import registered
from tests.races.two import Other, holding, together
from tests.transitions import COMMITTED
from tests.transitions.recurring import TYPE, fire_all, instants, jobs_of, make_many, make_recurring, recurring
from tests.transitions.rows import Sql, ago, execute, select

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
ENGINE = "engine"
GRACE = 60.0


@pytest.fixture(autouse=True)
def types(committed):
    with registered():
        yield
    execute("DELETE FROM turno.recurring_jobs")


def read():
    """What a leader has read and worked out, and not written yet."""
    found = transitions.due(limit=200, using=ENGINE)
    work = schedules.firing._Work(schedules.firing.conf(), ENGINE)
    return [work.firing(due) for due in found]


def write(firings):
    return transitions.fire(firings, fresh=GRACE, using=ENGINE)


def fire():
    return fire_all(using=ENGINE)


def each_once(count):
    """`count` jobs, each of another recurring one or another instant."""
    [row] = select(
        "SELECT count(*) AS jobs, count(DISTINCT (recurring_job_id, fired_for)) AS instants FROM turno.jobs "
        "WHERE recurring_job_id IS NOT NULL"
    )
    return row == {"jobs": count, "instants": count}


@pytest.mark.parametrize(("overlap", "leaders"), [("skip", 50), ("allow", 10), ("queue", 10)])
def test_all_who_believe_that_they_lead_fire_each_instant_once(overlap, leaders):
    make_many(300, overlap=f"'{overlap}'", next_run_at="now() - n * interval '10 ms'")
    fired = together([fire] * leaders)
    assert sum(fired) == 300
    assert each_once(300)


def test_four_leaders_fire_each_second_once_while_time_goes_on():
    ids = [make_recurring(cron="* * * * * *", overlap="allow", misfire="all", next_run_at=ago(n)) for n in range(5)]

    def lead():
        for _round in range(40):
            schedules.fire_due(using=ENGINE)

    together([lead] * 4)
    fire()
    for id_ in ids:
        found = instants(id_)
        whole = [at for at in found[1:] if at.microsecond == 0]  # the first one is the instant that the row had
        assert len(set(found)) == len(found)
        assert whole == [whole[0] + timedelta(seconds=n) for n in range(len(whole))]
        assert recurring(id_)["skipped"] == 0


def test_a_leader_that_was_frozen_after_it_had_read_fires_nothing_that_another_one_has_fired():
    id_ = make_recurring(overlap="allow")
    frozen = read()
    assert fire() == 1
    assert write(frozen) == {}
    assert len(jobs_of(id_)) == 1
    assert recurring(id_)["version"] == 1


@pytest.mark.parametrize("dies", [False, True], ids=["thaws", "dies"])
def test_a_leader_frozen_inside_of_its_transaction_holds_up_nobody_and_nothing_is_lost(dies):
    first, other = make_recurring(next_run_at=ago(9)), make_recurring(next_run_at=ago(5))
    frozen = [firing for firing in read() if firing.due.id == first]
    with holding(roll_back=dies):
        transitions.fire(frozen, fresh=GRACE)
        assert Other(fire).answer() == 1  # waits for nothing
        assert len(jobs_of(other)) == 1
    assert fire() == dies
    assert len(jobs_of(first)) == 1
    assert each_once(2)


def test_a_full_batch_in_the_hands_of_one_that_is_frozen_holds_up_none_behind_it():
    make_many(30, next_run_at="now() - interval '1 minute'")
    frozen = read()
    behind = make_recurring(next_run_at=ago(1))
    with holding(roll_back=True):
        transitions.fire(frozen, fresh=GRACE)
        assert Other(lambda: schedules.fire_due(limit=30, using=ENGINE)).answer() == 1
    assert len(jobs_of(behind)) == 1


EDITS = {
    "disabled": lambda id_: schedules.disable(id_, actor="ana"),
    "deleted": lambda id_: schedules.delete(id_, actor="ana"),
    "another payload": lambda id_: schedules.put(wanted(id_, payload={"new": 1}), actor="ana"),
    "another hour": lambda id_: schedules.put(wanted(id_, cron="0 1" + recurring(id_)["cron"][3:]), actor="ana"),
}


def wanted(id_, **fields):
    row = recurring(id_)
    return Wanted(**{"name": row["name"], "type": TYPE, "cron": row["cron"], "payload": {}} | fields)


@pytest.mark.parametrize("edit", EDITS)
def test_what_was_read_before_an_edit_is_void(edit):
    id_ = make_recurring()
    frozen = read()
    EDITS[edit](id_)
    assert write(frozen) == {}
    assert jobs_of(id_) == []
    fire()
    assert [job["payload"] for job in jobs_of(id_)] == ([{"new": 1}] if edit == "another payload" else [])


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_while_somebody_fires_waits_and_holds_afterwards(edit):
    id_ = make_recurring()
    firings = read()
    with holding():
        transitions.fire(firings, fresh=GRACE)
        editor = Other(lambda: EDITS[edit](id_), using="default")
        editor.is_waiting()
    editor.answer()
    assert len(jobs_of(id_)) == 1


def test_two_who_edit_what_they_saw_at_once_do_not_undo_each_other():
    id_ = make_recurring(enabled=False)
    seen = recurring(id_)["updated_at"]

    def edit(number):
        try:
            schedules.update(id_, wanted(id_, payload={"n": number}), seen=seen, actor="ana")
        except Conflict as conflict:
            return conflict.extra["reason"]
        return "done"

    answers = together([lambda n=n: edit(n) for n in range(8)])
    assert sorted(answers) == ["done"] + ["seen"] * 7


def test_firing_is_no_edit():
    id_ = make_recurring()
    seen = recurring(id_)["updated_at"]
    assert fire() == 1
    assert schedules.update(id_, wanted(id_, cron="0 5 * * *"), seen=seen, actor="ana") == id_


def test_of_many_who_trigger_at_once_one_makes_a_job_and_the_others_are_told_which():
    id_ = make_recurring(enabled=False)

    def trigger():
        try:
            return schedules.trigger(id_, actor="ana"), None
        except Conflict as conflict:
            return None, conflict.extra["job"]

    answers = together([trigger] * 20)
    [job] = jobs_of(id_)
    assert [made for made, _ in answers if made] == [job["id"]]
    assert {told for _, told in answers if told} == {str(job["id"])}


def test_a_trigger_against_who_fires_makes_one_job_of_the_two():
    id_ = make_recurring()
    firings = read()
    with holding():
        transitions.fire(firings, fresh=GRACE)
        late = Other(lambda: schedules.trigger(id_, actor="ana"), using="default")
        late.is_waiting()
    with pytest.raises(Conflict):
        late.answer()
    assert len(jobs_of(id_)) == 1


class Killed(Exception):
    """The process died here."""


def killed_after(statements):
    """What Django calls in place of executing a statement: the process dies after so many."""
    left = [statements]

    def run(execute_, sql, params, many, context):
        answer = execute_(sql, params, many, context)
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        return answer

    return run


@pytest.mark.parametrize("misfire", ["once", "all"])
def test_whoever_dies_between_any_two_statements_has_fired_all_or_nothing(misfire):
    columns = {"misfire": misfire, "overlap": "skip", "next_run_at": Sql("now() - interval '3 years'")}
    plain = make_recurring(**columns)
    assert fire() == 1
    whole = len(jobs_of(plain))
    assert whole == (4 if misfire == "all" else 1)
    statements = 0
    while True:
        statements += 1
        id_ = make_recurring(**columns)
        try:
            with connection.execute_wrapper(killed_after(statements)):
                schedules.fire_due()
        except Killed:
            assert (len(jobs_of(id_)), recurring(id_)["version"]) == (0, 0), statements
            assert fire() == 1
            assert len(jobs_of(id_)) == whole
            continue
        break
    assert statements >= 5  # what is due, the rows, what is active, the jobs, what is told


def test_whoever_dies_while_it_triggers_has_made_a_job_or_none():
    for statements in range(1, 6):
        id_ = make_recurring(enabled=False)
        with pytest.raises(Killed), connection.execute_wrapper(killed_after(statements)):
            schedules.trigger(id_, actor="ana")
        assert jobs_of(id_) == []
        assert recurring(id_)["last_job_id"] is None


DECLARED = {
    f"declared-{n:02}": {"type": TYPE, "cron": "* * * * *", "payload": {"n": n}, "enabled": n % 2 == 0}
    for n in range(12)
}


def names():
    return [row["name"] for row in select("SELECT name FROM turno.recurring_jobs ORDER BY name")]


def test_ten_workers_that_start_at_once_make_one_row_of_each():
    with overridden(recurring_jobs=DECLARED, samples={"enabled": False}):
        assert together([lambda: synchronise(using=ENGINE)] * 10) == [[]] * 10
        assert names() == sorted(DECLARED)
        [row] = select("SELECT min(version) AS least, max(version) AS most FROM turno.recurring_jobs")
        assert row == {"least": 1, "most": 1}


def test_ten_workers_that_start_at_once_with_another_file_change_each_row_once():
    with overridden(recurring_jobs=DECLARED, samples={"enabled": False}):
        synchronise()
    changed = {name: entry | {"cron": "0 4 * * *"} for name, entry in list(DECLARED.items())[:6]}
    with overridden(recurring_jobs=changed, samples={"enabled": False}):
        together([lambda: synchronise(using=ENGINE)] * 10)
    [row] = select("SELECT min(version) AS least, max(version) AS most FROM turno.recurring_jobs")
    assert row == {"least": 2, "most": 2}


def test_who_starts_while_somebody_disables_leaves_it_disabled():
    with overridden(recurring_jobs=DECLARED, samples={"enabled": False}):
        synchronise()
        [row] = select("SELECT id FROM turno.recurring_jobs WHERE name = 'declared-00'")
        other = {name: entry | {"cron": "0 4 * * *"} for name, entry in DECLARED.items()}
    with overridden(recurring_jobs=other, samples={"enabled": False}), transaction.atomic():
        schedules.disable(row["id"], actor="ana")
        starting = Other(lambda: synchronise(using=ENGINE))
        starting.is_waiting()
    starting.answer()
    after = recurring(row["id"])
    assert (after["enabled"], after["disabled_by"], after["cron"]) == (False, "ana", "0 4 * * *")


def test_a_clock_that_is_set_back_fires_nothing_again():
    id_ = make_recurring(overlap="allow", next_run_at=ago(30))
    fire()
    [first] = jobs_of(id_)
    execute("UPDATE turno.recurring_jobs SET next_run_at = %s", first["fired_for"])  # worked out by a clock behind
    fire()
    assert instants(id_)[0] == first["fired_for"]
    assert len(set(instants(id_))) == len(jobs_of(id_))
    assert isinstance(recurring(id_)["next_run_at"], datetime)
