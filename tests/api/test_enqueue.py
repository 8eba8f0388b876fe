"""POST /api/jobs and POST /api/jobs/batch."""

from datetime import UTC, datetime

import pytest

from jobs import bounds
from jobs.conf import overridden
from tests.transitions import rows

pytestmark = pytest.mark.django_db
BATCH = "/api/jobs/batch"


def test_a_job_is_created_with_its_address(api):
    answer = api.post("/api/jobs", {"type": "test.report", "payload": {"rows": 3}})
    assert answer.status == 201
    assert answer.json == {"id": answer.json["id"], "state": "Enqueued", "duplicate": False}
    assert answer.headers["Location"] == f"/api/jobs/{answer.json['id']}"
    assert rows.job(answer.json["id"])["payload"] == {"rows": 3}


def test_every_option_reaches_the_row(api):
    options = {
        "queue": "critical", "priority": -3, "run_at": "2999-01-02T03:04:05-03:00", "unique_key": "boleto 7",
        "max_attempts": 9, "timeout": "2 min", "tags": ["a", "ação"], "origin": "portal",
    }  # fmt: skip
    row = rows.job(api.enqueue("test.any", payload={"x": 1}, **options))
    assert row["queue"] == "critical"
    assert row["priority"] == -3
    assert row["run_at"] == datetime(2999, 1, 2, 6, 4, 5, tzinfo=UTC)
    assert row["unique_key"] == "boleto 7"
    assert (row["max_attempts"], row["timeout"]) == (9, 120)
    assert row["tags"] == ["a", "ação"]
    assert row["origin"] == "portal"
    assert row["state"] == "Scheduled"


