"""What is paused: nothing of it starts, what is met is parked once, and whoever lifts the pause wakes it."""

import pytest

from jobs import transitions
from jobs.transitions import CONTROL, WORK, Wanted, pauses
from tests.transitions import COMMITTED, rows
from tests.transitions.breakers import opened
from tests.transitions.edges import claimant
from tests.transitions.rows import ago, ahead, execute, make_job, make_jobs, select

pytestmark = [COMMITTED, pytest.mark.usefixtures("served")]
TYPE, OTHER = "a.type", "other"
KEYED = {"concurrency_key": "customer-42", "concurrency_limit": 1}
# By each scope: the value that is paused, the columns of a job that is held back by it, and its gate.
HELD = {
    "type": (TYPE, {"type": TYPE}, "type:a.type"),
    "key": ("customer-42", {"type": OTHER, **KEYED}, "key:customer-42"),
    "tag": ("nightly: 1", {"type": OTHER, "tags": ["x", "nightly: 1"]}, "tag:nightly: 1"),
}


@pytest.fixture(autouse=True)
def resumed(served):
    yield
    for table in ("pauses", "concurrency_slots", "concurrency_keys"):
        execute(f"DELETE FROM turno.{table}")


@pytest.fixture(params=HELD)
def scope(request):
    return request.param


def paused(scope, value, using="default", **more):
    return transitions.pause(scope, value, using=using, **more)


def over(scope, value):
    """A pause whose time came while nobody was looking."""
    execute(f"INSERT INTO turno.pauses (scope, value, until) VALUES (%s, %s, {ago(1)})", scope, value)


def claimed(using, slots=8):
    offer = [("default", number) for number in range(1, slots + 1)]
    return transitions.claim_next(offer, types=[TYPE, OTHER], **claimant(), using=using)


def named(made, using):
    """What becomes of the message of a job: the ids that are claimed, and the tokens that wait on."""
    wanted = [Wanted(made.id, made.token, 1, "default")]
    claims = transitions.claim(wanted, types=[TYPE, OTHER], **claimant(), using=using)
    return [c.id for c in claims], transitions.left(wanted, types=[TYPE, OTHER], using=using) if not claims else set()


def heads(using, limit=100):
    return transitions.park_paused_heads(limit=limit, silent_after=60.0, using=using)


def parked(scope, **columns):
    _value, own, gate = HELD[scope]
    return make_job("Scheduled", **{"waiting_for": "pause", "gate": gate} | own | columns)


def test_a_search_leaves_out_what_is_paused_and_takes_the_rest(using, scope):
    value, columns, _gate = HELD[scope]
    paused(scope, value, using)
    make_job(priority=9, **columns)
    other = make_job(type=OTHER, tags=["y"], concurrency_key="customer-4", concurrency_limit=1)
    plain = make_job(type=OTHER)
    assert {claim.id for claim in claimed(using)} == {other.id, plain.id}


def test_a_message_of_what_is_paused_parks_its_job_and_names_the_gate(using, scope):
    value, columns, gate = HELD[scope]
    paused(scope, value, using)
    made = make_job(**columns)
    assert named(made, using) == ([], set())
    row = rows.job(made.id)
    assert (row["state"], row["waiting_for"], row["gate"]) == ("Scheduled", "pause", gate)
    assert (row["attempts_used"], row["executions"], row["dispatch_id"]) == (0, 0, None)
    assert rows.edges(made.id) == [("Enqueued", "Scheduled", "parked")]


def test_what_several_pauses_hold_back_is_parked_at_the_pause_of_its_type_first(using):
    for scope, (value, _columns, _gate) in HELD.items():
        paused(scope, value, using)
    made = make_job(type=TYPE, tags=["nightly: 1"], **KEYED)
    named(made, using)
    assert rows.job(made.id)["gate"] == "type:a.type"
    transitions.resume("type", TYPE, using=using)
    [token] = [row["dispatch_id"] for row in select("SELECT dispatch_id FROM turno.jobs")]
    named(rows.Made(made.id, token, made.worker, "default", TYPE), using)
    assert rows.job(made.id)["gate"] == "key:customer-42"


def test_a_pause_that_is_over_holds_nothing_back_even_before_it_is_cleaned_away(using, scope):
    value, columns, _gate = HELD[scope]
    over(scope, value)
    first, second = make_job(**columns), make_job(**columns | {"concurrency_key": None, "concurrency_limit": None})
    assert heads(using) == 0
    assert named(first, using)[0] == [first.id]
    assert [claim.id for claim in claimed(using)] == [second.id]


