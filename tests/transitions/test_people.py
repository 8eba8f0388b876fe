"""Cancel, requeue, run now, delete: a verdict for each job that was named, in the order in which it was named."""

from uuid import uuid4

import pytest

from jobs import transitions
from jobs.outcomes import Verdict
from jobs.states import PARKED, State, Waiting
from tests.transitions import rows
from tests.transitions.edges import ASKED, SITUATIONS, Fence, make
from tests.transitions.rows import ahead, execute, make_job, make_letter, select

pytestmark = pytest.mark.django_db
ACTS = [transitions.cancel, transitions.requeue, transitions.run_now, transitions.delete]


@pytest.mark.parametrize("act", ACTS)
def test_each_job_gets_its_verdict_in_the_order_of_the_call_and_missing_ones_are_named(act):
    cases = {situation: make(situation, Fence.RIGHT) for situation in SITUATIONS}
    missing = uuid4()
    ids = [missing, *(case.made.id for case in cases.values())]
    before = {case.made.id: rows.state(case.made.id) for case in cases.values()}
    verdicts = act(ids)
    assert [verdict.id for verdict in verdicts] == ids
    assert verdicts[0] == Verdict(missing, applied=False, state=None, problem="not_found")
    for verdict in verdicts[1:]:
        assert verdict.applied is (verdict.problem is None)
        if not verdict.applied:
            assert verdict.state == rows.state(verdict.id) == before[verdict.id]


@pytest.mark.parametrize("act", ACTS)
def test_no_job_named_is_no_verdict(act):
    assert act([]) == []


def test_a_job_that_is_named_twice_is_changed_once():
    made = make_job(State.FAILED)
    first, second = transitions.requeue([made.id, made.id])
    assert first == second == Verdict(made.id, applied=True, state=State.ENQUEUED)
    assert len(rows.history(made.id)) == 1


def test_a_cancel_says_who_and_why_in_the_row_and_in_the_time_line():
    made = make_job(State.ENQUEUED, announced_at=rows.ago(1))
    transitions.cancel([made.id], actor="ana", reason="wrong month")
    row = rows.job(made.id)
    assert (row["cancel_requested_by"], row["cancel_reason"]) == ("ana", "wrong month")
    assert (row["dispatch_id"], row["announced_at"]) == (None, None)
    [step] = rows.history(made.id)
    assert (step["actor"], step["detail"]) == ("ana", "wrong month")


@pytest.mark.parametrize("waiting_for", Waiting)
def test_whatever_a_job_waits_for_it_can_be_cancelled(waiting_for):
    gate = {"gate": "test.echo"} if waiting_for in PARKED else {}
    made = make_job(State.SCHEDULED, waiting_for=str(waiting_for), attempts_used=1, **gate)
    assert transitions.cancel([made.id]) == [Verdict(made.id, applied=True, state=State.CANCELLED)]
    row = rows.job(made.id)
    assert (row["state"], row["waiting_for"], row["gate"], row["run_at"]) == ("Cancelled", None, None, None)
    assert rows.edges(made.id) == [("Scheduled", "Cancelled", "cancelled")]


def test_a_second_cancel_of_a_running_job_changes_nothing_and_is_answered_like_the_first():
    made = make_job(State.PROCESSING)
    asked = Verdict(made.id, applied=True, state=State.PROCESSING, requested=True)
    assert transitions.cancel([made.id], actor="ana", reason="first") == [asked]
    before = rows.job(made.id)
    assert transitions.cancel([made.id], actor="rui", reason="second") == [asked]
    assert rows.job(made.id) == before
    assert before["cancel_requested_by"] == "ana"


