"""A claimed job that waits for its turn in its worker: it has not begun, and its worker's loss is not its own."""

import pytest

from jobs import transitions
from jobs.states import State
from tests.kit.english import english  # noqa: F401  (its sentences are quoted)
from tests.transitions import rows
from tests.transitions.edges import CALLER, Fence, lose, make, take_back
from tests.transitions.rows import ago, execute, make_job

pytestmark = pytest.mark.django_db
TWICE = {"lost_count": 2, "attempts_used": 2}


def waits(**columns):
    case = make("expired", Fence.RIGHT, **(TWICE | columns))
    assert transitions.begin([(case.made.id, case.token)], worker_id=CALLER, begun=False) == {case.token}
    return case


def started(case):
    return rows.job(case.made.id)["started_at"]


def test_it_is_claimed_and_not_started_until_it_begins():
    case = waits()
    assert (started(case), rows.job(case.made.id)["claimed_at"] is not None) == (None, True)
    assert transitions.begin([(case.made.id, case.token)], worker_id=CALLER) == {case.token}
    assert started(case) is not None


@pytest.mark.parametrize("fence", [Fence.TOKEN, Fence.WORKER, Fence.BOTH])
def test_of_a_job_that_is_somebody_elses_nothing_is_said(fence):
    case = make("processing", fence)
    assert transitions.begin([(case.made.id, case.token)], worker_id=CALLER, begun=False) == frozenset()
    assert started(case) is not None


@pytest.mark.parametrize("loss", [lose, take_back])
@pytest.mark.parametrize("columns", [{}, {"attempts_used": 4}, {"max_attempts": 3}])
def test_the_loss_of_its_worker_charges_nothing_while_it_waits(loss, columns):
    case = waits(**columns)
    [done] = loss("default")
    row, [attempt] = rows.job(case.made.id), rows.attempts(case.made.id)
    assert (done.id, done.state, row["state"]) == (case.made.id, State.ENQUEUED, State.ENQUEUED)
    assert (row["attempts_used"], row["lost_count"]) == (columns.get("attempts_used", 2), 2)
    assert (attempt["outcome"], attempt["counted"]) == ("Interrupted", False)


@pytest.mark.parametrize(("loss", "words"), [(lose, "stopped answering"), (take_back, "died while the job ran")])
def test_a_third_loss_names_the_worker_and_its_host(loss, words):
    made = make_job(State.PROCESSING, worker=CALLER, lease_expires_at=ago(60), **TWICE)
    loss("default")
    row = rows.job(made.id)
    assert (row["state"], row["lost_count"]) == (State.FAILED, 3)
    for told in (words, rows.LABEL["name"], rows.LABEL["host"]):
        assert told in row["error_message"]
    assert [letter["error_message"] for letter in rows.letters(made.id)] == [row["error_message"]]


def test_a_label_without_a_host_costs_no_sentence():
    made = make_job(State.PROCESSING, lease_expires_at=ago(60))
    execute("""UPDATE turno.jobs SET worker_label = '{"name": "w"}' WHERE id = %s""", made.id)
    lose("default")
    assert rows.job(made.id)["error_message"] == "The worker w stopped answering."
