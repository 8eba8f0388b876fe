"""Pauses by the API: made, listed, changed and lifted; by their own address or by that of the queue or type."""

from urllib.parse import urlencode

import pytest

from tests.api.client import Api
from tests.queries.house import pause
from tests.transitions import rows

PAUSES = "/api/pauses"
END = "2999-01-02T03:04:05-03:00"
pytestmark = pytest.mark.django_db


def listed(api):
    return [(item["scope"], item["value"]) for item in api.get(PAUSES).json["items"]]


@pytest.mark.parametrize(
    ("scope", "value"), [("queue", "default"), ("type", "never.seen"), ("tag", "nightly: é"), ("key", "cliente 42")]
)
def test_each_kind_is_paused_listed_and_lifted(api, scope, value):
    made = api.post(PAUSES, {"scope": scope, "value": value, "reason": "deploy", "until": END})
    assert made.status == 200
    assert made.json | {"since": None} == {
        "scope": scope, "value": value, "reason": "deploy", "who": "key", "since": None,
        "until": "2999-01-02T06:04:05Z",
    }  # fmt: skip
    assert api.get(PAUSES).json["items"] == [made.json]
    gone = api.delete(f"{PAUSES}?{urlencode({'scope': scope, 'value': value})}")
    assert (gone.status, gone.json) == (204, None)
    assert listed(api) == []


def test_a_second_pause_of_the_same_says_it_anew(api):
    api.post("/api/queues/default/pause", {"reason": "one", "until": END})
    again = api.post("/api/queues/default/pause").json
    assert (again["reason"], again["until"]) == ("", None)
    assert listed(api) == [("queue", "default")]


@pytest.mark.parametrize(
    ("where", "scope", "value"), [("queues", "queue", "a.b_c-1"), ("job-types", "type", "test.any")]
)
def test_queues_and_types_have_addresses_of_their_own(api, where, scope, value):
    assert api.post(f"/api/{where}/{value}/pause", {"reason": "x"}).json["scope"] == scope
    assert listed(api) == [(scope, value)]
    assert api.ask("POST", f"/api/{where}/{value}/resume").status == 204
    assert api.ask("POST", f"/api/{where}/{value}/resume").problem(404)["code"] == "not_found"


def test_what_is_paused_is_told_by_its_queue_and_its_type(api):
    pause("queue", "reports", reason="a")
    pause("type", "test.any", reason="b", paused_by="ana")
    pause("type", "never.seen")
    pause("type", "test.urgent", until=rows.ago(1))
    queues = {item["queue"]: item for item in api.get("/api/queues").json["items"]}
    assert queues["reports"]["paused"]["reason"] == "a"
    types = {item["name"]: item["paused"] for item in api.get("/api/job-types").json["items"]}
    assert (types["test.any"]["reason"], types["test.any"]["who"]) == ("b", "ana")
    assert types["never.seen"]["reason"] == ""
    assert types["test.urgent"] is None


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"scope", "value"}),
        ({"scope": "jobs", "value": "x"}, {"scope"}),
        ({"scope": "queue", "value": "Ç"}, {"value"}),
        ({"scope": "queue", "value": "dead-letter"}, {"value"}),
        ({"scope": "queue", "value": "x_error"}, {"value"}),
        ({"scope": "type", "value": "NO"}, {"value"}),
        ({"scope": "tag", "value": "x" * 101}, {"value"}),
        ({"scope": "key", "value": "x" * 201}, {"value"}),
        ({"scope": "tag", "value": ""}, {"value"}),
        ({"scope": "tag", "value": " "}, {"value"}),
        ({"scope": "key", "value": "a\0b"}, {"value"}),
        ({"scope": "key", "value": 5}, {"value"}),
        ({"scope": "key", "value": None}, {"value"}),
        ({"scope": "key", "value": "x", "until": "2001-01-01T00:00:00Z"}, {"until"}),
        ({"scope": "key", "value": "x", "until": "2999-01-01T00:00:00"}, {"until"}),
        ({"scope": "key", "value": "x", "until": "0001-01-01T00:00:00+14:00"}, {"until"}),
        ({"scope": "key", "value": "x", "until": 99999999999}, {"until"}),
        ({"scope": "key", "value": "x", "reason": "x" * 501}, {"reason"}),
        ({"scope": "key", "value": "x", "reason": None}, {"reason"}),
        ({"scope": "key", "value": "x", "reason": "a\0"}, {"reason"}),
        ({"scope": "key", "value": "x", "who": "me"}, {"who"}),
    ],
)
def test_what_is_no_pause_is_refused_by_its_fields(api, body, fields):
    assert api.post(PAUSES, body).problem(400)["errors"].keys() == fields
    assert listed(api) == []


@pytest.mark.parametrize("name", ["%C3%87", "x" * 101, "a b"])
@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_a_name_that_no_queue_has_is_refused(api, name, verb):
    assert api.ask("POST", f"/api/queues/{name}/{verb}").problem(400)["errors"]


@pytest.mark.parametrize(("verb", "status"), [("pause", 400), ("resume", 404)])
def test_a_name_that_no_queue_may_have_is_never_paused(api, verb, status):
    for name in ("dead-letter", "x_error"):
        api.ask("POST", f"/api/queues/{name}/{verb}").problem(status)


@pytest.mark.parametrize(("scope", "value"), [("queue", "x_error"), ("type", "Ç"), ("tag", "x" * 101), ("key", " ")])
def test_what_can_not_be_paused_is_not_found_when_it_is_to_be_lifted(api, scope, value):
    """The document of the query says what text it takes, and nothing of what each scope allows."""
    api.delete(f"{PAUSES}?{urlencode({'scope': scope, 'value': value})}").problem(404)


def test_the_end_of_a_pause_must_be_ahead_at_each_door(api):
    problem = api.post("/api/job-types/test.any/pause", {"until": "2001-01-01T00:00:00Z"}).problem(400)
    assert problem["errors"].keys() == {"until"}


@pytest.mark.parametrize("query", ["", "?scope=queue", "?scope=queue&value=x&x=1", "?scope=queue&value=a&value=b"])
def test_what_is_to_be_lifted_must_be_said_in_full(api, query):
    assert api.delete(PAUSES + query).problem(400)["errors"]


def test_lifting_what_is_not_paused_is_not_found(api):
    assert "default" in api.delete(f"{PAUSES}?scope=queue&value=default").problem(404)["detail"]


@pytest.mark.parametrize("path", [PAUSES, "/api/queues/a/pause", "/api/queues/a/resume", "/api/job-types/a/pause"])
def test_nothing_is_paused_without_a_key(db, path):
    Api(None).post(path, {"scope": "queue", "value": "a"} if path == PAUSES else None).problem(401)


def test_the_body_of_a_pause_must_be_json(api):
    api.ask("POST", PAUSES, "x=1", "text/plain").problem(415)
    api.ask("POST", PAUSES, "{", "application/json").problem(400)
