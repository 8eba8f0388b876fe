"""Types that no live worker of a queue has: since when, and who is parked for it."""

from datetime import timedelta

import pytest

from jobs import transitions
from jobs.states import State
from jobs.transitions import unknown
from tests.races.two import lock, rival
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import ago, execute, select
from tests.transitions.unserved import book, fail, park, parked, unserved, waiting, watch, worker

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
# What nobody takes jobs of its queue by.
UNSERVED = {
    "no worker": None,
    "of another queue": {"queues": {"r": 2}},
    "without a slot": {"queues": {"default": 0}},
    "silent": {"seen_at": ago(16)},
    "gone": {"state": "Offline"},
    "on its way out": {"state": "Draining"},
}


@pytest.fixture(autouse=True)
def no_workers(committed):
    yield
    execute("DELETE FROM turno.workers")


def test_the_book_has_what_waits_and_what_is_parked_for_types_that_nobody_of_its_queue_has(using):
    worker()
    worker(queues={"r": 1}, types=["a.type"])
    waiting()
    waiting(type="other")
    parked(type="b.type", gate="b.type")
    parked(type="other", gate="other")
    parked(waiting_for="circuit", type="c.type", gate="c.type")
    waiting(queue="r")
    waiting(queue="nobody")
    watch(using)
    assert set(book()) == {("default", "a.type"), ("default", "b.type")}


@pytest.mark.parametrize("there", UNSERVED)
@pytest.mark.parametrize("make", [waiting, parked])
def test_a_queue_that_nobody_takes_jobs_of_is_not_in_the_book(make, there, using):
    make()
    unserved()
    if UNSERVED[there] is not None:
        worker(**UNSERVED[there])
    watch(using)
    assert book() == {}


@pytest.mark.parametrize("there", UNSERVED)
def test_nothing_is_parked_or_failed_in_a_queue_that_nobody_takes_jobs_of(there, using):
    waiting()
    parked()
    unserved()
    if UNSERVED[there] is not None:
        worker(**UNSERVED[there])
    assert (park(using), fail(using)) == ([], [])


def test_a_paused_queue_stands_still(using):
    made, aside = waiting(), parked()
    worker()
    unserved()
    execute("INSERT INTO turno.pauses (scope, value) VALUES ('queue', 'default')")
    assert (park(using), fail(using)) == ([], [])
    watch(using)
    assert book() == {}
    execute("UPDATE turno.pauses SET until = now() - interval '1 second'")
    watch(using)
    assert (park(using), fail(using)) == ([], [])  # its time begins anew
    assert set(book()) == {("default", "a.type")}
    assert [rows.state(m.id) for m in (made, aside)] == [State.ENQUEUED, State.SCHEDULED]


@pytest.mark.parametrize("has", [{}, {"state": "Draining"}], ids=["online", "on its way out"])
def test_a_type_is_served_while_a_live_worker_of_the_queue_has_it(has, using):
    waiting()
    parked()
    unserved()
    worker()
    worker(types=["a.type", "b"], **has)
    assert (park(using), fail(using)) == ([], [])
    watch(using)
    assert book() == {}


@pytest.mark.parametrize("has", [{"seen_at": ago(16)}, {"state": "Offline"}, {"queues": {"r": 1}}], ids=str)
def test_who_is_gone_or_serves_another_queue_has_no_types_here(has, using):
    made = waiting()
    unserved()
    worker()
    worker(types=["a.type"], **has)
    watch(using)
    assert park(using) == [made.id]


@pytest.mark.parametrize(
    "queues", ["[]", "3", "null", '{"default": "x"}', '{"default": null}', '{"default": {"a": 1}}']
)
def test_a_workers_row_that_a_person_has_spoilt_serves_nothing_and_stops_nothing(queues, using):
    made = waiting()
    unserved()
    worker()
    worker(types=["a.type"], queues={"default": 1})
    execute("UPDATE turno.workers SET queues = %s::jsonb WHERE 'a.type' = ANY (types)", queues)
    watch(using)
    assert park(using) == [made.id]
    assert transitions.open_unknown(limit=9, silent_after=15, using=using) == 0


