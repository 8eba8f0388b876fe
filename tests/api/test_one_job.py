"""One job: its detail, its log, and what can be done to it in each state."""

from uuid import uuid4

import pytest

from jobs.states import ACTIVE, FINAL, State
from tests.transitions import rows

pytestmark = pytest.mark.django_db
NOBODY = "01890a5d-ac96-774b-bcce-b302099a8057"


def attempt(made, ordinal, **columns):
    row = {"job_id": made.id, "ordinal": ordinal, "attempt": ordinal, "counted": True, "dispatch_id": uuid4(),
           "outcome": "Failed", "worker_name": "worker-1", "error_type": "ValueError", "error_message": "no",
           "duration": 1.5} | columns  # fmt: skip
    names, values = ", ".join(row), list(row.values())
    marks = ", ".join(["%s"] * len(row))
    rows.execute(
        f"INSERT INTO turno.job_attempts ({names}, started_at, ended_at) VALUES ({marks}, now(), now())", *values
    )


def test_the_detail_holds_payload_attempts_and_time_line(api):
    id_ = api.enqueue(payload={"a": [1, "ç"]}, tags=["t"])
    api.post(f"/api/jobs/{id_}/cancel", {"reason": "engano"})
    job = api.get(f"/api/jobs/{id_}").json
    assert job["payload"] == {"a": [1, "ç"]}
    assert (job["state"], job["cancel_reason"], job["cancel_requested_by"]) == ("Cancelled", "engano", "key")
    steps = [(step["from_state"], step["to_state"], step["reason"]) for step in job["timeline"]]
    assert steps == [(None, "Enqueued", "created"), ("Enqueued", "Cancelled", "cancelled")]
    assert job["timeline"][1]["actor"] == "key"
    assert job["attempts"] == []


def test_attempts_stand_in_order_with_their_worker_and_error(api):
    made = rows.make_job("Failed")
    attempt(made, 2)
    attempt(made, 1, worker_name=None)
    first, second = api.get(f"/api/jobs/{made.id}").json["attempts"]
    assert (first["ordinal"], first["worker"]) == (1, None)
    assert (second["worker"]["name"], second["error_type"], second["duration"]) == ("worker-1", "ValueError", 1.5)


def test_an_attempt_shows_what_became_of_its_own_process(api):
    made = rows.make_job("Failed")
    attempt(made, 1, outcome="WorkerLost", signal=9, peak_memory=5 << 30, discarded_at=None)
    attempt(made, 2, exit_code=3)
    attempt(made, 3)
    found = api.get(f"/api/jobs/{made.id}").json["attempts"]
    died = [(one["exit_code"], one["signal"], one["peak_memory"]) for one in found]
    assert died == [(None, 9, 5 << 30), (3, None, None), (None, None, None)]


def test_instants_are_iso_8601_with_an_offset(api):
    job = api.get(f"/api/jobs/{api.enqueue()}").json
    assert job["created_at"].endswith("Z")
    assert "T" in job["created_at"]


def test_the_detail_says_whether_a_live_worker_serves_the_queue_and_the_type(api):
    id_ = api.enqueue()
    made = (
        "INSERT INTO turno.workers (id, name, host, boot_id, pid_namespace, pid, pid_started, version, queues, types)"
    )

    def served(id_):
        found = api.get(f"/api/jobs/{id_}").json
        return found["queue_served"], found["type_served"]

    assert served(id_) == (False, False)
    rows.execute(f"{made} VALUES (gen_random_uuid(), 'w', 'h', 'b', 'n', 1, '1', '1', '{{\"default\": 4}}', '{{x}}')")
    assert served(id_) == (True, False)
    type_name = api.get(f"/api/jobs/{id_}").json["type"]
    rows.execute("UPDATE turno.workers SET types = ARRAY[%s]", type_name)
    assert served(id_) == (True, True)
    assert served(rows.make_job("Failed").id) == (None, None)


def test_a_detail_costs_the_same_queries_however_long_its_history(api, django_assert_max_num_queries):
    made = rows.make_job("Failed")
    for ordinal in range(1, 30):
        attempt(made, ordinal)
    with django_assert_max_num_queries(4):
        assert len(api.get(f"/api/jobs/{made.id}").json["attempts"]) == 29


@pytest.mark.parametrize("id_", ["x", "1", "01890a5d", "%20", "'", "01890a5d-ac96-774b-bcce-b302099a805g", "é"])
def test_an_id_that_is_none_is_a_400(api, id_):
    assert api.get(f"/api/jobs/{id_}").problem(400)["errors"].keys() == {"id"}


def test_a_nul_in_the_path_is_a_400(api):
    api.get("/api/jobs/%00").problem(400)


@pytest.mark.parametrize("act", ["", "/logs", "/cancel", "/requeue", "/run-now"])
def test_a_job_that_is_not_there_is_a_404(api, act):
    method = "GET" if act in {"", "/logs"} else "POST"
    assert NOBODY in api.ask(method, f"/api/jobs/{NOBODY}{act}").problem(404)["detail"]


