"""POST /api/jobs and its batch with `after`: what waits for other jobs, and what is refused."""

from uuid import uuid4

import pytest

from jobs import transitions
from tests.transitions import rows
from tests.transitions.rows import make_job

pytestmark = pytest.mark.django_db
BATCH = "/api/jobs/batch"
JOB = {"type": "test.any"}


@pytest.mark.parametrize("policy", [None, "cancel", "run"])
def test_a_job_that_waits_for_others_says_so_from_the_start(api, policy):
    first, second = api.enqueue(), api.enqueue()
    asked = {"after": [first, second, first]} | ({"on_parent_failure": policy} if policy else {})
    answer = api.post("/api/jobs", JOB | asked)
    assert (answer.status, answer.json["state"]) == (201, "Scheduled")
    job = api.get(f"/api/jobs/{answer.json['id']}").json
    assert (job["state"], job["waiting_for"], job["run_at"]) == ("Scheduled", "parents", None)
    found = rows.select("SELECT parent_id, policy FROM turno.job_dependencies WHERE child_id = %s", job["id"])
    assert sorted(str(row["parent_id"]) for row in found) == sorted([first, second])
    assert {row["policy"] for row in found} == {policy or "cancel"}


def test_run_now_is_refused_while_it_waits_for_them(api):
    id_ = api.enqueue(after=[api.enqueue()])
    api.post(f"/api/jobs/{id_}/run-now").problem(409)


@pytest.mark.parametrize(
    ("field", "value", "names"),
    [
        ("after", "x", ["after"]),
        ("after", None, ["after"]),
        ("after", ["x"], ["after.0"]),
        ("after", [5], ["after.0"]),
        ("after", [str(uuid4()) for _ in range(101)], ["after"]),
        ("after", [str(uuid4())], ["after.0"]),
        ("on_parent_failure", "wait", ["on_parent_failure"]),
        ("on_parent_failure", "run", ["on_parent_failure"]),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_stored(api, field, value, names):
    problem = api.post("/api/jobs", JOB | {field: value}).problem(400)
    assert list(problem["errors"]) == names
    assert not rows.select("SELECT 1 FROM turno.jobs")


def test_another_owners_job_is_no_other_than_one_that_does_not_exist(api):
    theirs = str(make_job(owner="rui").id)
    [mine] = api.post("/api/jobs", JOB | {"after": [theirs]}, Accept_Language="en").problem(400)["errors"].items()
    [gone] = api.post("/api/jobs", JOB | {"after": [str(uuid4())]}, Accept_Language="en").problem(400)["errors"].items()
    assert mine == gone == ("after.0", ["No job has this id."])


def test_in_a_batch_they_are_named_by_index_and_nothing_of_it_is_stored(api):
    parent, gone = api.enqueue(), str(uuid4())
    jobs = [JOB, JOB | {"after": [parent, gone]}, JOB | {"after": [gone, parent, gone]}, JOB | {"after": [parent]}]
    problem = api.post(BATCH, {"jobs": jobs}).problem(400)
    assert list(problem["errors"]) == ["1.after.1", "2.after.0", "2.after.2"]
    assert len(rows.select("SELECT 1 FROM turno.jobs")) == 1
    answer = api.post(BATCH, {"jobs": [JOB, jobs[3]]})
    assert [one["state"] for one in answer.json["items"]] == ["Enqueued", "Scheduled"]


def test_a_repeat_is_answered_with_the_first_job_whatever_became_of_its_parents(api):
    parent = api.enqueue()
    body = JOB | {"after": [parent]}
    first = api.post("/api/jobs", body, Idempotency_Key="K")
    transitions.cancel([parent])
    transitions.delete([parent])
    again = api.post("/api/jobs", body, Idempotency_Key="K")
    assert (again.status, again.json["id"]) == (200, first.json["id"])
    api.post("/api/jobs", JOB, Idempotency_Key="K").problem(422)
    api.post("/api/jobs", body | {"on_parent_failure": "run"}, Idempotency_Key="K").problem(422)


def test_the_document_knows_how_many_and_which_policies(api):
    fields = api.get("/openapi/v1.json").json["components"]["schemas"]["JobIn"]["properties"]
    assert fields["after"]["maxItems"] == 100
    assert fields["on_parent_failure"]["anyOf"][0]["enum"] == ["cancel", "run"]
