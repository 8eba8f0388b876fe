"""The workers' screen: who is alive, leaving or gone, what each one holds, and rows that keep their places."""

import json
import re
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.test import Client

from dashboard import shared
from tests.api.client import KEY
from tests.transitions import rows
from tests.transitions.rows import ago, ahead

pytestmark = pytest.mark.django_db
INSERT = """
INSERT INTO turno.workers (id, name, host, boot_id, pid_namespace, pid, pid_started, version, queues, state, seen_at,
    started_at, problems)
VALUES (%s, %s, 'vm-a1', %s, 'n', 4242, '1', '1.4.0', %s, %s, now() - %s * interval '1 second',
    now() - interval '6 hours 12 minutes', %s)
"""


def worker(name, state="Online", seen=1.0, problems=(), **queues):
    id_ = uuid4()
    slots = json.dumps(queues or {"default": 4})
    rows.execute(INSERT, id_, name, id_.hex, slots, state, seen, json.dumps(list(problems)))
    return id_


@pytest.fixture
def browser():
    cache.clear()
    shared.forget()
    client = Client(headers={"Accept": "text/html", "Accept-Language": "en"})
    client.post("/entrar", {"chave": KEY})
    return client


def get(browser, path="/painel/workers"):
    shared.forget()
    response = browser.get(path)
    return response.status_code, response.content.decode()


def names(html):
    return re.findall(r'<strong><a class="plain" href="[^"]+">([^<]+)</a></strong>', html)


def part_of(html):
    return re.search(r'hx-get="(/painel/partes/workers[^"]*)"', html)[1].replace("&amp;", "&")


def test_an_empty_house_says_how_to_start_a_worker(browser):
    status, html = get(browser)
    assert status == 200
    assert "No workers online" in html
    assert "runworker" in html


def test_those_that_need_a_person_come_first_then_by_name(browser):
    worker("b")
    worker("a")
    worker("leaving", state="Draining")
    worker("silent", seen=30)
    worker("stopped", state="Offline")
    _, html = get(browser)
    assert names(html) == ["silent", "leaving", "a", "b"]
    assert "1 worker stopped in the last day" in html
    assert "2 online, 1 draining, 1 without a heartbeat" in re.sub(r"\s+", " ", html)


def test_rows_keep_their_places_whatever_becomes_of_their_workers_and_new_ones_are_counted(browser):
    first = worker("a")
    worker("b")
    _, html = get(browser)
    rows.execute("UPDATE turno.workers SET seen_at = now() - interval '30 seconds' WHERE name = 'b'")
    rows.execute("UPDATE turno.workers SET state = 'Offline' WHERE id = %s", first)
    worker("0-new")
    path = part_of(html)
    _, html = get(browser, path)
    assert names(html) == ["a", "b"]
    assert "1 new worker" in html
    assert part_of(html) == path
    _, html = get(browser)
    assert names(html) == ["b", "0-new"]


def test_a_page_that_was_empty_stays_so_and_counts_the_new_ones(browser):
    _, html = get(browser)
    worker("a")
    _, html = get(browser, part_of(html))
    assert names(html) == []
    assert "1 new worker" in html


@pytest.mark.parametrize(
    ("query", "found"),
    [("estado=online", ["a"]), ("estado=drenando", ["leaving"]), ("estado=sem-sinal", ["silent"]),
     ("estado=encerrados", ["stopped"]), ("busca=LEAV", ["leaving"]),
     ("busca=vm-a1%3A4242", ["silent", "leaving", "a"]),
     ("busca=reports", ["a"]), ("busca=1.4.0&estado=online", ["a"]), ("estado=nonsense", ["silent", "leaving", "a"])],
)  # fmt: skip
def test_the_list_is_filtered_by_state_and_text(browser, query, found):
    worker("a", reports=2)
    worker("leaving", state="Draining")
    worker("silent", seen=30)
    worker("stopped", state="Offline")
    assert names(get(browser, f"/painel/workers?{query}")[1]) == found


