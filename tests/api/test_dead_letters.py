"""Dead letters by the API: listed by pages that miss none, requeued and discarded, one or many."""

from uuid import uuid4

import pytest
from django.db import connection

from jobs import bulk
from jobs.ids import new_id
from jobs.queries import letterlist
from jobs.states import State
from tests.api.client import Api
from tests.transitions import rows
from tests.transitions.rows import ago, make_letter

LETTERS = "/api/dead-letters"


@pytest.fixture
def api(clean_tables):
    yield Api()
    bulk.crew.join()


def made(count=1, **columns):
    """Letters with their jobs: (job id, letter id), oldest first."""
    found = []
    for _ in range(count):
        job = rows.make_job(State.FAILED, id=new_id())
        letter = new_id()
        make_letter(job, id=letter, **columns)
        found.append((job.id, letter))
    return found


def paged(api, query=""):
    found, cursor, pages = [], None, 0
    while pages < 50:
        page = api.get(f"{LETTERS}?{query}" + (f"&cursor={cursor}" if cursor else "")).json
        found += [item["id"] for item in page["items"]]
        cursor, pages = page["next_cursor"], pages + 1
        if cursor is None:
            return found
    raise AssertionError("the pages never end")


def test_a_letter_is_shown_with_what_it_is_about(api):
    ((job, letter),) = made(
        type="test.a", queue="reports", error_type="ValueError", error_message="no", fingerprint="f1"
    )
    (item,) = api.get(LETTERS).json["items"]
    assert (item["id"], item["job_id"]) == (str(letter), str(job))
    told = {name: item[name] for name in ("type", "queue", "error_type", "error_message", "fingerprint", "resolved_at")}
    assert told == {
        "type": "test.a", "queue": "reports", "error_type": "ValueError", "error_message": "no", "fingerprint": "f1",
        "resolved_at": None,
    }  # fmt: skip


def test_pages_give_each_letter_once_newest_first_also_of_one_instant(api):
    letters = [str(letter) for _job, letter in made(23, created_at=ago(60))] + [str(letter) for _, letter in made(4)]
    assert paged(api, "page_size=5") == letters[::-1]


@pytest.mark.parametrize(
    ("query", "kept"), [("type=test.b", "type"), ("queue=other", "queue"), ("fingerprint=f2", "f")]
)
def test_letters_are_filtered(api, query, kept):
    made(3)
    wanted = made(2, type="test.b", queue="other", fingerprint="f2")
    made(3)
    assert sorted(paged(api, query)) == sorted(str(letter) for _job, letter in wanted)


def test_the_pending_ones_are_those_nobody_has_dealt_with(api):
    (first, second, third) = made(3)
    api.post(f"{LETTERS}/{first[1]}/requeue")
    api.delete(f"{LETTERS}/{second[1]}")
    assert paged(api, "pending=true") == [str(third[1])]
    assert paged(api, "pending=false") == [str(second[1]), str(first[1])]
    assert len(paged(api)) == 3


def test_a_rare_one_is_found_behind_many_others_by_pages_that_stay_cheap(api, monkeypatch):
    monkeypatch.setattr(letterlist, "LOOKED_AT", 4)
    ((_job, rare),) = made(type="test.rare")
    made(10)
    page = api.get(f"{LETTERS}?type=test.rare").json
    assert page["items"] == []
    assert page["next_cursor"] is not None
    assert paged(api, "type=test.rare") == [str(rare)]


def test_requeueing_runs_the_job_again(api):
    ((job, letter),) = made()
    answer = api.post(f"{LETTERS}/{letter}/requeue")
    assert answer.json == {"id": str(letter), "state": "Enqueued", "resolved_how": "requeued"}
    assert rows.state(job) == "Enqueued"
    assert rows.select("SELECT resolved_by FROM turno.dead_letters")[0]["resolved_by"] == "key"
    assert api.post(f"{LETTERS}/{letter}/requeue").problem(409)["reason"] == "resolved"


