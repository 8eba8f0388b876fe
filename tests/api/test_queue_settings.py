"""Settings by the API: slots and default priority of queues, limits of types, the priority of a job that waits."""

import json

import pytest

from jobs.states import State
from tests.api.client import Api
from tests.queries.house import minute, worker
from tests.transitions import rows

pytestmark = pytest.mark.django_db


def put(api, path, body):
    return api.ask("PUT", path, json.dumps(body), "application/json")


def queue(api, name="reports"):
    return next(item for item in api.get("/api/queues").json["items"] if item["queue"] == name)


def test_settings_that_are_left_out_stay_and_null_takes_them_back(api):
    assert put(api, "/api/queues/reports", {"slots": 3, "default_priority": -2}).json == {
        "name": "reports", "slots": 3, "default_priority": -2,
    }  # fmt: skip
    assert put(api, "/api/queues/reports", {"slots": 0}).json["default_priority"] == -2
    assert put(api, "/api/queues/reports", {}).json["slots"] == 0
    assert put(api, "/api/queues/reports", {"slots": None}).json == {
        "name": "reports", "slots": None, "default_priority": -2,
    }  # fmt: skip
    shown = queue(api)
    assert (shown["slots"], shown["default_priority"], shown["served"]) == (None, -2, False)


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"slots": -1}, {"slots"}), ({"slots": 1001}, {"slots"}), ({"slots": True}, {"slots"}),
        ({"slots": "3"}, {"slots"}), ({"slots": 1.5}, {"slots"}), ({"slots": 10**30}, {"slots"}),
        ({"default_priority": 11}, {"default_priority"}), ({"default_priority": "x"}, {"default_priority"}),
        ({"name": "x"}, {"name"}), ([], {"body"}),
    ],
)  # fmt: skip
def test_settings_that_no_queue_can_have_are_refused_by_their_fields(api, body, fields):
    assert put(api, "/api/queues/reports", body).problem(400)["errors"].keys() == fields


@pytest.mark.parametrize("told", [4, 0], ids=["before its workers follow", "after"])
def test_a_job_of_a_queue_without_slots_says_so_and_not_that_another_worker_would_help(api, told):
    worker("a", {"reports": told})
    id_ = api.enqueue(queue="reports")
    put(api, "/api/queues/reports", {"slots": 0})
    reasons = api.get(f"/api/jobs/{id_}", Accept_Language="en").json["waiting"]
    assert [(one["kind"], one["command"]) for one in reasons if one["kind"] != "place"] == [("queue_unserved", None)]
    assert "reports has been given 0 slots" in reasons[0]["text"]
    assert "PUT /api/queues/reports" in reasons[0]["help"]
    assert not any("in a moment" in one["note"] for one in reasons)
    put(api, "/api/queues/reports", {"slots": None})
    reasons = api.get(f"/api/jobs/{id_}", Accept_Language="en").json["waiting"]
    assert not any("given 0 slots" in one["text"] for one in reasons)


def test_a_whole_number_may_be_written_as_a_float(api):
    """To JSON, and to our own document, 3.0 is an integer."""
    found = put(api, "/api/queues/reports", {"slots": 3.0, "default_priority": -2.0}).json
    assert (found["slots"], found["default_priority"]) == (3, -2)
    made = rows.make_job()
    api.post(f"/api/jobs/{made.id}/priority", {"priority": 9.0})
    assert rows.job(made.id)["priority"] == 9
    assert rows.job(api.enqueue(priority=4.0, max_attempts=2.0))["max_attempts"] == 2
    for wrong in (1e300, 1.5, "3.0"):
        put(api, "/api/queues/reports", {"slots": wrong}).problem(400)


@pytest.mark.parametrize("name", ["dead-letter", "x_error", "Ç"])
def test_a_queue_that_there_can_not_be_has_no_settings(api, name):
    assert put(api, f"/api/queues/{name}", {"slots": 1}).problem(400)["errors"]


