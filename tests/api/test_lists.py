"""GET /api/jobs: filters, search, order, pages."""

from datetime import UTC, datetime, timedelta
from urllib.parse import quote
from uuid import uuid4

import pytest

from jobs.ids import new_id
from tests.transitions import rows

pytestmark = pytest.mark.django_db


def listed(api, query=""):
    answer = api.get(f"/api/jobs{query}")
    assert answer.status == 200, answer.json
    return [item["id"] for item in answer.json["items"]]


def made(state="Enqueued", **columns):
    return str(rows.make_job(state, **({"id": new_id()} | columns)).id)


def test_an_empty_table_is_an_empty_page(api):
    assert api.get("/api/jobs").json == {"items": [], "next_cursor": None, "page": 1, "page_size": 50}


def test_the_newest_stands_first_unless_asked_otherwise(api):
    ids = [made() for _ in range(5)]
    assert listed(api) == ids[::-1]
    assert listed(api, "?order=-created") == ids[::-1]
    assert listed(api, "?order=created") == ids


def test_each_filter_narrows_the_list(api):
    one = made(type="a.b", queue="q1", tags=["x", "y"])
    two = made("Failed", type="a.c", queue="q2", tags=["y"])
    assert listed(api, "?type=a.b") == [one]
    assert listed(api, "?queue=q2") == [two]
    assert listed(api, "?state=Failed") == [two]
    assert listed(api, "?tag=y") == [two, one]
    assert listed(api, "?tag=x&state=Enqueued&type=a.b&queue=q1") == [one]
    assert listed(api, "?tag=x&state=Failed") == []


def test_instants_bound_the_list(api):
    old, new = made(created_at=rows.ago(7200)), made(created_at=rows.ago(60))
    hour = datetime.now(UTC) - timedelta(hours=1)
    for text in (hour.isoformat(), hour.isoformat().replace("+00:00", "Z"), hour.isoformat().replace("+", " ")):
        assert listed(api, f"?created_from={quote(text, safe=' ')}".replace(" ", "%20")) == [new]
        assert listed(api, f"?created_to={quote(text)}") == [old]
    assert listed(api, f"?created_from={quote('0001-01-01T00:00:00+14:00')}") == [new, old]
    assert listed(api, f"?created_to={quote('9999-12-31T23:59:59-14:00')}") == [new, old]
    assert listed(api, f"?created_from={quote('2020-01-01T00:00:00-23:59')}") == [new, old]


def test_search_finds_an_id_or_exactly_a_type_a_queue_or_a_unique_key(api):
    by_type, by_queue = made(type="alpha"), made(queue="alpha")
    by_key = made(unique_key="boleto 42%")
    both = made(type="alpha", queue="alpha")
    assert listed(api, "?search=alpha") == [both, by_queue, by_type]
    assert listed(api, f"?search={quote('boleto 42%')}") == [by_key]
    assert listed(api, f"?search={by_key}") == [by_key]
    assert listed(api, f"?search={by_key.upper()}") == [by_key]
    assert listed(api, "?search=alph") == []


@pytest.mark.parametrize("text", ["%", "_", "\\", "'", "(", "a%b", "😀", "' OR 1=1 --", "%25", "a_b"])
def test_search_takes_every_sign_literally(api, text):
    made(unique_key=text)
    made(unique_key="axb")
    assert len(listed(api, f"?search={quote(text)}")) == 1


def test_pages_of_a_search_hold_each_job_once(api):
    ids = [made(type="alpha" if n % 2 else "beta", queue="alpha") for n in range(25)]
    found, cursor = [], ""
    while cursor is not None:
        page = api.get(f"/api/jobs?search=alpha&page_size=10{cursor}").json
        found += [item["id"] for item in page["items"]]
        cursor = f"&cursor={page['next_cursor']}" if page["next_cursor"] else None
    assert found == ids[::-1]
    assert listed(api, "?search=alpha&page_size=10&page=3") == ids[:5][::-1]


@pytest.mark.parametrize("order", ["created", "-created"])
def test_walking_by_cursor_gives_each_job_once_while_jobs_are_added(api, order):
    rows.make_jobs(230, created_at=rows.Sql("date_trunc('hour', now())"))
    ids = {str(row["id"]) for row in rows.select("SELECT id FROM turno.jobs")}
    found, query = [], f"?page_size=50&order={order}"
    while query:
        page = api.get(f"/api/jobs{query}").json
        found += [item["id"] for item in page["items"]]
        made()
        query = f"?page_size=50&cursor={page['next_cursor']}" if page["next_cursor"] else ""
    walked = [id_ for id_ in found if id_ in ids]
    assert len(found) == len(set(found))
    assert set(walked) == ids


def test_pages_by_number_hold_each_job_once_and_end(api):
    ids = [made() for _ in range(7)]
    pages = [listed(api, f"?page={number}&page_size=3") for number in (1, 2, 3, 4)]
    assert [id_ for page in pages for id_ in page] == ids[::-1]
    assert pages[3] == []
    assert api.get("/api/jobs?page=3&page_size=3").json["next_cursor"] is None


def test_a_page_by_number_leads_on_by_cursor(api):
    ids = [made() for _ in range(7)]
    page = api.get("/api/jobs?page=2&page_size=2").json
    assert listed(api, f"?cursor={page['next_cursor']}") == ids[:3][::-1]


@pytest.mark.parametrize(
    "query",
    [
        "page=0", "page=-1", "page=1.5", "page=abc", "page=", "page=201", "page=999999999999999999",
        "page=9223372036854775807", f"page={10**30}", "page=%00", "page=1&page=2", "page_size=0", "page_size=-1",
        "page_size=201", "page_size=1000000", "cursor=x", "cursor=", f"cursor=n{'z' * 32}", f"cursor=n{'0' * 31}",
        f"cursor=n{'0' * 33}", "cursor=%00", "state=Nope", "state=", "state=enqueued", "type=%00", "type=A",
        "queue=%00", "queue=%C3%A7", "search=%00", "search=a%00b", "search=", f"search={'x' * 10_000}",
        "tag=%00", "order=random",
        "created_from=yesterday", "created_from=5", "created_to=2026-01-01T00:00:00", "stat=Failed", "q=a%00b",
        "status=%00", "state[]=Failed", "x",
    ],
)  # fmt: skip
def test_a_wrong_parameter_is_a_400(api, query):
    api.get(f"/api/jobs?{query}").problem(400)


def test_a_misspelt_parameter_is_told_the_right_name(api):
    errors = api.get("/api/jobs?stat=Failed").problem(400)["errors"]
    assert "state" in errors["stat"][0]


def test_a_row_says_who_runs_it_and_what_it_waits_for(api):
    made("Processing", worker=uuid4(), stage="Somando", progress=40)
    made("Scheduled", waiting_for="concurrency_key", gate="k")
    parked, running = api.get("/api/jobs").json["items"]
    assert (running["worker"]["name"], running["stage"], running["progress"]) == ("worker-1", "Somando", 40)
    assert (parked["waiting_for"], parked["gate"], parked["run_at"], parked["worker"]) == (
        "concurrency_key", "k", None, None,
    )  # fmt: skip


def test_a_page_costs_one_query_however_many_jobs_it_holds(api, django_assert_num_queries):
    rows.make_jobs(60)
    with django_assert_num_queries(1):
        listed(api, "?page_size=50")
