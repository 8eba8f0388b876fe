"""Recurring jobs by the API: made and changed by name, tried without saving, triggered, switched, deleted, listed."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from urllib.parse import urlencode

import pytest
from django.db import connections
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs import throttle
from jobs.errors import Refused
from jobs.schedules import Wanted, check
from tests.api.client import Api
from tests.cron.test_cases import CASES
from tests.transitions.ear import Ear
from tests.transitions.recurring import fire_all, jobs_of, make_recurring, recurring
from tests.transitions.rows import execute

ROUTE = "/api/recurring-jobs"
DAILY = {"name": "daily", "type": "test.report", "cron": "30 7 * * mon-fri", "timezone": "America/Sao_Paulo"}


def put(api, **fields):
    return api.ask("PUT", ROUTE, json.dumps(DAILY | fields), "application/json")


def made(api, **fields):
    answer = put(api, **fields)
    assert answer.status in (200, 201), answer.json
    return answer.json


def test_one_is_made_by_its_name_and_changed_by_it(api):
    first = put(api, payload={"rows": 5})
    assert first.status == 201
    assert first.json["enabled"] is True
    assert first.json["state"] == "enabled"
    assert (first.json["payload"], first.json["source"], first.json["owner"]) == ({"rows": 5}, "manual", "key")
    assert len(first.json["next_runs"]) == 5
    assert first.json["next_runs"][0] == first.json["next_run_at"]
    second = put(api, cron="0 3 * * *", overlap="queue")
    assert second.status == 200
    assert second.json["id"] == first.json["id"]
    assert (second.json["cron"], second.json["overlap"], second.json["payload"]) == ("0 3 * * *", "queue", {})
    assert second.json["next_run_at"] != first.json["next_run_at"]
    assert api.get(f"{ROUTE}/{first.json['id']}").json == second.json


def test_a_schedule_that_stays_keeps_its_instant(api):
    id_ = made(api, cron="* * * * *")["id"]
    execute("UPDATE turno.recurring_jobs SET next_run_at = now() - interval '1 minute'")
    before = recurring(id_)["next_run_at"]
    made(api, cron="* * * * *", payload={"rows": 7})
    assert recurring(id_)["next_run_at"] == before  # it is due, and fires with the new payload
    fire_all()
    assert [job["payload"] for job in jobs_of(id_)] == [{"rows": 7}]


def test_one_can_be_made_disabled_and_is_left_so(api):
    row = made(api, enabled=False)
    assert (row["state"], row["disabled_by"], row["next_run_at"], row["next_runs"]) == ("disabled", "key", None, [])
    assert made(api, payload={"rows": 2})["enabled"] is False
    assert made(api, enabled=True)["disabled_by"] is None


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"cron": "x y"}, "cron"),
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"cron": ""}, "cron"),
        ({"cron": "* " * 300}, "cron"),
        ({"timezone": "+05:30"}, "timezone"),
        ({"timezone": "E. South America Standard Time"}, "timezone"),
        ({"timezone": "a\0b"}, "timezone"),
        ({"name": "Nightly"}, "name"),
        ({"name": ""}, "name"),
        ({"type": "nobody.knows"}, "type"),
        ({"type": "No Type"}, "type"),
        ({"payload": {"rows": 0}}, "payload.rows"),
        ({"payload": {"strange": 0}}, "payload.strange"),
        ({"payload": [1]}, "payload"),
        ({"queue": "dead-letter"}, "queue"),
        ({"priority": 11}, "priority"),
        ({"priority": True}, "priority"),
        ({"overlap": "maybe"}, "overlap"),
        ({"misfire": "never"}, "misfire"),
        ({"enabled": "yes"}, "enabled"),
        ({"strange": 1}, "strange"),
    ],
)
def test_what_is_wrong_is_told_by_field_and_nothing_is_stored(api, fields, field):
    problem = put(api, **fields).problem(400)
    assert list(problem["errors"]) == [field], problem
    assert api.get(ROUTE).json["items"] == []


def test_a_text_that_is_too_long_is_told_in_characters(api):
    long = {"cron": "* " * 300, "timezone": "x" * 300}
    saved = api.ask("PUT", ROUTE, json.dumps(DAILY | long), "application/json", Accept_Language="en")
    tried = api.get(f"{ROUTE}/preview?{urlencode(long)}", Accept_Language="en")
    for answer in (saved, tried):
        assert answer.problem(400)["errors"] == {
            "cron": ["Expected at most 200 characters."],
            "timezone": ["Expected at most 100 characters."],
        }


def test_all_that_is_wrong_is_told_at_once(api):
    problem = put(api, cron="61 * * * *", timezone="Mars/Olympus", type="nobody.knows").problem(400)
    assert set(problem["errors"]) == {"cron", "timezone", "type"}


def test_a_payload_over_the_limit_is_413(api):
    assert put(api, type="test.any", payload={"a": "x" * 300_000}).problem(413)["errors"]["payload"]


def test_what_is_refused_leaves_the_list_as_it_was(api):
    made(api)
    for case in [*CASES["must_reject"], {"expression": "* * * * *", "timezone": "+05:30"}]:
        problem = put(api, cron=case["expression"], timezone=case["timezone"]).problem(400)
        assert set(problem["errors"]) <= {"cron", "timezone"}
    assert [row["timezone"] for row in api.get(ROUTE).json["items"]] == ["America/Sao_Paulo"]


def test_a_preview_says_it_in_words_and_instants_and_saves_nothing(api):
    path = f"{ROUTE}/preview?cron=30+7+*+*+mon-fri&timezone=America/Sao_Paulo&from=2026-03-06T10:30:00Z&count=2"
    answer = api.get(path, Accept_Language="en")
    assert answer.json["instants"] == ["2026-03-09T10:30:00Z", "2026-03-10T10:30:00Z"]
    assert answer.json["words"]
    assert (answer.json["cron"], answer.json["timezone"]) == ("30 7 * * mon-fri", "America/Sao_Paulo")
    assert api.get(ROUTE).json["items"] == []


def test_a_preview_without_a_start_is_that_of_now(api):
    answer = api.get(f"{ROUTE}/preview?cron=*+*+*+*+*")
    instants = [datetime.fromisoformat(at) for at in answer.json["instants"]]
    assert len(instants) == 5
    assert {(b - a).total_seconds() for a, b in pairwise(instants)} == {60}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "cron"),
        ("cron=x", "cron"),
        ("cron=*+*+*+*+*&timezone=Nowhere", "timezone"),
        ("cron=*+*+*+*+*&count=0", "count"),
        ("cron=*+*+*+*+*&count=101", "count"),
        ("cron=*+*+*+*+*&count=x", "count"),
        ("cron=*+*+*+*+*&from=yesterday", "from"),
        ("cron=*+*+*+*+*&from=2026-03-06T10:30:00", "from"),
        ("cron=*+*+*+*+*&cron=x", "cron"),
        ("cron=*+*+*+*+*&form=2026-03-06T10:30:00Z", "form"),
    ],
)
def test_a_preview_that_makes_no_sense_is_told_by_field(api, query, field):
    assert list(api.get(f"{ROUTE}/preview?{query}").problem(400)["errors"]) == [field]


@pytest.mark.parametrize("start", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "1970-01-01T00:00:00-23:59"])
def test_a_preview_at_an_end_of_the_calendar_is_no_fault(api, start):
    answer = api.get(f"{ROUTE}/preview?cron=*+*+*+*+*&from={start}")
    assert answer.status in (200, 400)


def test_a_trigger_makes_a_job_now_and_leaves_the_schedule(api):
    row = made(api, payload={"rows": 3})
    answer = api.post(f"{ROUTE}/{row['id']}/trigger")
    assert answer.status == 201
    [job] = jobs_of(row["id"])
    assert str(job["id"]) == answer.json["job_id"]
    assert (job["payload"], job["state"], job["origin"], job["owner"]) == ({"rows": 3}, "Enqueued", "daily", "key")
    after = api.get(f"{ROUTE}/{row['id']}").json
    assert (after["next_run_at"], after["active"]) == (row["next_run_at"], 1)


def test_a_trigger_while_one_is_not_final_is_a_conflict_that_names_it(api):
    id_ = made(api)["id"]
    first = api.post(f"{ROUTE}/{id_}/trigger").json["job_id"]
    problem = api.post(f"{ROUTE}/{id_}/trigger").problem(409)
    assert (problem["job"], problem["state"], problem["reason"]) == (first, "Enqueued", "overlap")
    assert first in problem["detail"]
    made(api, overlap="allow")
    assert api.post(f"{ROUTE}/{id_}/trigger").status == 201


def test_a_disabled_one_can_be_triggered_and_one_with_a_refused_payload_can_not(api):
    id_ = made(api, enabled=False)["id"]
    assert api.post(f"{ROUTE}/{id_}/trigger").status == 201
    bad = make_recurring(type="test.report", payload={"rows": 0})
    assert list(api.post(f"{ROUTE}/{bad}/trigger").problem(400)["errors"]) == ["payload.rows"]


def test_it_is_disabled_and_enabled_by_who_asks(api):
    id_ = made(api)["id"]
    off = api.post(f"{ROUTE}/{id_}/disable").json
    assert (off["enabled"], off["disabled_by"], off["next_run_at"]) == (False, "key", None)
    assert api.post(f"{ROUTE}/{id_}/disable").json["updated_at"] == off["updated_at"]  # nothing to do
    on = api.post(f"{ROUTE}/{id_}/enable").json
    assert (on["enabled"], on["disabled_by"]) == (True, None)
    assert on["next_run_at"] is not None


def test_one_in_error_says_why_and_is_mended_by_an_edit_or_tried_again(api):
    id_ = made(api, cron="* * * * *")["id"]
    execute("UPDATE turno.recurring_jobs SET timezone = 'Mars/Olympus', next_run_at = now()")
    fire_all()
    row = api.get(f"{ROUTE}/{id_}").json
    assert (row["state"], row["words"], row["next_runs"], row["times_a_day"]) == ("error", None, [], 0)
    assert "timezone" in row["error"]
    assert list(api.post(f"{ROUTE}/{id_}/enable").problem(400)["errors"]) == ["timezone"]
    mended = made(api, cron="* * * * *")
    assert (mended["state"], mended["error"]) == ("enabled", None)
    execute("UPDATE turno.recurring_jobs SET error = 'gone by now', next_run_at = NULL")
    assert api.post(f"{ROUTE}/{id_}/enable").json["state"] == "enabled"


def test_one_that_is_deleted_is_gone_and_its_jobs_stay(api):
    id_ = made(api)["id"]
    job = api.post(f"{ROUTE}/{id_}/trigger").json["job_id"]
    assert api.delete(f"{ROUTE}/{id_}").status == 204
    assert api.get(f"{ROUTE}/{id_}").problem(404)
    assert api.get(f"/api/jobs/{job}").status == 200


@pytest.mark.parametrize("act", ["", "/trigger", "/enable", "/disable"])
def test_one_that_is_not_there_is_404_and_an_id_that_is_none_is_400_or_404(api, act):
    method = "DELETE" if not act else "POST"
    assert api.ask(method, f"{ROUTE}/0199e1f2-0000-7000-8000-000000000000{act}").problem(404)
    assert api.ask(method, f"{ROUTE}/strange{act}").status in (400, 404)


def test_a_declared_one_is_triggered_and_switched_and_neither_edited_nor_deleted(api):
    id_ = make_recurring(name="daily", source="declared")
    assert put(api).problem(409)["reason"] == "declared"
    assert api.delete(f"{ROUTE}/{id_}").problem(409)["reason"] == "declared"
    assert api.post(f"{ROUTE}/{id_}/disable").json["disabled_by"] == "key"
    assert api.post(f"{ROUTE}/{id_}/enable").status == 200
    assert api.post(f"{ROUTE}/{id_}/trigger").status == 201


def test_one_that_its_file_dropped_can_be_taken_over_or_deleted(api):
    id_ = make_recurring(name="daily", source="declared", enabled=False, disabled_by="configuration", next_run_at=None)
    assert api.post(f"{ROUTE}/{id_}/enable").problem(409)["reason"] == "declared"
    taken = made(api, enabled=True)
    assert (taken["id"], taken["source"], taken["disabled_by"]) == (str(id_), "manual", None)
    other = make_recurring(source="declared", enabled=False, disabled_by="configuration:user:ana", next_run_at=None)
    assert api.delete(f"{ROUTE}/{other}").status == 204


def test_a_stranger_is_told_to_bring_a_key(stranger):
    for method, path in [("GET", ""), ("PUT", ""), ("GET", "/preview?cron=*"), ("POST", "/x/trigger")]:
        assert stranger.ask(method, f"{ROUTE}{path}", "{}", "application/json").status in (401, 429)


def test_an_edit_wakes_who_waits_for_instants(clean_tables):
    with Ear() as ear:
        made(Api())
        assert ("turno_due", "") in [tuple(said) for said in ear.heard()]


def test_fifty_who_put_the_same_name_at_once_make_one_row(clean_tables, monkeypatch):
    monkeypatch.setattr(throttle, "FAILURES_A_MINUTE", 10**9)

    def one(n):
        try:
            return put(Api(), payload={"rows": n + 1}).status
        finally:
            connections.close_all()

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(one, range(50)))
    assert answers.count(201) == 1
    assert set(answers) == {200, 201}
    assert len(Api().get(ROUTE).json["items"]) == 1


@settings(max_examples=60, derandomize=True, database=None, deadline=None)
@given(cron=st.text(max_size=30), zone=st.text(max_size=30) | st.just("UTC"))
def test_no_text_of_a_schedule_is_a_fault(cron, zone):
    with suppress(Refused):
        check(Wanted("a", "test.any", cron, zone))
