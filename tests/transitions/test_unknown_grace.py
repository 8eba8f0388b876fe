"""What has waited for too long for a worker that knows its type: it ends Failed, in sight, and nothing else does."""

import orjson
import pytest
from django.utils import translation

from jobs import transitions
from jobs.outcomes import Verdict
from jobs.states import State
from jobs.transitions import OUTBOX, WORK
from tests.outbox.rows import outbox, with_broker
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import ago, execute
from tests.transitions.unserved import fail, park, parked, unserved, worker

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]


@pytest.fixture(autouse=True)
def english():
    with translation.override("en"):
        yield


@pytest.fixture(autouse=True)
def no_workers(committed):
    yield
    execute("DELETE FROM turno.workers")


def test_a_job_that_waited_for_the_grace_ends_failed_with_a_letter_and_costs_no_attempt(using, ear):
    worker()
    unserved()
    made = parked(attempts_used=2, executions=3)
    with with_broker():
        assert fail(using) == [made.id]
        assert fail(using) == []
    row = rows.job(made.id)
    assert (row["state"], row["failure_kind"], row["error_type"]) == ("Failed", "unknown_type", "UnknownType")
    assert (row["waiting_for"], row["gate"], row["attempts_used"], row["executions"]) == (None, None, 2, 3)
    text = (
        "No live worker of the queue default knows the type a.type. "
        "Start one whose handlers have it, then requeue the job."
    )
    assert row["error_message"] == text
    [step] = rows.history(made.id)
    assert (step["from_state"], step["to_state"], step["reason"], step["detail"]) == (
        "Scheduled", "Failed", "unknown_type", text,
    )  # fmt: skip
    [letter] = rows.letters(made.id)
    assert (letter["failure_kind"], letter["error_type"], letter["error_message"], letter["attempts"]) == (
        "unknown_type", "UnknownType", text, 3,
    )  # fmt: skip
    [message] = outbox(made.id)
    assert (message["kind"], message["body"]["letter"], message["body"]["error_message"]) == (
        "dead_letter", str(letter["id"]), text,
    )  # fmt: skip
    assert ear.heard() == [(OUTBOX, "")]
    assert rows.metrics() == []  # nothing was executed


def test_its_error_names_the_modules_that_workers_of_its_queue_can_not_import_and_no_others(using):
    broken = [{"module": f"shop.m{n}", "error": f"ImportError: no {n}\nat all"} for n in range(4)]
    part = {"part": "broker", "error": "away"}
    worker(problems=orjson.dumps([*broken, part]).decode())
    worker(queues={"r": 1}, problems=orjson.dumps([{"module": "elsewhere", "error": "SyntaxError"}]).decode())
    worker(queues={"s": 1}, problems=orjson.dumps({"module": "of nobody's making"}).decode())
    worker(problems=orjson.dumps([{"module": "gone", "error": "x"}]).decode(), state="Offline", stopped_at=ago(1))
    made, other, plain = parked(), parked(queue="r"), parked(queue="s")
    for queue in ("default", "r", "s"):
        unserved(queue=queue)
    assert set(fail(using)) == {made.id, other.id, plain.id}
    named = "shop.m0, ImportError: no 0 at all; shop.m1, ImportError: no 1 at all; shop.m2, ImportError: no 2 at all"
    assert rows.job(made.id)["error_message"].endswith(f"requeue the job. Handler not loadable: {named}.")
    assert rows.job(other.id)["error_message"].endswith("Handler not loadable: elsewhere, SyntaxError.")
    assert rows.job(plain.id)["error_message"].endswith("requeue the job.")
    assert rows.letters(made.id)[0]["fingerprint"] == rows.letters(plain.id)[0]["fingerprint"]


def test_one_cause_a_type_whatever_the_queue(using):
    worker(queues={"default": 1, "r": 1})
    mades = [parked(), parked(queue="r"), parked(type="b.type", gate="b.type")]
    for queue, name in (("default", "a.type"), ("r", "a.type"), ("default", "b.type")):
        unserved(name, queue)
    assert set(fail(using)) == {made.id for made in mades}
    first, second, other = (rows.letters(made.id)[0]["fingerprint"] for made in mades)
    assert first == second != other


@pytest.mark.parametrize(
    ("job", "watched"),
    [({"enqueued_at": ago(3000)}, {}), ({}, {"since": 3000}), ({}, {"type_": "b.type"}), ({}, {"queue": "r"})],
    ids=["the job is younger", "the type was there", "another type", "another queue"],
)
def test_both_the_job_and_the_absence_of_its_type_must_have_lasted(job, watched, using):
    worker()
    made = parked(**job)
    unserved(**watched)
    assert fail(using) == []
    assert rows.state(made.id) == State.SCHEDULED


def test_younger_ones_of_more_priority_keep_no_old_one_from_its_end(using):
    worker()
    unserved()
    for _ in range(5):
        parked(priority=9, enqueued_at=ago(10))
    old = [parked(priority=0, enqueued_at=ago(8000)), parked(priority=0, enqueued_at=ago(9000))]
    assert [*fail(using, limit=1), *fail(using, limit=1), *fail(using, limit=1)] == [m.id for m in reversed(old)]


def test_a_failed_one_that_is_requeued_waits_for_the_type_and_runs_when_it_is_back(using, ear):
    worker()
    unserved()
    made = parked()
    fail(using)
    assert transitions.requeue([made.id]) == [Verdict(made.id, applied=True, state=State.ENQUEUED)]
    assert rows.letters(made.id)[0]["resolved_how"] == "requeued"
    assert park(using) == [made.id]
    assert fail(using) == []  # it waits for a whole grace again
    worker(types=["a.type"])
    ear.heard()
    assert transitions.open_unknown(limit=9, silent_after=15, using=using) == 1
    assert ear.heard() == [(WORK, "default")]
    assert [step[2] for step in rows.edges(made.id)] == ["unknown_type", "requeued", "parked", "gate_opened"]