@pytest.mark.parametrize("delay", [60, 60.0, "60s", "60", "1 min", "60000ms"])
def test_a_delay_is_seconds_or_text(api, delay):
    job = api.get(f"/api/jobs/{api.enqueue(delay=delay)}").json
    assert job["state"] == "Scheduled"
    due, created = (datetime.fromisoformat(job[name]) for name in ("run_at", "created_at"))
    assert (due - created).total_seconds() == 60


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("type", "Upper"), ("type", ""), ("type", 5), ("payload", []), ("payload", None), ("payload", "x"),
        ("queue", "dead-letter"), ("queue", "x_error"), ("queue", "ç"), ("priority", 11), ("priority", True),
        ("priority", "1"), ("priority", 1.5), ("priority", 10**30), ("run_at", "2026-01-01T00:00:00"), ("run_at", 5),
        ("run_at", "0001-01-01T00:00:00+14:00"), ("run_at", "9999-12-31T23:59:59-14:00"), ("run_at", "tomorrow"),
        ("delay", -1), ("delay", "soon"), ("delay", 1e300), ("delay", True), ("unique_key", ""),
        ("unique_key", "x" * 201), ("unique_key", "a\0b"), ("max_attempts", 0), ("max_attempts", 101), ("timeout", 0),
        ("timeout", "0s"), ("tags", ["a\0b"]), ("tags", "a"), ("tags", ["x"] * 21), ("tags", [""]), ("origin", "\n"),
        ("concurrency_key", ""), ("before", []), ("idempotency_key", "k"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_and_nothing_is_stored(api, field, value):
    problem = api.post("/api/jobs", {"type": "test.any", field: value}).problem(400)
    assert any(name == field or name.startswith(f"{field}.") for name in problem["errors"])
    assert not rows.select("SELECT 1 FROM turno.jobs")


def test_all_wrong_fields_are_named_at_once(api):
    problem = api.post("/api/jobs", {"type": "test.any", "priority": 99, "queue": "Ç", "x": 1}).problem(400)
    assert problem["errors"].keys() == {"priority", "queue", "x"}


def test_run_at_and_delay_exclude_each_other(api):
    body = {"type": "test.any", "run_at": "2999-01-01T00:00:00Z", "delay": 5}
    assert api.post("/api/jobs", body).problem(400)["errors"].keys() == {"delay"}


def test_the_payload_is_checked_by_its_type(api):
    problem = api.post("/api/jobs", {"type": "test.report", "payload": {"rows": 0, "x": 1}}).problem(400)
    assert problem["errors"].keys() == {"payload.rows", "payload.x"}


def test_an_unknown_type_is_answered_with_the_nearest_names(api):
    problem = api.post("/api/jobs", {"type": "test.reprt"}).problem(400)
    assert problem["code"] == "unknown_type"
    assert "test.report" in problem["nearest"]


def test_where_unknown_types_are_accepted_only_what_needs_a_handler_is_left_out(api):
    with overridden(api={"unknown_types": "accept"}):
        made = api.post("/api/jobs", {"type": "elsewhere.only", "payload": {"any": [1, {"x": None}]}, "queue": "q"})
        assert made.status == 201
        api.post("/api/jobs", {"type": "elsewhere.only", "payload": {"a": "\0"}}).problem(400)
        assert api.post("/api/jobs", {"type": "elsewhere.only", "payload": {"a": "x" * 300_000}}).status == 413
        api.post("/api/jobs", {"type": "test.report", "payload": {"rows": 0}}).problem(400)
        batch = api.post(BATCH, {"jobs": [{"type": "elsewhere.only"}, {"type": "test.any"}]})
        assert batch.status == 201
    found = api.get(f"/api/jobs/{made.json['id']}").json
    assert (found["type"], found["queue"], found["payload"]) == ("elsewhere.only", "q", {"any": [1, {"x": None}]})
    assert (found["type_served"], found["fails_in"]) == (False, None)


def test_a_second_job_of_a_unique_key_answers_with_the_first(api):
    first = api.enqueue(unique_key="k")
    answer = api.post("/api/jobs", {"type": "test.any", "unique_key": "k"})
    assert answer.status == 200
    assert answer.json == {"id": first, "state": "Enqueued", "duplicate": True}
    assert "Idempotent-Replayed" not in answer.headers


def test_a_repeat_with_the_same_idempotency_key_is_replayed(api):
    first = api.send('{"type": "test.any", "payload": {"a": 1, "b": 2}}', Idempotency_Key="K-1")
    again = api.send('{ "payload": {"b": 2,  "a": 1}, "type": "test.any"}', idempotency_key="K-1")
    assert (first.status, again.status) == (201, 200)
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json["id"] == first.json["id"]


def test_an_idempotency_key_with_another_body_is_422(api):
    api.send('{"type": "test.any"}', Idempotency_Key="K-2")
    problem = api.send('{"type": "test.any", "payload": {"x": 1}}', Idempotency_Key="K-2").problem(422)
    assert problem["code"] == "idempotency_mismatch"
    assert len(rows.select("SELECT 1 FROM turno.jobs")) == 1


@pytest.mark.parametrize("key", ["", " ", "x" * 201, "ação"])
def test_a_strange_idempotency_key_is_refused(api, key):
    api.send('{"type": "test.any"}', Idempotency_Key=key).problem(400)


def test_one_key_on_two_routes_are_two_requests(api):
    one = api.post("/api/jobs", {"type": "test.any"}, Idempotency_Key="K#0")
    batch = api.post(BATCH, {"jobs": [{"type": "test.any"}]}, Idempotency_Key="K")
    assert (one.status, batch.status) == (201, 201)
    assert one.json["id"] != batch.json["items"][0]["id"]


def test_a_batch_is_stored_in_order(api):
    answer = api.post(BATCH, {"jobs": [{"type": "test.any", "payload": {"n": n}} for n in range(5)]})
    assert answer.status == 201
    ids = [item["id"] for item in answer.json["items"]]
    assert [rows.job(id_)["payload"]["n"] for id_ in ids] == list(range(5))


def test_one_wrong_job_stops_the_whole_batch_and_is_named_by_index(api):
    jobs = [{"type": "test.any"}, {"type": "test.report", "payload": {"rows": 0}}, {"type": "nope"}]
    problem = api.post(BATCH, {"jobs": jobs}).problem(400)
    assert problem["errors"].keys() == {"1.payload.rows", "2.type"}
    assert not rows.select("SELECT 1 FROM turno.jobs")


def test_a_field_of_the_wrong_kind_in_a_batch_is_named_by_index_too(api):
    problem = api.post(BATCH, {"jobs": [{"type": "test.any"}, {"type": "test.any", "priority": "x"}]}).problem(400)
    assert problem["errors"].keys() == {"1.priority"}


def test_a_batch_of_a_thousand_is_taken_and_one_more_is_not(api):
    assert len(api.post(BATCH, {"jobs": [{"type": "test.any"}] * 1000}).json["items"]) == 1000
    api.post(BATCH, {"jobs": [{"type": "test.any"}] * 1001}).problem(400)
    api.post(BATCH, {"jobs": []}).problem(400)


def test_a_repeated_batch_is_replayed_as_a_whole(api):
    body = {"jobs": [{"type": "test.any"}, {"type": "test.any"}]}
    first, again = (api.post(BATCH, body, Idempotency_Key="B") for _ in range(2))
    assert (first.status, again.status) == (201, 200)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json == first.json
    api.post(BATCH, {"jobs": body["jobs"][:1]}, Idempotency_Key="B").problem(422)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("unique_key", "😀" * 201, "Expected at most 200 characters."),
        ("origin", "a" * 201, "Expected at most 200 characters."),
        ("origin", "", "Expected 1 or more characters."),
        ("tags", ["a" * 101], "Expected at most 100 characters."),
    ],
)
def test_the_length_of_a_text_is_told_in_characters(api, field, value, message):
    body = {"type": "test.any", field: value}
    errors = api.post("/api/jobs", body, Accept_Language="en").problem(400)["errors"]
    assert list(errors.values()) == [[message]]


def test_of_very_many_wrong_fields_a_hundred_are_named_and_all_are_counted(api):
    body = {"type": "test.any"} | {f"x{number}": 1 for number in range(5000)}
    problem = api.post("/api/jobs", body, Accept_Language="en").problem(400)
    assert len(problem["errors"]) == 100
    assert problem["detail"] == "5000 fields are wrong: x0, x1, x2, x3, x4, …"


@pytest.mark.parametrize(("field", "longest"), [("delay", bounds.LONGEST_DELAY), ("timeout", bounds.LONGEST_TIMEOUT)])
def test_the_document_and_the_door_agree_on_the_longest_time(api, field, longest):
    schema = api.get("/openapi/v1.json").json["components"]["schemas"]["JobIn"]["properties"][field]
    assert longest in [branch.get("maximum") for branch in schema["anyOf"][0]["anyOf"]]
    assert api.post("/api/jobs", {"type": "test.any", field: longest}).status == 201
    api.post("/api/jobs", {"type": "test.any", field: longest + 1}).problem(400)
