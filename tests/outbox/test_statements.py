"""Whatever makes a job Enqueued leaves its message in the same statement; without a broker nothing is left.

The verbs come from the edge matrix, so that none is forgotten; statements are looked at as text besides.
"""

import pkgutil
import re
from contextlib import nullcontext
from importlib import import_module
from random import Random
from uuid import UUID, uuid4

import pytest
from django.db import transaction

import jobs.transitions
from jobs import transitions
from jobs.enqueue import JobRequest, enqueue_many
from jobs.ids import new_id
from jobs.outcomes import ErrorInfo
from jobs.states import State
from jobs.transitions import OUTBOX, WORK
from jobs.transitions.insert import NewJob, insert
from jobs.transitions.outbox import STACK_LENGTH
from jobs.transitions.plant import plant
from tests.outbox.rows import outbox, put, with_broker
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import CALLER, SITUATIONS, VERBS, Case, Fence, ending, make
from tests.transitions.legal import LEGAL
from tests.transitions.rows import make_job

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
ENQUEUES = sorted({verb for (verb, _), change in LEGAL.items() if change.to is State.ENQUEUED})
FAILS = sorted({verb for (verb, _), change in LEGAL.items() if change.to is State.FAILED})
DRAWS_A_TOKEN = re.compile(r"gen_random_uuid\(\)|dispatch_id = c\.token|INSERT INTO turno\.jobs\b")
LEAVES_A_MESSAGE = "INSERT INTO turno.outbox_messages"


def changes(case: Case, verb: str) -> State | None:
    """What the job becomes, where the verb changes it."""
    change = LEGAL.get((verb, case.situation)) if case.fence is Fence.RIGHT else None
    return None if change is None else change.to


def assert_message(id_: UUID) -> None:
    """The job is Enqueued, and exactly one message names it, by the token that it has now."""
    job = rows.job(id_)
    [message] = outbox(id_)
    assert job["state"] == State.ENQUEUED
    assert (message["kind"], message["dispatch_id"]) == ("dispatch", job["dispatch_id"])
    assert (message["queue"], message["priority"]) == (job["queue"], job["priority"])
    assert (message["lock_id"], message["locked_until"], message["failures"]) == (None, None, 0)


def test_the_matrix_names_the_verbs_that_enqueue():
    assert {"promote", "run_now", "requeue", "release", "expire", "take_back", "open_unknown"} < set(ENQUEUES)


@pytest.mark.parametrize("verb", VERBS)
def test_with_a_broker_each_job_that_became_enqueued_has_its_message_and_no_other_has(verb, using, ear, subtests):
    cases = [make(situation, fence, priority=3) for situation in SITUATIONS for fence in VERBS[verb].fences]
    Random(verb).shuffle(cases)
    with with_broker():
        VERBS[verb].call(cases, using)
    heard = ear.heard()
    for case in cases:
        with subtests.test(str(case)):
            became = changes(case, verb)
            if became is State.ENQUEUED:
                assert_message(case.made.id)
                assert (WORK, case.made.queue) in heard  # the screens hear it, whatever carries the work
            else:
                assert [m["kind"] for m in outbox(case.made.id)] == ["dead_letter"] * (became is State.FAILED)
    assert heard.count((OUTBOX, "")) == (verb in ENQUEUES or verb in FAILS)


@pytest.mark.parametrize("verb", [*ENQUEUES, *FAILS])
def test_without_a_broker_nothing_is_left_and_nobody_is_told(verb, using, ear):
    VERBS[verb].call([make(situation, Fence.RIGHT) for situation in SITUATIONS], using)
    assert outbox() == []
    assert (OUTBOX, "") not in ear.heard()


@pytest.mark.parametrize("verb", [*ENQUEUES, *FAILS])
@pytest.mark.usefixtures("configured")
def test_the_message_goes_with_the_transaction_of_the_caller(verb, using, ear):
    cases = [make(situation, Fence.RIGHT) for situation in SITUATIONS]
    with transaction.atomic(using=using):
        VERBS[verb].call(cases, using)
        assert rows.select("SELECT 1 FROM turno.outbox_messages", using=using)
        transaction.set_rollback(True, using=using)
    assert outbox() == []
    assert ear.heard() == []


def new_job(**fields) -> NewJob:
    base = {"id": new_id(), "type": "test.echo", "queue": "default", "payload": "{}", "priority": 2}
    return NewJob(**(base | {"max_attempts": 3, "timeout": None, "at_most_once": False} | fields))


@pytest.mark.usefixtures("configured")
def test_a_new_job_for_now_has_its_message_and_one_for_later_and_a_duplicate_have_none(using, ear):
    now, later = new_job(unique_key="k"), new_job(delay=60.0)
    insert([now, later], using=using)
    assert ear.heard().count((OUTBOX, "")) == 1
    insert([new_job(unique_key="k")], using=using)
    insert([new_job(delay=60.0)], using=using)
    assert (OUTBOX, "") not in ear.heard()
    assert_message(now.id)
    assert [message["job_id"] for message in outbox()] == [now.id]


@pytest.mark.usefixtures("configured")
def test_messages_of_a_batch_stand_in_the_order_of_the_batch():
    batch = [new_job() for _ in range(50)]
    insert(batch)
    assert [message["job_id"] for message in outbox()] == [job.id for job in batch]


