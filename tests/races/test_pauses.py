"""Pauses against claims, parks and enqueues: nothing starts once a pause is committed, and nobody is left behind."""

import pytest

from jobs import transitions
from jobs.transitions import Wanted
from tests.races.two import Other, holding, together
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import claimant
from tests.transitions.rows import ahead, execute, make_job, make_jobs, make_worker, select

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
ENGINE = "engine"
TYPE = "a.type"
GATES = {
    "type": (TYPE, {"type": TYPE}),
    "tag": ("nightly", {"type": TYPE, "tags": ["nightly"]}),
    "key": ("k", {"type": TYPE, "concurrency_key": "k", "concurrency_limit": 1000}),
}


@pytest.fixture(autouse=True)
def served(committed):
    make_worker(queues={"default": 9}, types=[TYPE])
    yield
    for table in ("workers", "pauses", "concurrency_slots", "concurrency_keys"):
        execute(f"DELETE FROM turno.{table}")


def claimed(using=ENGINE):
    offer = [("default", n) for n in range(1, 9)]
    return [claim.id for claim in transitions.claim_next(offer, types=[TYPE], **claimant(), using=using)]


def heads(using=ENGINE):
    return transitions.park_paused_heads(limit=10, silent_after=60.0, using=using)


def left_behind():
    """Starts whatever can start; how many jobs wait for a pause that there is not, or are not started."""
    while transitions.open_pauses(limit=100):
        pass
    while claimed("default"):
        pass
    [row] = select("SELECT count(*) AS n FROM turno.jobs WHERE state <> 'Processing'")
    return row["n"]


@pytest.mark.parametrize("scope", GATES)
def test_who_parks_while_a_pause_is_being_lifted_parks_nothing(scope):
    value, columns = GATES[scope]
    transitions.pause(scope, value)
    made = make_job(**columns)
    with holding():
        transitions.resume(scope, value)
        parker = Other(lambda: transitions.park_paused([(made.id, made.token)], using=ENGINE))
        parker.is_waiting()
    assert parker.answer() == set()
    assert claimed() == [made.id]


@pytest.mark.parametrize("scope", GATES)
def test_who_lifts_a_pause_while_somebody_parks_for_it_wakes_what_was_parked(scope):
    value, columns = GATES[scope]
    transitions.pause(scope, value)
    made = make_job(**columns)
    with holding():
        assert transitions.park_paused([(made.id, made.token)]) == {made.id}
        lifter = Other(lambda: transitions.resume(scope, value, using=ENGINE))
        lifter.is_waiting()
    assert lifter.answer().value == value
    assert rows.edges(made.id) == [("Enqueued", "Scheduled", "parked"), ("Scheduled", "Enqueued", "gate_opened")]


def test_who_parks_heads_while_a_pause_is_being_lifted_parks_nothing():
    transitions.pause("type", TYPE)
    make_jobs(5, type=TYPE)
    with holding():
        transitions.resume("type", TYPE)
        parker = Other(heads)
        parker.is_waiting()
    assert parker.answer() == 0
    assert len(claimed()) == 5


def test_a_pause_that_is_made_longer_at_its_end_stays():
    """Whoever cleans up has found it over, and waits for the person."""
    execute(f"INSERT INTO turno.pauses (scope, value, until) VALUES ('type', '{TYPE}', now() - interval '1 second')")
    made = make_job("Scheduled", type=TYPE, waiting_for="pause", gate=f"type:{TYPE}")
    with holding():
        transitions.pause("type", TYPE, reason="longer")
        assert Other(lambda: transitions.expire_pauses(using=ENGINE)).answer() == []
    assert transitions.expire_pauses(using=ENGINE) == []
    assert rows.state(made.id) == "Scheduled"
    assert claimed() == []