def test_the_time_goes_on_while_somebody_looks_and_begins_anew_when_nobody_did(using):
    worker()
    waiting()
    waiting(type="b.type")
    unserved(seen=30)
    unserved("b.type", seen=46)
    before = book()
    watch(using)
    after = book()
    kept, anew = ("default", "a.type"), ("default", "b.type")
    assert after[kept]["since"] == before[kept]["since"]
    assert after[kept]["seen_at"] - before[kept]["seen_at"] >= timedelta(seconds=29)
    assert after[anew]["since"] == after[anew]["seen_at"] > before[anew]["seen_at"]


def test_looks_in_a_row_write_little(using):
    worker()
    waiting()
    watch(using)
    before = select("SELECT xmin::text, xmax::text FROM turno.unserved_types")  # (to lock a row is to write it, too)
    for _ in range(3):
        watch(using)
    assert select("SELECT xmin::text, xmax::text FROM turno.unserved_types") == before


def test_what_has_no_job_any_more_leaves_the_book(using):
    worker()
    made = parked()
    unserved()
    transitions.cancel([made.id])
    watch(using)
    assert book() == {}


def test_of_a_multitude_of_types_so_many_of_each_queue_are_watched(using, monkeypatch):
    monkeypatch.setattr(unknown, "TYPES", 2)
    worker(queues={"default": 1, "r": 1})
    for queue in ("default", "r"):
        for name in "abc":
            parked(queue=queue, type=name, gate=name)
    watch(using)
    assert set(book()) == {(queue, name) for queue in ("default", "r") for name in "ab"}


def test_what_waits_at_the_head_for_a_type_that_nobody_has_is_parked_once(using, ear):
    worker(types=["other", "third"])
    made, other, young = waiting(announced_at=ago(1), attempts_used=1), waiting(type="other"), waiting(type="b.type")
    unserved(since=16)
    unserved("b.type", since=14)
    assert park(using) == [made.id]
    assert park(using) == []
    row = rows.job(made.id)
    assert (row["state"], row["waiting_for"], row["gate"], row["run_at"]) == (
        "Scheduled", "unknown_type", "a.type", None,
    )  # fmt: skip
    assert (row["dispatch_id"], row["announced_at"], row["attempts_used"]) == (None, None, 1)
    assert rows.edges(made.id) == [("Enqueued", "Scheduled", "parked")]
    assert [rows.state(m.id) for m in (other, young)] == [State.ENQUEUED] * 2
    assert [r["name"] for r in select("SELECT name FROM turno.job_types")] == ["a.type"]
    assert ear.heard() == []


def test_what_nobody_looked_at_lately_is_not_believed(using):
    worker()
    waiting()
    parked()
    unserved(seen=46)
    assert (park(using), fail(using)) == ([], [])


def test_a_long_head_is_parked_by_batches_and_what_stands_behind_it_comes_to_the_front(using, monkeypatch):
    monkeypatch.setattr(unknown, "HEAD", 3)
    worker()
    unserved()
    blocking = [waiting(priority=5, enqueued_at=ago(90 - n)) for n in range(5)]
    served = [waiting(type="other", priority=4) for _ in range(3)]
    behind = waiting(priority=3)
    batches = []
    while batch := park(using, limit=2):
        batches.append(set(batch))
    assert batches == [{m.id for m in blocking[:2]}, {m.id for m in blocking[2:4]}, {blocking[4].id}]
    assert rows.state(behind.id) == State.ENQUEUED  # what is taken stands before it, and it hinders nobody
    execute("DELETE FROM turno.jobs WHERE id = ANY(%s)", [m.id for m in served])
    assert park(using) == [behind.id]


@pytest.mark.parametrize("act", [park, fail])
def test_what_somebody_has_locked_is_stepped_over(act, using):
    worker()
    unserved()
    make = waiting if act is park else parked
    held, free = make(), make()
    with rival() as other:
        lock(other, held.id)
        assert act(using) == [free.id]
    assert act(using) == [held.id]
