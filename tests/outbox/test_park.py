"""What a message named and its worker could not start: put off for a moment, or parked until somebody can."""

from uuid import uuid4

import pytest

from jobs import transitions
from jobs.outcomes import Verdict
from jobs.states import State
from jobs.transitions import DUE, OUTBOX, WORK
from tests.outbox.rows import outbox, with_broker
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import Sql, ago, execute, make_job, make_worker

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
SILENT = 15.0


@pytest.fixture(autouse=True)
def no_workers(committed):
    yield
    execute("DELETE FROM turno.workers")


def opened(using="default", limit=100):
    return transitions.open_unknown(limit=limit, silent_after=SILENT, using=using)


def parked(**columns):
    return make_job(State.SCHEDULED, **{"waiting_for": "unknown_type", "gate": "a.type", "type": "a.type"} | columns)


def test_a_job_whose_lock_is_held_elsewhere_comes_again_in_one_to_two_seconds(using, ear):
    mades = [make_job(announced_at=ago(1)) for _ in range(40)]
    pairs = [(made.id, made.token) for made in mades]
    assert transitions.defer(pairs, using=using) == {made.id for made in mades}
    assert ear.heard() == [(DUE, "")]
    waits = rows.select("SELECT extract(epoch FROM run_at - now())::float8 AS s, * FROM turno.jobs")
    assert {(row["state"], row["waiting_for"], row["gate"], row["attempts_used"]) for row in waits} == {
        ("Scheduled", "lock", None, 0)
    }
    seconds = [row["s"] for row in waits]
    assert 0 < min(seconds) < max(seconds) <= 2.0
    assert max(seconds) - min(seconds) > 0.3
    assert rows.edges(mades[0].id) == [("Enqueued", "Scheduled", "lock_busy")]


def test_a_deferred_job_comes_back_with_another_token_and_a_message_of_its_own(using):
    made = make_job()
    transitions.defer([(made.id, made.token)], using=using)
    execute(f"UPDATE turno.jobs SET run_at = {ago(1)}")
    with with_broker():
        assert transitions.promote(limit=9, using=using) == 1
    job = rows.job(made.id)
    assert job["dispatch_id"] not in (None, made.token)
    assert [message["dispatch_id"] for message in outbox()] == [job["dispatch_id"]]


@pytest.mark.parametrize("act", [transitions.defer, transitions.park_unknown])
def test_only_what_is_enqueued_with_that_token_is_put_aside(act, using, ear):
    made, other = make_job(), make_job()
    pairs = [(made.id, uuid4()), (uuid4(), uuid4()), (other.id, made.token)]
    assert act(pairs, using=using) == set()
    assert act([], using=using) == set()
    assert [rows.state(m.id) for m in (made, other)] == ["Enqueued"] * 2
    assert ear.heard() == []


def test_a_job_of_an_unknown_type_is_parked_at_the_gate_of_its_type(using, ear):
    made = make_job(type="a.type", announced_at=ago(1))
    assert transitions.park_unknown([(made.id, made.token)], using=using) == {made.id}
    row = rows.job(made.id)
    assert (row["state"], row["waiting_for"], row["gate"], row["run_at"]) == (
        "Scheduled",
        "unknown_type",
        "a.type",
        None,
    )
    assert (row["dispatch_id"], row["announced_at"], row["attempts_used"]) == (None, None, 0)
    assert rows.edges(made.id) == [("Enqueued", "Scheduled", "parked")]
    assert [r["name"] for r in rows.select("SELECT name FROM turno.job_types")] == ["a.type"]
    assert ear.heard() == []


def test_a_job_that_is_parked_so_can_be_cancelled_and_not_run_now():
    made, other = (make_job(type="a.type") for _ in range(2))
    transitions.park_unknown([(m.id, m.token) for m in (made, other)])
    assert transitions.run_now([made.id]) == [
        Verdict(made.id, applied=False, state=State.SCHEDULED, problem="gate"),
    ]
    assert transitions.cancel([other.id])[0].state is State.CANCELLED
    assert transitions.promote(limit=9) == 0


def test_the_gate_opens_once_a_live_worker_serves_the_queue_and_the_type(using, ear):
    made = parked(queue="q")
    assert opened(using) == 0
    make_worker(queues={"q": 2}, types=["other", "a.type"])
    with with_broker():
        assert opened(using) == 1
    row = rows.job(made.id)
    assert (row["state"], row["waiting_for"], row["gate"], row["run_at"]) == ("Enqueued", None, None, None)
    assert row["dispatch_id"] not in (None, made.token)
    assert rows.edges(made.id) == [("Scheduled", "Enqueued", "gate_opened")]
    assert [message["dispatch_id"] for message in outbox()] == [row["dispatch_id"]]
    assert sorted(ear.heard()) == [(OUTBOX, ""), (WORK, "q")]
    assert opened(using) == 0


@pytest.mark.parametrize(
    "worker",
    [
        {"queues": {"elsewhere": 2}},
        {"types": ["a.typ", "a.type.x"]},
        {"types": []},
        {"queues": {}},
        {"state": "Draining"},
        {"state": "Offline"},
        {"seen_at": Sql("now() - interval '16 s'")},
    ],
    ids=str,
)
def test_nobody_who_could_not_start_it_opens_the_gate(worker, using):
    parked(queue="q")
    make_worker(**({"queues": {"q": 2}, "types": ["a.type"]} | worker))
    assert opened(using) == 0


def test_two_workers_that_have_half_of_it_each_do_not_open_the_gate():
    parked(queue="q")
    make_worker(queues={"q": 1}, types=["other"])
    make_worker(queues={"r": 1}, types=["a.type"])
    assert opened() == 0


def test_other_gates_stay_shut(using):
    make_worker(queues={"default": 2}, types=["a.type"])
    for waits in ("circuit", "pause", "concurrency_key"):
        make_job(State.SCHEDULED, waiting_for=waits, gate="a.type", type="a.type")
    make_job(State.SCHEDULED, waiting_for="due", type="a.type")
    assert opened(using) == 0


def test_a_job_whose_instant_was_still_to_come_when_somebody_ran_it_is_not_made_to_wait_again():
    made = parked(not_before=rows.ahead(3600))
    make_worker(queues={"default": 2}, types=["a.type"])
    assert opened() == 1
    assert rows.state(made.id) == State.ENQUEUED


def test_gates_open_by_priority_and_age_and_a_limit_at_a_time(using):
    make_worker(queues={"default": 2, "b": 1}, types=["a.type", "b.type"])
    old, young = (parked(created_at=ago(age)) for age in (90, 10))
    urgent = parked(priority=5, created_at=ago(5), gate="b.type", type="b.type", queue="b")
    order = []
    while opened(using, limit=1):
        order += [made for made in (old, young, urgent) if rows.state(made.id) == "Enqueued" and made not in order]
    assert order == [urgent, old, young]


def test_what_somebody_has_locked_is_stepped_over(using):
    from tests.races.two import lock, rival

    held, free = parked(), parked()
    make_worker(queues={"default": 2}, types=["a.type"])
    with rival() as other:
        lock(other, held.id)
        assert opened(using) == 1
        assert rows.state(free.id) == "Enqueued"
    assert opened(using) == 1