def test_a_pause_comes_before_a_breaker(using):
    opened()
    paused("type", TYPE, using)
    made = make_job(type=TYPE)
    named(made, using)
    assert rows.job(made.id)["waiting_for"] == "pause"


def test_a_message_whose_pause_was_lifted_a_moment_ago_is_still_wanted(using):
    made = make_job(type=TYPE)
    assert transitions.park_paused([(made.id, made.token)], using=using) == set()
    assert transitions.park_paused([], using=using) == set()
    paused("type", TYPE, using)
    transitions.resume("type", TYPE, using=using)
    assert named(made, using)[0] == [made.id]


def test_what_waits_at_a_head_is_parked_once_each_however_often_somebody_looks(using, scope):
    value, columns, _gate = HELD[scope]
    paused(scope, value, using)
    make_jobs(450, **columns)
    make_jobs(3, type=OTHER)
    counts = []
    while moved := heads(using):
        counts.append(moved)
    assert sum(counts) == 450
    assert max(counts) <= 100
    changes = select("SELECT count(*) AS n, count(DISTINCT job_id) AS jobs FROM turno.job_state_changes")
    assert changes == [{"n": 450, "jobs": 450}]


def test_the_pause_of_a_type_keeps_the_others_of_its_queue_flowing_with_thousands_before_them(using):
    """A claim passes them by in its one statement; once they are parked it does not even meet them."""
    make_jobs(5000, type=TYPE, priority=5)
    others = [make_job(type=OTHER) for _ in range(16)]
    paused("type", TYPE, using)
    first = claimed(using)
    while heads(using, limit=1000):
        pass
    second = claimed(using)
    assert [claim.id for claim in (*first, *second)] == [made.id for made in others]
    assert select("SELECT count(*) AS n FROM turno.jobs WHERE gate = 'type:a.type'") == [{"n": 5000}]
    assert transitions.resume("type", TYPE, using=using).value == TYPE
    assert select("SELECT DISTINCT state FROM turno.jobs WHERE type = 'a.type'") == [{"state": "Enqueued"}]
    assert select("SELECT count(*) AS n FROM turno.job_state_changes WHERE to_state <> 'Processing'") == [{"n": 10_000}]


def test_nothing_is_parked_in_a_queue_that_is_paused_itself_or_that_nobody_serves(using):
    paused("type", TYPE, using)
    elsewhere, here = make_job(type=TYPE, queue="elsewhere"), make_job(type=TYPE)
    paused("queue", "default", using)
    assert heads(using) == 0
    transitions.resume("queue", "default", using=using)
    assert heads(using) == 1
    assert [rows.state(made.id) for made in (elsewhere, here)] == ["Enqueued", "Scheduled"]


def test_jobs_of_a_paused_queue_stay_enqueued_and_its_workers_hear_of_it(using, ear):
    made = make_job(type=OTHER)
    assert paused("queue", "default", using).gate is None
    assert claimed(using) == []
    assert named(made, using) == ([], {made.token})
    assert ear.heard() == [(CONTROL, '{"queue":"default"}')]
    assert transitions.resume("queue", "default", using=using) is not None
    assert set(ear.heard()) == {(CONTROL, '{"queue":"default"}'), (WORK, "default")}
    assert [claim.id for claim in claimed(using)] == [made.id]


def test_a_second_pause_of_the_same_says_it_anew(using, scope):
    value, _columns, _gate = HELD[scope]
    first = paused(scope, value, using, reason="one", actor="ana")
    second = paused(scope, value, using, reason="two", actor="bia", until=first.since.replace(year=9998))
    assert (second.reason, second.who, second.since) == ("two", "bia", first.since)
    assert second.until.year == 9998
    assert len(select("SELECT * FROM turno.pauses")) == 1


def test_a_pause_of_what_had_run_out_begins_anew(using):
    execute(f"INSERT INTO turno.pauses (scope, value, until, created_at) VALUES ('tag', 'x', {ago(1)}, {ago(999)})")
    before = select("SELECT now() AS now")[0]["now"]
    assert paused("tag", "x", using).since >= before


def test_an_end_that_is_over_is_no_pause(using):
    [now] = select("SELECT now() AS now")
    assert paused("tag", "x", using, until=now["now"]) is None
    assert select("SELECT * FROM turno.pauses") == []


