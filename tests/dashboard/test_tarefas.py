"""The list of jobs as HTML: counts that are doors, rows, pages, what was looked through, files."""

import csv
import io
import json
import re

import pytest
from django.core.cache import cache
from django.test import Client

from dashboard import shared
from dashboard.views import export
from jobs import health, queries
from jobs.ids import new_id
from jobs.states import State
from tests.api.client import KEY
from tests.transitions import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(monkeypatch):
    monkeypatch.setattr("jobs.queries.counts.TIME", 20.0)  # a busy machine counts as well as an idle one
    cache.clear()
    health.forget()
    shared.forget()
    client = Client(headers={"Accept": "text/html", "Accept-Language": "en"})
    client.post("/entrar", {"chave": KEY})
    return client


def made(state="Succeeded", **columns):
    return rows.make_job(state, **({"id": new_id()} | columns)).id


def get(browser, query="", path="/painel/tarefas"):
    response = browser.get(f"{path}?{query}")
    assert response.status_code == 200
    return response.content.decode()


def listed(html):
    return re.findall(r'data-job="([0-9a-f-]+)"', html)


def counts(html):
    """The number in each tab, by its address."""
    tabs = re.findall(
        r'<a href="(/painel/tarefas[^"]*)"\s+id="aba-.*?<span class="count"[^>]*>([^<]*)</span>', html, re.S
    )
    return {address.replace("&amp;", "&"): int(number) for address, number in tabs}


@pytest.mark.parametrize("query", ["", "fila=default", "busca=default", "busca=alfa&em=payload", "prioridade=0"])
def test_every_count_is_a_door_to_a_list_of_that_length(browser, query):
    for number, state in enumerate(State, 1):
        rows.make_jobs(number, state, payload={"a": "alfa"}, id=rows.Sql("gen_random_uuid()"))
    rows.make_jobs(4, State.SCHEDULED, waiting_for="concurrency_key", gate="k", payload={"a": "alfa"})
    doors = counts(get(browser, query))
    assert len(doors) == 7
    for address, number in doors.items():
        assert len(listed(browser.get(address).content.decode())) == number, address


def test_parked_jobs_stand_among_the_queued_ones_with_their_reason(browser):
    parked = made("Scheduled", waiting_for="concurrency_key", gate="cliente-42")
    timed = made("Scheduled", waiting_for="retry", run_at=rows.ahead(14))
    html = get(browser, "estado=fila")
    assert listed(html) == [str(parked)]
    assert "cliente-42" in html
    assert listed(get(browser, "estado=agendada")) == [str(timed)]


def test_pages_lead_on_and_back_and_the_first_one_is_whole(browser):
    ids = [str(made()) for _ in range(120)][::-1]
    walked, html = [], get(browser)
    while True:
        walked += listed(html)
        older = re.search(r'href="/painel/tarefas\?([^"]+)" rel="next"', html)
        if not older:
            break
        html = get(browser, older[1].replace("&amp;", "&"))
    assert walked == ids
    newer = re.search(r'href="/painel/tarefas\?([^"]+)" rel="prev"', html)
    html = get(browser, newer[1])
    assert listed(html) == ids[50:100]
    back = browser.get("/painel/tarefas?" + re.search(r'\?([^"]+)" rel="prev"', html)[1], follow=True)
    assert listed(back.content.decode()) == ids[:50]


def test_a_date_leads_to_the_page_that_begins_there(browser):
    old, new = made(id=new_id(), created_at=rows.ago(0)), made()
    answer = browser.get("/painel/tarefas?estado=sucesso&ir=2099-01-01T00:00")
    assert answer.status_code == 302
    assert listed(browser.get(answer.url).content.decode()) == [str(new), str(old)]
    answer = browser.get("/painel/tarefas?ir=2001-01-01T00:00")
    assert listed(browser.get(answer.url).content.decode()) == []
    assert browser.get("/painel/tarefas?ir=nunca").url == "/painel/tarefas?"


def test_a_search_without_a_hit_among_keys_goes_on_in_the_payloads(browser):
    by_key, by_payload = made(unique_key="boleto-1"), made(payload={"nota": "boleto-2"})
    assert listed(get(browser, "busca=boleto-1")) == [str(by_key)]
    html = get(browser, "busca=boleto-2")
    assert listed(html) == [str(by_payload)]
    assert "Searched in the payloads." in html
    assert listed(get(browser, "busca=boleto-2&em=chaves")) == []


