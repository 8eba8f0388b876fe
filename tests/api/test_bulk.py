"""Acts over many jobs by the API: by ids or by filter, dry first, followed, stopped, harmless when repeated."""

from uuid import uuid4

import pytest

from jobs import bulk
from jobs.ids import new_id
from jobs.states import State
from tests.api.client import Api
from tests.transitions import rows

ACTS = {"cancel": State.ENQUEUED, "requeue": State.FAILED, "delete": State.SUCCEEDED}


@pytest.fixture
def api(clean_tables):
    yield Api()
    bulk.crew.join()


def make(state, **columns):
    return rows.make_job(state, id=new_id(), **columns)


def begun(api, act, **body):
    answer = api.post(f"/api/jobs/bulk/{act}", body)
    assert answer.status == 202, answer.json
    return answer.json


def ended(api, run):
    bulk.wait(bulk.get(run["id"]).id, 20)
    answer = api.get(f"/api/bulk/{run['id']}").json
    assert answer["ended"], answer
    return answer


@pytest.mark.parametrize("act", sorted(ACTS))
def test_the_named_are_acted_on_and_the_run_says_what_was_left_out(api, act):
    fit, other = make(ACTS[act]), make(State.PROCESSING if act != "cancel" else State.SUCCEEDED)
    run = ended(api, begun(api, act, ids=[str(fit.id), str(other.id), str(uuid4())]))
    assert (run["state"], run["act"], run["target"], run["actor"]) == ("done", act, "jobs", "key")
    assert (run["total"], run["done"], run["applied"]) == (3, 3, 1)
    assert run["skipped"] == {"not_found": 1, "state": 1}
    after = {"cancel": "Cancelled", "requeue": "Enqueued"}.get(act)
    assert (rows.state(fit.id) if after else rows.job(fit.id)) == after


def test_a_filter_reaches_all_that_match_and_no_other(api):
    wanted = [make(State.FAILED, queue="reports") for _ in range(5)]
    others = [make(State.FAILED), make(State.SUCCEEDED, queue="reports")]
    run = ended(api, begun(api, "requeue", filter={"queue": "reports", "state": "Failed"}))
    assert (run["total"], run["applied"], run["skipped"]) == (5, 5, {})
    assert {rows.state(made.id) for made in wanted} == {"Enqueued"}
    assert [rows.state(made.id) for made in others] == ["Failed", "Succeeded"]


def test_a_dry_run_counts_and_changes_nothing(api):
    made = [make(State.FAILED, type="test.dry") for _ in range(3)]
    answer = api.post("/api/jobs/bulk/delete", {"filter": {"type": "test.dry"}, "dry_run": True})
    assert answer.status == 200
    assert (answer.json["dry_run"], answer.json["count"], answer.json["by_state"]) == (True, 3, {"Failed": 3})
    assert {sample["id"] for sample in answer.json["samples"]} == {str(one.id) for one in made}
    assert rows.select("SELECT * FROM turno.bulk_runs") == []
    assert {rows.state(one.id) for one in made} == {"Failed"}


def test_what_a_dry_run_said_is_done_once_however_often_it_is_sent(api):
    make(State.FAILED, type="test.dry")
    said = api.post("/api/jobs/bulk/requeue", {"filter": {"type": "test.dry"}, "dry_run": True}).json
    later = make(State.FAILED, type="test.dry")
    body = {"filter": {"type": "test.dry"}, "id": said["id"], "before": said["before"]}
    first = ended(api, begun(api, "requeue", **body))
    again = begun(api, "requeue", **body)
    assert (again["id"], again["applied"]) == (first["id"], 1)
    assert rows.state(later.id) == "Failed"
    api.post("/api/jobs/bulk/delete", body).problem(409)


def test_the_reason_of_a_cancel_stands_in_the_time_line(api):
    made = make(State.ENQUEUED)
    ended(api, begun(api, "cancel", ids=[str(made.id)], reason="maintenance"))
    assert rows.job(made.id)["cancel_reason"] == "maintenance"
    assert rows.job(made.id)["cancel_requested_by"] == "key"


def test_a_run_can_be_stopped_and_one_that_ended_stays_as_it_is(api, monkeypatch):
    monkeypatch.setattr(bulk.crew, "wake", lambda: None)
    made = make(State.ENQUEUED)
    run = begun(api, "cancel", ids=[str(made.id)])
    assert run["state"] == "running"
    assert api.post(f"/api/bulk/{run['id']}/stop").json["state"] == "stopped"
    assert api.post(f"/api/bulk/{run['id']}/stop").json["state"] == "stopped"
    assert rows.state(made.id) == "Enqueued"


@pytest.mark.parametrize("path", [f"/api/bulk/{uuid4()}", f"/api/bulk/{new_id()}"], ids=["random", "by time"])
def test_a_run_that_is_not_there_is_a_404(api, path):
    api.get(path).problem(404)
    api.post(f"{path}/stop").problem(404)


@pytest.mark.parametrize(
    "body",
    [{}, {"ids": []}, {"ids": None}, {"filter": {}}, {"filter": None}, {"filter": {"state": "nonsense"}},
     {"ids": ["x"]},
     {"filter": {"queue": "Reports!"}}, {"ids": [str(uuid4())], "filter": {"type": "a"}}, {"ids": str(uuid4())},
     {"ids": [str(uuid4())], "strange": 1}, {"filter": {"strange": 1}}, {"filter": {"search": "a\0b"}},
     {"ids": [str(uuid4())], "dry_run": "yes"}, {"ids": [str(uuid4())], "id": str(uuid4())}, [],
     {"ids": [str(uuid4())], "before": "yesterday"}, {"ids": [str(uuid4())] * 10_001}],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/api/jobs/bulk/delete", "/api/dead-letters/bulk/discard"])
def test_what_is_not_understood_whole_is_refused_and_nothing_done(api, path, body):
    if "dead-letters" in path and body == {"filter": {"state": "nonsense"}}:
        body = {"filter": {"state": "Failed"}}
    assert api.post(path, body).problem(400)["errors"]
    assert rows.select("SELECT * FROM turno.bulk_runs") == []


@pytest.mark.parametrize("act", ["run-now", "rerun", "discard", "x"])
def test_there_are_no_other_acts(api, act):
    assert api.post(f"/api/jobs/bulk/{act}", {"ids": [str(uuid4())]}).status in {400, 404, 405}


def test_a_reason_belongs_to_cancelling_alone(api):
    api.post("/api/jobs/bulk/delete", {"ids": [str(uuid4())], "reason": "x"}).problem(400)