def test_two_who_lift_the_same_pause_wake_each_job_once():
    transitions.pause("type", TYPE)
    made = [make_job("Scheduled", type=TYPE, waiting_for="pause", gate=f"type:{TYPE}") for _ in range(30)]
    found = together([lambda: transitions.resume("type", TYPE, using=ENGINE)] * 3)
    assert sum(one is not None for one in found) == 1
    assert all(rows.edges(one.id) == [("Scheduled", "Enqueued", "gate_opened")] for one in made)


def test_two_who_pause_the_same_make_one_pause():
    found = together([lambda n=n: transitions.pause("tag", "x", reason=str(n), using=ENGINE) for n in range(4)])
    assert all(one is not None for one in found)
    assert len(select("SELECT * FROM turno.pauses")) == 1


@pytest.mark.parametrize("scope", ["queue", *GATES])
def test_nothing_starts_by_a_claim_that_begins_after_a_pause_was_committed(scope):
    """Each row says when its claim began and when it was written, by the database's clock: a pause that was there all
    the while must have kept it back."""
    value, columns = ("default", {"type": TYPE}) if scope == "queue" else GATES[scope]
    made = [make_job(**columns) for _ in range(120)]

    def claims():
        return [claimed() for _ in range(25)]

    def by_message():
        return [
            transitions.claim([Wanted(one.id, one.token, 1, "default")], types=[TYPE], **claimant(), using=ENGINE)
            for one in made[::6]
        ]

    def pauses():
        spans = []
        for _ in range(12):
            transitions.pause(scope, value, using=ENGINE)
            [since] = select("SELECT clock_timestamp() AS now", using=ENGINE)
            heads()
            [until] = select("SELECT clock_timestamp() AS now", using=ENGINE)
            spans.append((since["now"], until["now"]))
            transitions.resume(scope, value, using=ENGINE)
        return spans

    spans, *_ = together([pauses, claims, claims, by_message])
    started = select(
        "SELECT claimed_at AS began, lease_expires_at - make_interval(secs => %s) AS written FROM turno.jobs"
        " WHERE state = 'Processing'", claimant()["lease"],
    )  # fmt: skip
    assert [row for row in started if any(s < row["began"] and row["written"] < u for s, u in spans)] == []
    assert left_behind() == 0
    runs = select("SELECT count(*) AS n FROM turno.job_state_changes WHERE to_state = 'Processing'")
    assert runs == [{"n": len(made)}]


def test_jobs_that_come_at_the_very_moment_at_which_a_pause_ends_are_not_left_behind():
    """Some are met while it holds, some after: whoever cleans up wakes those, and these it has never held back."""
    made = []

    def comes():
        for _ in range(60):
            one = make_job(type=TYPE, using=ENGINE)
            made.append(one)
            wanted = [Wanted(one.id, one.token, 1, "default")]
            if not transitions.claim(wanted, types=[TYPE], **claimant(), using=ENGINE):
                transitions.left(wanted, types=[TYPE], using=ENGINE)

    def cleans():
        for _ in range(60):
            transitions.expire_pauses(using=ENGINE)
            heads()

    execute(f"INSERT INTO turno.pauses (scope, value, until) VALUES ('type', '{TYPE}', {ahead(0.1)})")
    together([comes, cleans])
    execute("UPDATE turno.pauses SET until = now()")
    transitions.expire_pauses()
    assert left_behind() == 0
    assert len(made) == 60


def test_a_long_waiting_line_is_woken_whole_while_others_pause_it_again():
    """Whoever resumes goes on batch by batch; a new pause in between stops that, and its own end wakes the rest."""
    make_jobs(2500, "Scheduled", type=TYPE, waiting_for="pause", gate=f"type:{TYPE}")
    transitions.pause("type", TYPE)

    def turns():
        for _ in range(3):
            transitions.resume("type", TYPE, using=ENGINE)
            transitions.pause("type", TYPE, using=ENGINE)
            heads()

    together([turns, turns])
    transitions.resume("type", TYPE)
    while transitions.open_pauses(limit=1000):
        pass
    assert select("SELECT DISTINCT state FROM turno.jobs") == [{"state": "Enqueued"}]