def test_a_search_without_a_find_says_so(browser):
    worker("a")
    assert "No worker matches this search" in get(browser, "/painel/workers?busca=zzz")[1]


def test_slots_show_what_runs_and_what_takes_no_work(browser):
    id_ = worker("a", default=3, reports=1)
    for slot, progress in ((1, 45), (2, 0)):
        rows.make_job("Processing", worker=id_, slot=slot, progress=progress, stage=f"stage {slot}")
    rows.execute("INSERT INTO turno.pauses (scope, value) VALUES ('queue', 'reports')")
    _, html = get(browser)
    cells = re.findall(r'<i class="(c(?: gap)?)"(?: data-p="(\w+)")?(?: data-s="(\w+)")?></i>', html)
    assert cells == [("c", "4", ""), ("c", "x", ""), ("c", "", ""), ("c gap", "", "shut")]
    for said in ("2 of 4", "default 3", "reports 1 (paused)", "stage 1", "stage 2", "test.echo", "6 h 12 min"):
        assert said in html


def test_what_becomes_of_a_silent_ones_jobs_is_said(browser):
    id_ = worker("silent", seen=30)
    rows.make_job("Processing", worker=id_, lease_expires_at=ahead(12))
    _, html = get(browser)
    assert "1 job back to the queue in" in html
    assert 'data-s="lost"' in html
    assert re.search(r'data-until="2[67]"', html)


def test_jobs_of_a_worker_whose_row_is_gone_are_told(browser):
    rows.make_job("Processing", type="boletos.gerar")
    _, html = get(browser)
    assert "1 running job of a worker that is not registered any more:" in html
    assert "boletos.gerar" in html


def test_the_last_hour_is_counted_by_worker(browser):
    id_ = worker("a")
    rows.execute(
        "INSERT INTO turno.metrics_minute (minute, worker_id, queue, type, succeeded, failed, durations) "
        "VALUES (date_trunc('minute', now()), %s, 'default', 'x', 371, 12, '{0}')",
        id_,
    )
    _, html = get(browser)
    assert ">371<" in html
    assert ">12<" in html


def test_problems_are_shown_literally_with_file_and_line(browser):
    evil = "<script>x</script>"
    problems = [
        {"handler": "a.slow", "job": "j-1", "error": "asked to stop & runs on", "at": "tasks.py:12 wait"},
        {"module": "shop.tasks", "error": evil},
        "something of a later version",
    ]
    worker(evil, problems=problems)
    _, html = get(browser)
    for said in ("tasks.py:12 wait", "asked to stop &amp; runs on", "shop.tasks", "2 problems"):
        assert said in html
    assert evil not in html


def test_one_worker_has_a_page_of_its_own(browser):
    id_ = worker("a")
    made = rows.make_job("Processing", worker=id_, stage="half of it", claimed_at=ago(10))
    status, html = get(browser, f"/painel/workers/{id_}")
    assert status == 200
    for said in ("half of it", f"/painel/tarefas/{made.id}", "vm-a1:4242", "1 of 4"):
        assert said in html
    assert get(browser, f"/painel/partes/workers/{id_}")[0] == 200


def test_a_worker_that_is_gone_has_a_page_that_says_so(browser):
    status, html = get(browser, f"/painel/workers/{uuid4()}")
    assert status == 404
    assert "There is no such worker, or not any more" in html
    assert "This worker" in get(browser, f"/painel/partes/workers/{uuid4()}")[1]


def test_strange_orders_harm_nothing(browser):
    worker("a")
    for order in ("-", "....", "x" * 9000, "é"):
        assert get(browser, f"/painel/partes/workers?ordem={order}")[0] == 200


def test_nothing_new_is_answered_so(browser):
    worker("a")
    _, html = get(browser)
    first = browser.get(part_of(html))
    again = browser.get(part_of(html), headers={"X-Turno-Seen": first["X-Turno-Seen"]})
    assert again.status_code == 204


def test_the_page_costs_the_same_queries_however_many_workers(browser, django_assert_max_num_queries):
    for n in range(60):
        worker(f"w-{n}")
    with django_assert_max_num_queries(20):
        get(browser)