def test_what_neither_request_nor_type_gives_a_priority_has_that_of_its_queue(api):
    put(api, "/api/queues/reports", {"default_priority": 4})
    asked = {
        4: api.enqueue(queue="reports"), 0: api.enqueue(queue="reports", priority=0),
        7: api.enqueue("test.urgent", queue="reports"),
    }  # fmt: skip
    other = api.enqueue(queue="critical")
    assert {rows.job(id_)["priority"]: id_ for id_ in asked.values()} == asked
    assert rows.job(other)["priority"] == 0
    here = {"type": "test.any", "queue": "reports"}
    made = api.post("/api/jobs/batch", {"jobs": [here, here | {"priority": 1}]}).json["items"]
    assert [rows.job(item["id"])["priority"] for item in made] == [4, 1]


def test_a_queue_shows_what_ended_in_it_in_the_last_hour(api):
    worker("a", {"reports": 2})
    minute(0, queue="reports", succeeded=100)
    minute(1, queue="reports", succeeded=20, failed=5)
    minute(15, queue="reports", retried=5)
    minute(40, queue="reports", cancelled=10)
    minute(70, queue="reports", succeeded=1000)
    minute(1, queue="other", succeeded=7)
    shown = queue(api)
    assert (shown["ended_last_hour"], shown["failed_last_hour"], shown["served"]) == (140, 5, True)
    assert shown["per_minute"] == 2


@pytest.mark.parametrize("state", sorted(State))
def test_only_a_job_that_waits_gets_another_priority(api, state):
    made = rows.make_job(state)
    answer = api.post(f"/api/jobs/{made.id}/priority", {"priority": 9})
    if state in (State.SCHEDULED, State.ENQUEUED):
        assert answer.json == {"id": str(made.id), "state": state, "requested": False}
        assert rows.job(made.id)["priority"] == 9
    else:
        assert answer.problem(409)["state"] == state


@pytest.mark.parametrize("priority", [11, -11, "1", True, 1.5, None, 10**40])
def test_a_priority_that_there_is_not_is_refused(api, priority):
    made = rows.make_job()
    problem = api.post(f"/api/jobs/{made.id}/priority", {"priority": priority}).problem(400)
    assert problem["errors"].keys() == {"priority"}


def test_of_a_job_that_is_not_there_nothing_is_changed(api):
    api.post("/api/jobs/0199e1f2-0000-7000-8000-000000000000/priority", {"priority": 1}).problem(404)


def test_the_limits_of_a_type_are_set_shown_and_given_back(api):
    set_ = put(api, "/api/job-types/test.any", {"max_running": 2, "rate_limit": "100/m"})
    assert set_.json == {"name": "test.any", "max_running": 2, "rate_limit": "100/m"}
    shown = next(item for item in api.get("/api/job-types").json["items"] if item["name"] == "test.any")
    assert (shown["max_running"], shown["rate_limit"], shown["limits_by"]) == (2, "100/m", "key")
    back = api.delete("/api/job-types/test.any/limits")
    assert back.json == {"name": "test.any", "max_running": None, "rate_limit": None}


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"max_running", "rate_limit"}), ({"max_running": 0, "rate_limit": None}, {"max_running"}),
        ({"max_running": 1001, "rate_limit": None}, {"max_running"}),
        ({"max_running": None, "rate_limit": "many"}, {"rate_limit"}),
        ({"max_running": None, "rate_limit": "0/m"}, {"rate_limit"}),
        ({"max_running": None, "rate_limit": 5}, {"rate_limit"}),
        ({"max_running": None, "rate_limit": "1/m", "x": 1}, {"x"}),
    ],
)  # fmt: skip
def test_limits_that_there_can_not_be_are_refused_by_their_fields(api, body, fields):
    assert put(api, "/api/job-types/test.any", body).problem(400)["errors"].keys() == fields


def test_a_type_that_nobody_has_seen_has_no_limits(api):
    body = {"max_running": 1, "rate_limit": None}
    put(api, "/api/job-types/never.seen", body).problem(404)
    api.delete("/api/job-types/never.seen/limits").problem(404)
    put(api, "/api/job-types/%C3%87", body).problem(400)


@pytest.mark.parametrize("path", ["/api/queues/a", "/api/job-types/a"])
def test_nothing_is_set_without_a_key(db, path):
    put(Api(None), path, {}).problem(401)