def test_a_resume_wakes_who_waited_by_priority_and_keeps_their_place(using, scope, ear):
    value, _columns, _gate = HELD[scope]
    paused(scope, value, using)
    old = parked(scope, enqueued_at=ago(500))
    best, young = parked(scope, priority=3), parked(scope, enqueued_at=ago(100))
    last = make_job(type=OTHER, enqueued_at=ago(50))
    ear.heard()
    assert transitions.resume(scope, value, using=using).value == value
    order = "SELECT id FROM turno.jobs WHERE state = 'Enqueued' ORDER BY priority DESC, enqueued_at, id"
    assert [row["id"] for row in select(order)] == [best.id, old.id, young.id, last.id]
    assert rows.edges(best.id)[0] == ("Scheduled", "Enqueued", "gate_opened")
    assert (WORK, "default") in ear.heard()
    assert transitions.resume(scope, value, using=using) is None


def test_a_resume_wakes_only_its_own(using):
    paused("type", TYPE, using)
    paused("tag", TYPE, using)
    mine, others = parked("type"), make_job("Scheduled", waiting_for="pause", gate=f"tag:{TYPE}", tags=[TYPE])
    transitions.resume("type", TYPE, using=using)
    assert [rows.state(made.id) for made in (mine, others)] == ["Enqueued", "Scheduled"]


def test_what_is_cancelled_while_it_is_paused_is_not_woken(using):
    paused("type", TYPE, using)
    made = parked("type")
    transitions.cancel([made.id], using=using)
    transitions.resume("type", TYPE, using=using)
    assert rows.state(made.id) == "Cancelled"


def test_a_parked_job_is_not_run_now(using):
    paused("type", TYPE, using)
    [verdict] = transitions.run_now([parked("type").id], using=using)
    assert (verdict.applied, verdict.problem) == (False, "gate")


def test_the_end_of_a_pause_wakes_like_a_person(using, scope, ear):
    value, _columns, _gate = HELD[scope]
    over(scope, value)
    execute(f"INSERT INTO turno.pauses (scope, value, until) VALUES ('queue', 'default', {ago(1)})")
    execute(f"INSERT INTO turno.pauses (scope, value, until) VALUES ('tag', 'later', {ahead(60)})")
    made = parked(scope)
    assert {pause.value for pause in transitions.expire_pauses(using=using)} == {value, "default"}
    assert rows.state(made.id) == "Enqueued"
    assert (CONTROL, '{"queue":"default"}') in ear.heard()
    assert transitions.expire_pauses(using=using) == []
    assert [row["value"] for row in select("SELECT value FROM turno.pauses")] == ["later"]


def test_what_a_resume_left_behind_is_woken_in_batches(using, scope):
    """Whoever resumes may die between two of its batches."""
    for _ in range(3):
        parked(scope)
    value, _columns, _gate = HELD[scope]
    assert [transitions.open_pauses(limit=2, using=using) for _ in range(3)] == [2, 1, 0]
    paused(scope, value, using)
    held = parked(scope)
    assert transitions.open_pauses(limit=9, using=using) == 0
    assert rows.state(held.id) == "Scheduled"


def test_a_resume_wakes_the_first_thousands_and_whoever_leads_the_rest(using, monkeypatch):
    """A person waits for the answer, and a hundred thousand may be parked."""
    monkeypatch.setattr(pauses, "WAKES", 2)
    paused("type", TYPE, using)
    made = [parked("type", priority=n % 3) for n in range(2 * pauses.BATCHES + 5)]
    transitions.resume("type", TYPE, using=using)
    left = select("SELECT priority FROM turno.jobs WHERE waiting_for = 'pause'")
    assert [row["priority"] for row in left] == [0, 0, 0]
    assert [transitions.open_pauses(limit=2, using=using) for _ in range(3)] == [2, 1, 0]
    assert all(rows.state(one.id) == "Enqueued" for one in made)


def test_a_job_that_is_parked_gives_back_the_slot_that_was_kept_for_it(using, ear):
    execute("INSERT INTO turno.concurrency_keys (kind, value) VALUES ('key', 'customer-42')")
    made = make_job(type=TYPE, **KEYED)
    execute(
        "INSERT INTO turno.concurrency_slots (key_id, slot, job_id, dispatch_id) "
        "SELECT id, 1, %s, %s FROM turno.concurrency_keys", made.id, made.token,
    )  # fmt: skip
    paused("type", TYPE, using)
    assert heads(using) == 1
    assert select("SELECT * FROM turno.concurrency_slots") == []
    assert ("turno_gates", "key:customer-42") in ear.heard()
