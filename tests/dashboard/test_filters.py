"""The list's address: what it says becomes a filter and back, and no query string whatever breaks the page."""

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlencode

import pytest
from django.core.cache import cache
from django.http import QueryDict
from django.test import Client
from django.utils import timezone
from django.utils.html import escape
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard import filters
from dashboard.filters import NAMES, STATES, WAITS, WINDOWS, job_filter, parse
from dashboard.listpage import WAIT_WORDS
from jobs import health
from jobs.errors import Invalid
from jobs.queries import OLDEST, JobFilter
from jobs.states import PARKED, Waiting
from tests.api.client import KEY
from tests.transitions import rows

AS_OF = datetime(2026, 10, 14, 17, 30, tzinfo=UTC)
ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
HOSTILE = st.sampled_from(
    [
        "", " ", "\0", "a\0b", "%", "_", "\\", "'", '"', "' OR 1=1 --", "0" * 300, "9" * 30, "-1", "1e9", "٣", "é",
        "😀", "<script>", "0001-01-01T00:00", "9999-12-31T23:59", "2026-13-01", "2026-01-01T00:00+99:00", "nan",
        "0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00", "n" + "0" * 32, "o" + "f" * 32, "x" * 33, "{}", "a=b=c",
        "=", "a=", "=a", "a=b c=d", "00000000-0000-0000-0000-000000000000", "2026-10-25T02:30", "12345678",
    ]
)  # fmt: skip
SENSIBLE = {
    "estado": st.sampled_from(list(STATES)),
    "periodo": st.sampled_from(list(WINDOWS)),
    "terminou": st.sampled_from(list(WINDOWS)),
    "tipo": st.from_regex(r"[a-z0-9._-]{1,20}", fullmatch=True),
    "fila": st.from_regex(r"[a-z0-9._-]{1,20}", fullmatch=True),
    "busca": st.from_regex(r"[a-z=%_\\ ]{1,20}", fullmatch=True),
    "tentativas": st.integers(0, 100).map(str),
    "prioridade": st.integers(-10, 10).map(str),
    "recorrente": st.uuids().map(str),
    "espera": st.sampled_from(list(WAITS)),
    "chave": st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20),
    "ordem": st.just("antigas"),
}
PARAMETERS = st.dictionaries(st.sampled_from([*NAMES, "ir", "desde", "vistas", "ids", "x"]), ANYTHING | HOSTILE)


@pytest.fixture
def browser(db):
    cache.clear()
    health.forget()
    client = Client(headers={"Accept": "text/html", "Accept-Language": "en"}, raise_request_exception=True)
    client.post("/entrar", {"chave": KEY})
    return client


@given(PARAMETERS)
def test_any_query_string_is_understood_or_told_what_is_wrong(parameters):
    asked = parse(urlencode(parameters), AS_OF)
    assert set(asked.errors) <= set(NAMES)
    assert not set(asked.errors) & set(asked.values)
    assert all(asked.errors.values())


@given(st.fixed_dictionaries({}, optional=SENSIBLE))
def test_what_makes_sense_comes_back_as_it_was_asked(parameters):
    asked = parse(urlencode(parameters), AS_OF)
    assert asked.errors == {}
    again = parse(asked.query(), AS_OF)
    assert (again.filter, again.order, again.values) == (asked.filter, asked.order, asked.values)
    assert job_filter(asked.query(), AS_OF).shown == asked.filter.shown


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(parameters=PARAMETERS)
def test_no_query_string_whatever_breaks_the_page_or_its_parts(browser, parameters):
    query = urlencode(parameters)
    # 400: the house refuses what no address may hold (NUL), before any page.
    refused = "%00" in query
    assert browser.get(f"/painel/tarefas?{query}", follow=True).status_code == (400 if refused else 200)
    for part in ("abas", "novas", "linhas", "quantas"):
        assert browser.get(f"/painel/partes/tarefas/{part}?{query}").status_code in ({400} if refused else {200, 204})
    if not refused:
        assert b"".join(browser.get(f"/painel/tarefas.json?{query}")).startswith(b'{"items": [')


def test_every_field_of_the_filter_but_those_of_the_api_can_be_asked_for():
    asked = parse(
        "estado=falha&tipo=a&fila=b&etiqueta=c&busca=d&de=2026-10-01T00:00&ate=2026-10-02T00:00&terminou=1h&worker=w"
        "&tentativas=2&prioridade=3&erro=E&origem=o&recorrente=00000000-0000-0000-0000-000000000001&ordem=antigas"
        "&espera=chave&chave=k",
        AS_OF,
    )
    assert asked.errors == {}
    empty = {field.name for field in fields(JobFilter) if getattr(asked.filter, field.name) is None}
    assert empty == {"state", "search", "text"}
    assert asked.order == OLDEST