def test_a_search_that_ran_out_of_time_says_how_far_it_looked_and_goes_on(browser, monkeypatch):
    rows.make_jobs(1600, State.SUCCEEDED, id=rows.Sql("gen_random_uuid()"), payload={"a": "b"})
    short = queries.job_list
    monkeypatch.setattr(queries, "job_list", lambda *args, **more: short(*args, **more, seconds=0.000_001))
    html = get(browser, "busca=agulha")
    assert "Nothing found so far" in html
    assert "Searched the newest 500 jobs" in html
    onward = re.search(r'href="/painel/tarefas\?([^"]+)">Search further', html)[1].replace("&amp;", "&")
    assert "more jobs, back to" in get(browser, onward)


def test_an_empty_list_says_why(browser):
    assert "No jobs yet" in get(browser)
    made(type="boletos.gerar", created_at=rows.ago(40 * 60))
    rows.execute("INSERT INTO turno.job_types (name) VALUES ('boletos.gerar')")
    shared.forget()
    html = get(browser, "tipo=boletos.geral")
    assert "No jobs match these filters" in html
    assert "tipo=boletos.gerar" in html
    assert "Outside of this period there is 1." in get(browser, "periodo=15min")


def test_a_row_says_what_it_waits_for_how_it_failed_and_who_cancelled_it(browser):
    made("Failed", error_type="TimeoutError", attempts_used=5)
    made("Failed", failure_kind="permanent", error_type="KeyError")
    made("Cancelled", cancel_requested_by="user:ana")
    made("Processing", progress=62, stage="Somando")
    made("Processing", stage="Somando filiais")
    made("Scheduled", waiting_for="retry", run_at=rows.ahead(14))
    html = get(browser)
    for said in ("TimeoutError", "Permanent error", "by ana", "62%", "Somando filiais", "retry in", "5/5"):
        assert said in html, said


def test_rows_that_are_asked_for_come_as_they_are_now_and_a_deleted_one_says_so(browser):
    one, two = made(), made("Enqueued")
    rows.execute("DELETE FROM turno.jobs WHERE id = %s", one)
    html = get(browser, f"ids={two.hex},{one.hex},nonsense", "/painel/partes/tarefas/linhas")
    assert listed(html) == [str(two), str(one)]
    assert html.count("data-gone") == 1
    again = browser.get(
        f"/painel/partes/tarefas/linhas?ids={two.hex}",
        headers={"X-Turno-Seen": browser.get(f"/painel/partes/tarefas/linhas?ids={two.hex}")["X-Turno-Seen"]},
    )
    assert again.status_code == 204


def test_the_unfiltered_counts_are_made_once_for_all_viewers(browser, django_assert_max_num_queries):
    made()
    get(browser)
    with django_assert_max_num_queries(4):
        get(browser, path="/painel/partes/tarefas/abas")


def file(browser, query="", kind="csv"):
    return b"".join(browser.get(f"/painel/tarefas.{kind}?{query}")).decode("utf-8-sig")


def test_a_file_holds_all_that_match_and_no_formula(browser):
    for text in ("=1+1", "+1", "-1", "@x", "\tx", "fine"):
        made("Failed", error_message=text, origin=text, payload={"a": text})
    made("Enqueued")
    read = list(csv.DictReader(io.StringIO(file(browser, "estado=falha"))))
    assert len(read) == 6
    cells = {row["origin"] for row in read} | {row["error_message"] for row in read}
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t"))]
    assert "fine" in cells
    data = json.loads(file(browser, "estado=falha", "json"))
    assert data["complete"]
    assert {item["payload"]["a"] for item in data["items"]} == {"=1+1", "+1", "-1", "@x", "\tx", "fine"}


def test_a_file_walks_in_steps_and_says_when_there_is_more(browser, monkeypatch):
    ids = [str(made()) for _ in range(11)][::-1]
    monkeypatch.setattr(export, "STEP", 3)
    assert [row["id"] for row in csv.DictReader(io.StringIO(file(browser)))] == ids
    monkeypatch.setattr(export, "MOST", 7)
    read = list(csv.reader(io.StringIO(file(browser))))
    assert len(read) == 1 + 7 + 1
    assert "at most 7" in read[-1][0]
    data = json.loads(file(browser, kind="json"))
    assert (len(data["items"]), data["complete"]) == (7, False)


def test_the_list_and_its_files_are_behind_the_door(db):
    for path in ("/painel/tarefas", "/painel/tarefas.csv", "/painel/partes/tarefas/linhas"):
        answer = Client(headers={"Accept": "text/html"}).get(path)
        assert answer.status_code == 302
        assert answer.url.startswith("/entrar")
