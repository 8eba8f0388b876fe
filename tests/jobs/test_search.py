"""What a filter finds: every kind of search, walked within a time, counted within a time."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db.models import TextField
from django.db.models.expressions import RawSQL
from pydantic import BaseModel, SecretStr

from jobs import queries
from jobs.ids import new_id
from jobs.models import Job
from jobs.queries import NEWEST, OLDEST, JobFilter, payloadtext
from jobs.queries.bounded import TooSlow, counted, within
from jobs.queries.joblist import job_list
from jobs.registry import catalogue
from jobs.states import State
from tests.queries.house import letter
from tests.transitions import rows

pytestmark = pytest.mark.django_db


def made(state="Succeeded", **columns) -> UUID:
    return rows.make_job(state, **({"id": new_id()} | columns)).id


def found(**wanted) -> list[UUID]:
    walked = queries.walk(JobFilter(**wanted), seconds=20)
    assert walked.done
    return walked.ids


def by_payload(text: str, payload: object) -> bool:
    id_ = made(payload=payload)
    return id_ in found(text=text)


@pytest.mark.parametrize(
    "text",
    [
        "lote=7", "LOTE=7", "lote=7 competencia=2026", "nome=Ana Maria", "ana maria", "Ação", "AÇÃO", "ação",
        "100%", "a_b", r"C:\temp", 'disse "sim"', '"lote": 7', "nome=ana", "fundo", "😀", "linha um", "true",
    ],
)  # fmt: skip
def test_a_text_is_found_as_people_see_it_in_the_payload(text):
    payload = {
        "lote": 7, "competencia": "2026-10", "nome": "Ana Maria", "o que": "Ação", "taxa": "100%", "campo": "a_b",
        "pasta": r"C:\temp", "fala": 'ela disse "sim" e saiu', "dentro": {"mais": ["no fundo"]}, "rosto": "😀",
        "texto": "linha um", "ligado": True,
    }  # fmt: skip
    assert by_payload(text, payload)


@pytest.mark.parametrize(
    "text", ["lote=8", "100_", "a%b", "axb", "lote=7 nome=Bia", r"C:\\\\temp", "=7", "' OR 1=1 --"]
)
def test_a_text_that_the_payload_does_not_say_is_not_found(text):
    assert not by_payload(text, {"lote": 7, "nome": "Ana", "taxa": "100%", "campo": "a_b"})


def test_a_key_search_finds_ids_their_beginnings_types_queues_keys_and_tags():
    target = made(
        type="boletos.gerar", queue="fiscal", unique_key="boleto-42", idempotency_key="idem-1", route="r",
        request_hash="h", concurrency_key="cliente-9", concurrency_limit=1, tags=["lote-7"],
    )  # fmt: skip
    made()
    rows.execute("INSERT INTO turno.job_types (name) VALUES ('boletos.gerar')")
    text = str(target)
    for keys in (
        text, text.upper(), text[:9], text[:13].replace("-", ""), "boletos.gerar", "boletos", "bol", "fiscal",
        "boleto-42", "idem-1", "cliente-9", "lote-7",
    ):  # fmt: skip
        assert target in found(keys=keys), keys
    for keys in ("boleto-4", "idem", "%", "_", "zzz", text[:5]):
        assert target not in found(keys=keys), keys


def test_a_job_that_several_ways_lead_to_is_found_once():
    ids = [made(type="alpha", queue="alpha", unique_key=f"k-{n}", tags=["alpha"]) for n in range(7)]
    assert found(keys="alpha") == ids[::-1]
    assert queries.count(JobFilter(keys="alpha"), seconds=20) == queries.Count(7)


@pytest.mark.parametrize("order", [NEWEST, OLDEST])
@pytest.mark.parametrize("wanted", [JobFilter(), JobFilter(keys="alpha"), JobFilter(text="par"), JobFilter(priority=3)])
def test_pages_on_and_back_hold_each_job_once_in_order(order, wanted):
    ids = [
        made("Enqueued" if n % 3 else "Succeeded", queue="alpha", payload={"n": "par"}, priority=5) for n in range(23)
    ]
    ids = ids[::-1] if order == NEWEST else ids
    pages, at = [], None
    while True:
        page = job_list(wanted, order=order, at=at, size=5, seconds=20)
        pages.append(page.ids)
        at = page.older if order == NEWEST else page.newer
        if at is None:
            break
    assert [id_ for page in pages for id_ in page] == ids
    back = page.newer if order == NEWEST else page.older
    for expected in pages[-2::-1]:
        page = job_list(wanted, order=order, at=back, size=5, seconds=20)
        assert page.ids == expected
        back = page.newer if order == NEWEST else page.older
    assert back is None


def test_a_walk_whose_time_is_over_says_how_far_it_came_and_goes_on_from_there():
    rows.make_jobs(3000, State.SUCCEEDED, payload={"a": "x"}, id=rows.Sql("gen_random_uuid()"))
    every = set(Job.objects.values_list("id", flat=True))
    target = made(id=UUID(int=1), payload={"a": "needle"})
    wanted, after, seen, steps = JobFilter(text="needle"), None, 0, 0
    while True:
        walked = queries.walk(wanted, after=after, seconds=0.000_001)
        seen, steps = seen + walked.looked, steps + 1
        if walked.ids or walked.done:
            break
        assert walked.reach is not None
        assert after is None or walked.reach < after
        after = walked.reach
    assert walked.ids == [target]
    assert steps > 1
    assert seen <= len(every)
    page = job_list(wanted, seconds=0.000_001)
    assert not page.complete
    assert page.looked > 0
    assert page.reached is not None


def test_each_condition_narrows_the_list():
    now = queries.now()
    one = made("Processing", type="a.b", queue="q1", tags=["x"], priority=5, origin="loja", attempts_used=2)
    two = made("Failed", type="a.c", queue="q2", error_type="KeyError", finished_at=rows.ago(90_000), attempts_used=3)
    three = made("Scheduled", waiting_for="retry", run_at=rows.ahead(60), created_at=rows.ago(3000))
    four = made("Scheduled", waiting_for="concurrency_key", gate="k")
    five = made("Enqueued")
    assert found(worker="worker-1") == [one]
    assert found(attempts=3) == [two, one]  # the one that runs is at its third
    assert found(priority=5) == [one]
    assert found(origin="loja") == [one]
    assert found(error_type="KeyError") == [two]
    assert found(shown="Enqueued") == [five, four]
    assert found(shown="Scheduled") == [three]
    assert found(tag="x", type="a.b", queue="q1") == [one]
    assert found(created_to=now - timedelta(minutes=30)) == [three]
    assert found(shown="Failed", finished_from=now - timedelta(days=1)) == []
    assert found(shown="Failed", finished_from=now - timedelta(days=2)) == [two]
    assert found(recurring=uuid4()) == []


@pytest.mark.parametrize(
    "wanted", [JobFilter(), JobFilter(queue="default"), JobFilter(keys="default"), JobFilter(text="a")]
)
def test_each_tab_counts_what_its_list_shows(wanted):
    for number, state in enumerate(State, 1):
        rows.make_jobs(number, state, payload={"a": 1}, id=rows.Sql("gen_random_uuid()"))
    rows.make_jobs(9, State.SCHEDULED, waiting_for="rate", payload={"a": 1})
    counts = queries.tabs(wanted, seconds=20)
    assert queries.total(list(counts.values())) == queries.Count(Job.objects.count())
    for state, count in counts.items():
        shown = queries.walk(replace(wanted, shown=str(state)), seconds=20)
        assert count == queries.Count(len(shown.ids)), state
    assert counts[State.ENQUEUED].number == 2 + 9


def test_above_the_bound_a_count_is_an_estimate_and_without_time_it_is_none():
    rows.make_jobs(2000, State.SUCCEEDED)
    rows.execute("ANALYZE turno.jobs")
    assert queries.count(JobFilter(), most=100, seconds=20) == queries.Count(2000, estimated=True)
    sleeping = Job.objects.annotate(nap=RawSQL("pg_sleep(1)::text", [], TextField())).filter(nap="x")
    slow = [sleeping, Job.objects.filter(id=uuid4())]
    assert counted(slow, 10, 0.05) == [queries.Count(None), queries.Count(0)]
    assert queries.guess(JobFilter()) == queries.Count(2000, estimated=True)
    assert queries.guess(JobFilter(text="x")) == queries.Count(None)
    assert queries.guess(JobFilter(error_type="none")) == queries.Count(None)


def test_what_takes_too_long_is_cancelled_and_the_session_goes_on_as_before():
    before = rows.select("SELECT current_setting('statement_timeout') AS it")
    with pytest.raises(TooSlow), within(0.01):
        rows.execute("SELECT pg_sleep(5)")
    with within(5):
        assert rows.select("SELECT current_setting('statement_timeout') AS it")[0]["it"] == "5s"
    assert rows.select("SELECT current_setting('statement_timeout') AS it") == before
    assert counted([Job.objects.all()], 10, 5) == [queries.Count(0)]


def test_new_jobs_are_those_that_match_and_are_not_on_the_page():
    seen = [made("Enqueued") for _ in range(3)]
    floor = seen[0]
    made("Failed")
    parked = made("Scheduled", waiting_for="rate")
    wanted = JobFilter(shown="Enqueued")
    assert queries.newer(wanted, floor, seen, seconds=20) == 1
    assert queries.newer(wanted, floor, [*seen, parked], seconds=20) == 0
    assert queries.newer(JobFilter(), floor, seen, seconds=20) == 2


class _Login(BaseModel):
    user: str
    password: SecretStr


class _Hire(BaseModel):
    name: str
    pin: SecretStr
    login: _Login | None = None
    friends: list["_Hire"] = []


@pytest.fixture
def with_secrets(monkeypatch):
    """A registered type whose payload has secrets, on its first floor and below it."""
    catalogue.load()
    some = next(iter(catalogue._types.values()))
    monkeypatch.setattr(catalogue, "_types", {"people.hire": replace(some, name="people.hire", payload_model=_Hire)})
    return {"name": "Ana", "pin": "hunter2", "login": {"user": "ana.b", "password": "hunter3"}, "friends": None}


def test_secret_fields_are_neither_shown_nor_searched(with_secrets):
    id_ = made(type="people.hire", payload=with_secrets)
    for text in ("hunter2", "pin=hunter2", "hunter3"):
        assert found(text=text) == []
    assert found(text="name=ana") == [id_]
    (row,) = queries.rows([id_])
    assert dict(row["fields"]) == {"name": "Ana", "pin": None, "login": None, "friends": None}
    assert queries.payloads([id_]) == {id_: {"name": "Ana"}}


def test_a_letter_shows_no_secret_of_its_job(with_secrets):
    letter("f", type="people.hire", job=rows.make_job("Failed", type="people.hire", payload=with_secrets))
    said = queries.letters("f").items[0].preview
    assert "hunter" not in said
    assert f"pin={payloadtext.HIDDEN}" in said
    assert "name=Ana" in said


def test_rows_come_in_the_order_asked_for_with_ages_of_the_database():
    one = made("Processing", claimed_at=rows.ago(84), progress=62)
    two = made("Scheduled", waiting_for="retry", run_at=rows.ahead(14), payload=[1, 2])
    first, second = queries.rows([two, uuid4(), one])
    assert (first["id"], second["id"]) == (two, one)
    assert 13 <= first["due_in"] <= 14
    assert 84 <= second["elapsed"] < 90
    assert first["fields"] == []


def test_the_head_of_a_queue_and_a_paused_queue_are_known():
    head, tail = made("Enqueued", queue="a", enqueued_at=rows.ago(9)), made("Enqueued", queue="a")
    rows.execute("INSERT INTO turno.pauses (scope, value, reason) VALUES ('queue', 'a', 'x')")
    by_id = {row["id"]: row for row in queries.rows([head, tail])}
    assert (by_id[head]["first_in_queue"], by_id[tail]["first_in_queue"]) == (True, False)
    assert by_id[tail]["queue_paused"]