def test_windows_end_now_and_instants_are_in_the_viewers_zone():
    with timezone.override("America/Sao_Paulo"):
        assert parse("periodo=24h", AS_OF).filter.created_from == AS_OF - timedelta(days=1)
        start = parse("de=2026-10-14T10:00&periodo=24h", AS_OF)
    assert start.filter.created_from == datetime(2026, 10, 14, 13, 0, tzinfo=UTC)
    assert "periodo" not in start.values


def test_a_search_looks_among_keys_or_in_payloads():
    assert parse("busca=a&em=chaves", AS_OF).filter.keys == "a"
    assert parse("busca=a&em=payload", AS_OF).filter.text == "a"
    assert parse("em=payload", AS_OF).values == {}


@pytest.mark.parametrize(
    "query",
    ["estado=Failed", "tipo=A B", "periodo=2h", "de=ontem", "tentativas=-1", "tentativas=101", "prioridade=11",
     "prioridade=1.5", "recorrente=1", "espera=concurrency_key", "de=2026-10-02T00:00&ate=2026-10-01T00:00",
     "busca=" + "x" * 201],
)  # fmt: skip
def test_what_makes_no_sense_is_said_beside_its_field_and_no_act_is_taken_on_it(query, browser):
    name = list(parse_qs(query))[-1] if "ate" in query else query.split("=")[0]
    asked = parse(query, AS_OF)
    assert list(asked.errors) == [name]
    html = browser.get(f"/painel/tarefas?{query}").content.decode()
    assert f'id="e-{name}"' in html
    with pytest.raises(Invalid):
        job_filter(query, AS_OF)


def test_an_act_over_all_that_match_meets_no_job_that_came_later():
    assert job_filter("estado=falha", AS_OF).created_to == AS_OF
    wanted = job_filter("periodo=1h&ate=", AS_OF)
    assert (wanted.created_from, wanted.created_to) == (AS_OF - timedelta(hours=1), AS_OF)
    assert job_filter("ate=2026-10-01T00:00", AS_OF).created_to < AS_OF


def test_links_change_one_thing_and_leave_the_page_behind():
    asked = parse(QueryDict("estado=falha&tipo=a&cursor=n" + "0" * 32), AS_OF)
    assert asked.cursor is not None
    assert asked.query() == "estado=falha&tipo=a"
    assert asked.query(estado=None) == "tipo=a"
    assert asked.query(estado="fila", ordem="antigas") == "estado=fila&tipo=a&ordem=antigas"
    assert parse("ordem=antigas&tipo=a", AS_OF).key == "tipo=a"
    assert filters.first_after(AS_OF, OLDEST) == AS_OF


@pytest.mark.parametrize("waiting", Waiting)
def test_whatever_a_job_waits_for_can_be_asked_for_and_has_words(waiting, browser):
    name = next(name for name, value in WAITS.items() if value is waiting)
    parked = waiting in PARKED
    made = rows.make_job("Scheduled", waiting_for=str(waiting), gate="k" if parked else None)
    rows.make_job("Scheduled", waiting_for="due" if waiting is not Waiting.DUE else "retry")
    rows.make_job()
    html = browser.get(f"/painel/tarefas?espera={name}").content.decode()
    assert f"j-{made.id}" in html
    assert html.count('id="j-') == 1
    assert escape(str(WAIT_WORDS[name])) in html
    tab = "fila" if parked else "agendada"
    assert browser.get(f"/painel/tarefas?estado={tab}&espera={name}").content.decode().count('id="j-') == 1
    other = browser.get(f"/painel/tarefas?estado=falha&espera={name}")
    assert 'id="j-' not in other.content.decode()


def test_who_waits_for_a_key_is_told_from_who_has_it(browser):
    columns = {"concurrency_key": "crm", "concurrency_limit": 1}
    waits = rows.make_job("Scheduled", waiting_for="concurrency_key", gate="crm", **columns)
    runs = rows.make_job("Processing", **columns)
    rows.make_job("Scheduled", waiting_for="concurrency_key", gate="erp", concurrency_key="erp", concurrency_limit=1)
    html = browser.get("/painel/tarefas?chave=crm").content.decode()
    assert {f"j-{made.id}" in html for made in (waits, runs)} == {True}
    assert html.count('id="j-') == 2
    html = browser.get("/painel/tarefas?estado=fila&espera=chave&chave=crm").content.decode()
    assert html.count('id="j-') == 1
    assert f"j-{waits.id}" in html