def test_deleting_a_job_that_is_not_there_is_a_404(api):
    api.delete(f"/api/jobs/{NOBODY}").problem(404)


@pytest.mark.parametrize("state", sorted(State))
def test_cancel_ends_waiting_jobs_asks_running_ones_and_is_refused_to_ended_ones(api, state):
    made = rows.make_job(state)
    answer = api.ask("POST", f"/api/jobs/{made.id}/cancel")
    if state in FINAL:
        assert answer.problem(409)["state"] == state
        assert rows.state(made.id) == state
    elif state is State.PROCESSING:
        assert answer.json == {"id": str(made.id), "state": "Processing", "requested": True}
        assert rows.job(made.id)["cancel_requested_at"] is not None
    else:
        assert answer.json == {"id": str(made.id), "state": "Cancelled", "requested": False}


def test_a_second_cancel_changes_nothing(api):
    id_ = api.enqueue()
    api.post(f"/api/jobs/{id_}/cancel")
    before = rows.job(rows.select("SELECT id FROM turno.jobs")[0]["id"])
    assert api.post(f"/api/jobs/{id_}/cancel").problem(409)["state"] == "Cancelled"
    assert rows.job(before["id"]) == before


@pytest.mark.parametrize("body", [{"reason": 5}, {"reason": "a\0b"}, {"why": "x"}, [], {"reason": "x" * 501}])
def test_a_strange_reason_is_refused(api, body):
    api.post(f"/api/jobs/{api.enqueue()}/cancel", body).problem(400)


@pytest.mark.parametrize("state", sorted(State))
def test_requeue_runs_failed_and_cancelled_jobs_again(api, state):
    made = rows.make_job(state, attempts_used=2)
    answer = api.ask("POST", f"/api/jobs/{made.id}/requeue")
    if state in {State.FAILED, State.CANCELLED}:
        assert answer.json["state"] == "Enqueued"
        assert rows.job(made.id)["attempts_used"] == 0
    else:
        assert answer.problem(409)["state"] == state


def test_requeue_is_refused_while_another_job_holds_the_unique_key(api):
    made = rows.make_job("Failed", unique_key="k")
    api.enqueue(unique_key="k")
    problem = api.ask("POST", f"/api/jobs/{made.id}/requeue").problem(409)
    assert (problem["state"], problem["reason"]) == ("Failed", "unique_key")


@pytest.mark.parametrize("state", sorted(State))
def test_run_now_moves_only_an_instant(api, state):
    made = rows.make_job(state)
    answer = api.ask("POST", f"/api/jobs/{made.id}/run-now")
    if state is State.SCHEDULED:
        assert answer.json["state"] == "Enqueued"
    else:
        assert answer.problem(409)["state"] == state


def test_run_now_is_refused_to_a_parked_job(api):
    made = rows.make_job("Scheduled", waiting_for="circuit", gate="test.any")
    problem = api.ask("POST", f"/api/jobs/{made.id}/run-now").problem(409)
    assert (problem["reason"], problem["waiting_for"], problem["gate"]) == ("gate", "circuit", "test.any")


@pytest.mark.parametrize("state", sorted(State))
def test_only_an_ended_job_can_be_deleted(api, state):
    made = rows.make_job(state)
    answer = api.delete(f"/api/jobs/{made.id}")
    if state in ACTIVE:
        assert answer.problem(409)["state"] == state
        assert rows.state(made.id) == state
    else:
        assert (answer.status, answer.json) == (204, None)
        assert rows.job(made.id) is None


def log_lines(made, count, execution=1):
    rows.execute(
        "INSERT INTO turno.job_logs (job_id, execution, number, level, message) "
        "SELECT %s, %s, n, 'info', 'linha ' || n FROM generate_series(1, %s) AS n", made.id, execution, count,
    )  # fmt: skip


def test_the_log_is_read_in_pages(api):
    made = rows.make_job("Succeeded")
    log_lines(made, 7)
    found, query = [], "?limit=3"
    while query:
        page = api.get(f"/api/jobs/{made.id}/logs{query}").json
        found += [line["message"] for line in page["items"]]
        query = f"?limit=3&after={page['next_after']}" if page["next_after"] else ""
    assert found == [f"linha {n}" for n in range(1, 8)]


def test_the_log_of_one_execution_can_be_asked_for(api):
    made = rows.make_job("Succeeded")
    log_lines(made, 2, execution=1)
    log_lines(made, 3, execution=2)
    assert len(api.get(f"/api/jobs/{made.id}/logs?execution=2").json["items"]) == 3


@pytest.mark.parametrize(
    "query", ["after=-1", f"after={2**63}", "limit=0", "limit=1001", "execution=0", "x=1", "after="]
)
def test_a_strange_page_of_the_log_is_refused(api, query):
    api.get(f"/api/jobs/{rows.make_job('Failed').id}/logs?{query}").problem(400)