def test_a_requeued_job_starts_from_zero_and_its_history_goes_on():
    columns = {"executions": 4, "attempts_used": 3, "lost_count": 2, "progress": 60, "stage": "half"}
    made = make_job(State.FAILED, result={"a": 1}, announced_at=rows.ago(9), **columns, **ASKED)
    transitions.requeue([made.id], actor="ana")
    row = rows.job(made.id)
    cleared = ("result", "error_type", "error_message", "failure_kind", "finished_at", "announced_at", *ASKED)
    assert {name: row[name] for name in cleared} == dict.fromkeys(cleared)
    assert (row["attempts_used"], row["lost_count"], row["progress"], row["stage"]) == (0, 0, 0, "")
    assert row["executions"] == 4
    assert rows.history(made.id)[0]["actor"] == "ana"


def test_requeueing_resolves_the_pending_dead_letter_and_no_other():
    made, other = make_job(State.FAILED), make_job(State.FAILED)
    make_letter(made, resolved_at=rows.ago(50), resolved_how="discarded", resolved_by="rui")
    make_letter(made)
    make_letter(other)
    transitions.requeue([made.id], actor="ana")
    found = [(letter["resolved_how"], letter["resolved_by"]) for letter in rows.letters(made.id)]
    assert sorted(found) == [("discarded", "rui"), ("requeued", "ana")]
    assert rows.letters(other.id)[0]["resolved_at"] is None


@pytest.mark.parametrize("holder", ["scheduled", "enqueued", "processing"])
def test_a_unique_key_that_an_active_job_holds_refuses_the_requeue_and_stops_no_other(holder):
    make(holder, Fence.RIGHT, unique_key="k")
    refused, free = make_job(State.FAILED, unique_key="k"), make_job(State.FAILED, unique_key="other")
    assert transitions.requeue([refused.id, free.id]) == [
        Verdict(refused.id, applied=False, state=State.FAILED, problem="unique_key"),
        Verdict(free.id, applied=True, state=State.ENQUEUED),
    ]
    assert rows.history(refused.id) == []


def test_of_two_jobs_with_one_unique_key_in_one_call_one_is_requeued():
    mades = [make_job(State.CANCELLED, unique_key="k") for _ in range(3)]
    verdicts = transitions.requeue([made.id for made in mades])
    assert sorted(verdict.problem or "" for verdict in verdicts) == ["", "unique_key", "unique_key"]


def test_a_unique_key_that_reads_like_the_id_of_another_job_is_no_rival_of_it():
    plain = make_job(State.FAILED)
    keyed = make_job(State.FAILED, unique_key=str(plain.id))
    assert [verdict.applied for verdict in transitions.requeue([plain.id, keyed.id])] == [True, True]


def test_a_parked_job_can_not_be_run_now():
    made = make_job(State.SCHEDULED, waiting_for="circuit", gate="mail.send")
    [verdict] = transitions.run_now([made.id])
    assert verdict == Verdict(made.id, applied=False, state=State.SCHEDULED, problem="gate")


@pytest.mark.parametrize("waiting_for", ["due", "retry", "snooze", "lock"])
def test_every_wait_for_an_instant_can_be_cut_short(waiting_for):
    made = make_job(State.SCHEDULED, waiting_for=waiting_for, run_at=ahead(9999))
    transitions.run_now([made.id], actor="ana")
    assert rows.edges(made.id) == [("Scheduled", "Enqueued", "run_now")]
    assert rows.history(made.id)[0]["actor"] == "ana"


def test_a_deleted_job_takes_everything_of_its_own_with_it_and_nothing_of_another():
    for made in (gone := make_job(State.FAILED), stays := make_job(State.FAILED)):
        make_letter(made)
        execute("INSERT INTO turno.job_logs (job_id, execution, number, message) VALUES (%s, 1, 1, 'x')", made.id)
        transitions.requeue([made.id])
        transitions.cancel([made.id])
    assert [verdict.applied for verdict in transitions.delete([gone.id])] == [True]
    assert rows.job(gone.id) is None
    for table in ("dead_letters", "job_logs", "job_state_changes"):
        found = {row["job_id"] for row in select(f"SELECT DISTINCT job_id FROM turno.{table}")}
        assert found == {stays.id}