def test_discarding_leaves_the_job_failed(api):
    ((job, letter),) = made()
    assert api.delete(f"{LETTERS}/{letter}").status == 204
    assert rows.state(job) == "Failed"
    assert api.delete(f"{LETTERS}/{letter}").problem(409)["reason"] == "resolved"


def test_a_letter_that_is_not_there_is_a_404(api):
    api.post(f"{LETTERS}/{uuid4()}/requeue").problem(404)
    api.delete(f"{LETTERS}/{uuid4()}").problem(404)


@pytest.mark.parametrize(
    ("act", "how", "state"), [("requeue", "requeued", "Enqueued"), ("discard", "discarded", "Failed")]
)
def test_a_whole_cause_is_dealt_with_at_once(api, act, how, state):
    cause, others = made(4, fingerprint="bad"), made(2)
    dry = api.post(f"{LETTERS}/bulk/{act}", {"filter": {"fingerprint": "bad"}, "dry_run": True}).json
    assert dry["count"] == 4
    answer = api.post(f"{LETTERS}/bulk/{act}", {"filter": {"fingerprint": "bad"}})
    assert answer.status == 202
    run = bulk.wait(bulk.get(answer.json["id"]).id, 20)
    assert (run.state, run.applied) == ("done", 4)
    resolved = rows.select("SELECT id, resolved_how FROM turno.dead_letters WHERE resolved_at IS NOT NULL")
    assert {row["id"] for row in resolved} == {letter for _job, letter in cause}
    assert {row["resolved_how"] for row in resolved} == {how}
    assert {rows.state(job) for job, _ in cause} == {state}
    assert {rows.state(job) for job, _ in others} == {"Failed"}


def test_named_ones_are_dealt_with_at_once(api):
    (first, second) = made(2)
    answer = api.post(f"{LETTERS}/bulk/discard", {"ids": [str(first[1]), str(uuid4())]})
    run = bulk.wait(bulk.get(answer.json["id"]).id, 20)
    assert (run.applied, run.skipped) == (1, {"not_found": 1})
    assert paged(api, "pending=true") == [str(second[1])]


@pytest.mark.parametrize(
    "query",
    ["pending=maybe", "type=%00", "type=A!", "cursor=x", f"cursor={'9' * 17}-{'g' * 32}", "page_size=0",
     "page_size=201",
     "strange=1", "type=a&type=b", "fingerprint="],
)  # fmt: skip
def test_a_strange_question_is_refused(api, query):
    api.get(f"{LETTERS}?{query}").problem(400)


@pytest.mark.parametrize("cursor", [f"0-{'0' * 32}", f"{'9' * 17}-{'f' * 32}"])
def test_any_cursor_of_the_right_form_is_a_place(api, cursor):
    made(2)
    assert api.get(f"{LETTERS}?cursor={cursor}").status == 200


def test_no_page_scans_the_table(api):
    rows.execute(
        "INSERT INTO turno.jobs (id, type, queue, payload, state, finished_at, failure_kind)"
        " SELECT gen_random_uuid(), 'test.any', 'default', '{}', 'Failed', now(), 'error'"
        " FROM generate_series(1, 60000)"
    )
    rows.execute(
        "INSERT INTO turno.dead_letters (id, job_id, type, queue, failure_kind, fingerprint, attempts, created_at,"
        " resolved_at, resolved_how) SELECT gen_random_uuid(), id, type, queue, 'error', 'f' || left(id::text, 2), 1,"
        " now() - random() * interval '30 d', now(), 'discarded' FROM turno.jobs"
    )
    made(3)
    rows.execute("ANALYZE turno.dead_letters")
    wanted = {"pending": None, "at": None, "id": None, "looked": letterlist.LOOKED_AT, "size": 51, "type": None,
              "queue": None, "fingerprint": None, "search": None}  # fmt: skip
    for asked in ({}, {"pending": True}, {"pending": False}, {"type": "test.rare"}, {"fingerprint": "f00"}):
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN " + letterlist.KEYS, wanted | asked)
            plan = "\n".join(line for (line,) in cursor.fetchall())
        assert "Seq Scan on dead_letters" not in plan, (asked, plan)