def test_without_a_broker_a_new_job_leaves_nothing(ear):
    insert([new_job()])
    assert outbox() == []
    assert ear.heard() == [(WORK, "default")]


@pytest.mark.parametrize("carried", [True, False], ids=["with a broker", "without"])
def test_the_public_door_leaves_messages_with_the_callers_transaction(carried):
    requests = [JobRequest("test.any", {}) for _ in range(3)]
    with with_broker() if carried else nullcontext(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("jobs.batch.conf", _accepting())
        with transaction.atomic():
            enqueue_many(requests)
            transaction.set_rollback(True)
        assert outbox() == []
        accepted = enqueue_many(requests)
    assert [message["job_id"] for message in outbox()] == ([job.id for job in accepted] if carried else [])


def _accepting():
    from jobs.conf import conf

    return lambda: conf().model_copy(update={"api": conf().api.model_copy(update={"unknown_types": "accept"})})


@pytest.mark.usefixtures("configured")
def test_a_planted_job_has_its_message_where_it_waits():
    base = {"type": "t", "queue": "q", "payload": {}, "priority": 0, "executions": 0, "attempts_used": 0}
    base |= {"max_attempts": 1, "lost_count": 0, "at_most_once": False, "progress": 0, "stage": "", "tags": []}
    waits = base | {"id": uuid4(), "state": "Enqueued", "dispatch_id": uuid4()}
    over = base | {"id": uuid4(), "state": "Cancelled", "finished_at": "2026-01-01T00:00:00Z"}
    instants = {"created_at": "2026-01-01T00:00:00Z", "enqueued_at": "2026-01-01T00:00:00Z"}
    plant({"jobs": [waits | instants, over | instants]})
    assert_message(waits["id"])
    assert len(outbox()) == 1


@pytest.mark.usefixtures("configured")
def test_a_requeued_letter_leaves_its_jobs_message(using):
    case = make("failed", Fence.RIGHT)
    [letter] = rows.letters(case.made.id)
    transitions.requeue_letters([letter["id"]], using=using)
    assert_message(case.made.id)


@pytest.mark.usefixtures("configured")
def test_a_job_that_ends_failed_leaves_its_letter(using, ear):
    case = make("processing", Fence.RIGHT, executions=4)
    error = ErrorInfo("ValueError", "no such file “ã”", "x" * 20_000, "cause-1")
    transitions.settle([ending(case, State.FAILED, error=error)], worker_id=CALLER, using=using)
    [letter] = rows.letters(case.made.id)
    [message] = outbox(case.made.id)
    assert (message["kind"], message["dispatch_id"], message["queue"]) == ("dead_letter", None, case.made.queue)
    body = message["body"]
    assert body.pop("created_at").startswith(letter["created_at"].isoformat()[:19])
    assert len(body.pop("stack")) == STACK_LENGTH
    assert body == {
        "v": 1,
        "letter": str(letter["id"]),
        "job": str(case.made.id),
        "type": case.made.type,
        "queue": case.made.queue,
        "failure_kind": "error",
        "error_type": "ValueError",
        "error_message": "no such file “ã”",
        "fingerprint": "cause-1",
        "attempts": 4,
    }
    assert ear.heard() == [(OUTBOX, "")]


@pytest.mark.usefixtures("configured")
def test_an_end_that_was_written_before_leaves_no_second_message(using):
    case = make("processing", Fence.RIGHT)
    for _ in range(2):
        transitions.settle([ending(case, State.ENQUEUED)], worker_id=CALLER, using=using)
    assert_message(case.made.id)


@pytest.mark.parametrize("verb", ["delete", "purge"])
def test_a_deleted_job_takes_its_messages_along(verb, using):
    case, other = make("succeeded", Fence.RIGHT), make_job()
    for made in (case.made, other):
        put(made)
    put(case.made, kind="dead_letter", dispatch_id=None)
    VERBS[verb].call([case], using)
    assert [message["job_id"] for message in outbox()] == [other.id]


def statements():
    """Every SQL text of the transitions, by its name."""
    for info in pkgutil.iter_modules(jobs.transitions.__path__):
        module = import_module(f"jobs.transitions.{info.name}")
        for name, value in vars(module).items():
            if name.isupper() and isinstance(value, str):
                yield f"{info.name}.{name}", value


def test_a_statement_that_draws_a_token_or_makes_a_job_leaves_a_message():
    drawing = {name: text for name, text in statements() if DRAWS_A_TOKEN.search(text)}
    without = {name for name, text in drawing.items() if LEAVES_A_MESSAGE not in text}
    # Who runs at once waits for nobody; the other is said where there is no broker, and has a twin for where there is.
    assert without == {"successors.SUCCEED", "plain.PLAIN", "insert.PLAIN"}
    assert LEAVES_A_MESSAGE in drawing["insert.PLAIN_DISPATCHED"]
    assert "state = 'Processing'" in drawing["successors.SUCCEED"]
    assert len(drawing) >= 7


def test_nothing_else_writes_the_state_enqueued():
    """A token is drawn wherever the state is written: so that the test above sees each of them."""
    written = re.compile(r"SET\s+state = 'Enqueued'|'Enqueued' ELSE 'Scheduled' END")
    found = {name for name, text in statements() if written.search(text)}
    assert found
    assert {name for name, text in statements() if name in found and not DRAWS_A_TOKEN.search(text)} == set()
