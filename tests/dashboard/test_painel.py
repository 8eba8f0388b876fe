"""The landing screen: verdict, indicators, attention, chart, board; and what it says when there is nothing, or no
database."""

import re

import pytest
from django.test import Client

from dashboard import shared
from jobs import health
from tests.dashboard.boards import make_worker
from tests.dashboard.pages import signed_in, text
from tests.transitions import rows

pytestmark = pytest.mark.django_db
EVIL = "<script>window.__x=1</script><img src=x onerror=window.__x=2>"


@pytest.fixture
def browser():
    with signed_in() as client:
        yield client


def page(browser, address="/painel/"):
    response = browser.get(address)
    return response.status_code, response.content.decode()


def region(html, id_):
    """A region of the page by its id, up to the end of its element's own tag or beyond."""
    return html[html.index(f'id="{id_}"') :]


def test_an_empty_house_says_what_to_do(browser):
    status, html = page(browser)
    assert status == 200
    assert "No worker online: nothing runs" in html
    assert "python manage.py runworker" in html
    assert "./iniciar.sh" in html
    assert "curl -s" in html
    assert "/docs" in html
    assert "No runs in the last hour" in html


def test_what_to_try_leaves_when_there_are_jobs(browser):
    rows.make_job("Cancelled")
    assert "curl -s" not in page(browser)[1]


def test_all_is_good_when_nothing_needs_a_person(browser):
    make_worker()
    _, html = page(browser)
    assert "All good" in text(region(html, "veredito"))[:200]
    assert "Nothing needs a person now." in html


def test_a_worker_without_a_heartbeat_is_the_verdict_and_leads_to_it(browser):
    id_ = make_worker("worker-05", seen_ago=48)
    make_worker("worker-06")
    make_worker("worker-07", state="Draining")
    rows.make_job("Processing", worker=id_, lease_expires_at=rows.ahead(20))
    _, html = page(browser)
    assert "1 worker without a heartbeat, 1 draining" in html
    assert re.search(r"worker-05 without a heartbeat for <time data-since=\"4\d\">", html)
    assert "1 job goes back to the queue in" in html
    assert f'href="/painel/workers/{id_}"' in html


def test_several_things_are_counted(browser):
    make_worker(seen_ago=48)
    make_worker("worker-8")
    rows.make_job("Enqueued", queue="orphan", enqueued_at=rows.ago(60))
    rows.execute(
        "INSERT INTO turno.pauses (scope, value, reason, paused_by) VALUES ('queue', 'reports', %s, 'ana')", EVIL
    )
    _, html = page(browser)
    assert "3 need attention" in html
    assert "No worker serves the queue orphan" in html
    assert "Queue reports paused" in html
    assert "<script>window" not in html


def test_breakers_say_why_they_opened_who_waits_and_what_comes_next(browser):
    make_worker()
    rows.execute(
        "INSERT INTO turno.circuits (type, state, opened_at, retry_at, executions, failures) VALUES"
        f" ('integration.sync', 'open', {rows.ago(12)}, {rows.ahead(1000)}, 20, 12),"
        f" ('report.generate', 'open', {rows.ago(90)}, {rows.ago(1)}, 10, 10)"
    )
    tried = rows.make_job("Enqueued", type="file.process")
    rows.execute(
        "INSERT INTO turno.circuits (type, state, opened_at, probe_job_id, probe_deadline, executions, failures)"
        f" VALUES ('file.process', 'half_open', {rows.ago(40)}, '{tried.id}', {rows.ahead(60)}, 15, 9)"
    )
    rows.make_jobs(1500, "Scheduled", waiting_for="circuit", gate="integration.sync")
    rows.make_job("Scheduled", waiting_for="circuit", gate="report.generate")
    _, html = page(browser)
    said = text(html)
    assert "Breaker open on integration.sync 12 of 20 executions failed within 30 s. Open for" in said
    assert "one job is tried in 16:" in said
    assert "~1 K jobs wait." in said
    assert "the next job is tried." in said
    assert "Breaker half-open on file.process" in said
    assert "one job is being tried." in said


def test_a_pause_alone_is_no_failure(browser):
    make_worker()
    rows.execute("INSERT INTO turno.pauses (scope, value, reason) VALUES ('type', 'a.b', '')")
    _, html = page(browser)
    assert "1 needs attention" in html
    assert "#m-paused" in region(html, "veredito")[:800]


def test_more_concerns_than_fit_are_folded(browser):
    for n in range(9):
        make_worker(f"worker-{n}", seen_ago=40)
    _, html = page(browser)
    assert "6 more" in html  # nine, and that nobody works; four stand there


@pytest.mark.parametrize(
    ("parked", "enqueued", "said"),
    [(0, 0, "Queued 0 nothing waits"), (3, 0, "Queued 3 all of them parked"), (3, 1, "Queued 4 oldest ")],
)
def test_nothing_is_said_to_wait_only_where_nothing_does(browser, parked, enqueued, said):
    rows.make_jobs(parked, "Scheduled", waiting_for="circuit", gate="report.generate")
    rows.make_jobs(enqueued)
    queued = re.search(r'estado=fila">(.*?)</a>', page(browser)[1], re.DOTALL)
    assert text(queued[1]).strip().startswith(said)


def test_each_indicator_is_a_door_to_the_list_with_its_number(browser):
    rows.make_jobs(3)
    rows.make_job("Scheduled", waiting_for="concurrency_key", gate="k")
    rows.make_job("Scheduled")
    rows.make_job("Processing")
    for _ in range(2):
        rows.make_letter(rows.make_job("Failed"))
    _, html = page(browser)
    stats = dict(re.findall(r'<a class="stat" href="([^"]+)">(.*?)</a>', html, re.DOTALL))
    assert text(stats["/painel/tarefas?estado=fila"]).split()[:2] == ["Queued", "4"]
    assert text(stats["/painel/tarefas?estado=executando"]).split()[:4] == ["Running", "1", "/", "1"]
    assert text(stats["/painel/tarefas?estado=agendada"]).split()[:2] == ["Scheduled", "1"]
    assert text(stats["/painel/erros"]).split()[:3] == ["Dead", "letters", "2"]
    for address in stats:
        assert browser.get(address.replace("&amp;", "&")).status_code == 200


def test_the_share_that_succeeded_is_never_rounded_up(browser):
    rows.execute(
        "INSERT INTO turno.metrics_minute (minute, queue, type, succeeded, failed, duration_sum, durations)"
        " VALUES (date_trunc('minute', now()), 'default', 'a.b', 99999, 1, 280000, array_fill(0, ARRAY[16]))"
    )
    _, html = page(browser)
    assert "99.9%" in html
    assert "100,000 runs in 1 h, 1 failed; peak of 100,000 at" in html
    assert re.search(r'id="ritmo-alt">100,000 runs', html)


def test_broken_modules_and_handlers_that_do_not_stop_are_told_literally_while_their_worker_lives(browser):
    problems = [
        {"handler": "a.slow", "job": "j-1", "error": "asked to stop & runs on", "at": "tasks.py:12 wait"},
        {"module": "shop.tasks", "error": "SyntaxError: <b>"},
        "something from a later version",
    ]
    make_worker("here", problems=problems)
    make_worker("gone", state="Offline", problems=problems)
    _, html = page(browser)
    assert html.count("asked to stop &amp; runs on") == 1
    assert "tasks.py:12 wait" in html
    assert html.count("SyntaxError: &lt;b&gt;") == 1
    assert "2 need attention" in html
    assert "gone" not in text(html)


def test_what_jobs_say_is_shown_literally(browser):
    id_ = make_worker("worker-7")
    rows.make_job("Processing", worker=id_, stage=EVIL)
    letter = rows.make_job("Failed", error_message=EVIL)
    rows.make_letter(letter, error_message=EVIL, error_type="<b>")
    _, html = page(browser)
    assert html.count("&lt;script&gt;") >= 2
    assert "<img src=x" not in html


@pytest.mark.parametrize("density", ["detalhe", "mosaico"])
def test_the_density_is_kept_in_this_browser(browser, density):
    make_worker()
    response = browser.get(f"/painel/?quadro={density}")
    assert f"modo={density}" in response.content.decode()
    assert browser.cookies["turno_quadro"]["httponly"]
    assert f"modo={density}" in page(browser)[1]


def test_a_density_that_is_none_is_not_kept(browser):
    assert browser.get("/painel/?quadro=%3Cb%3E").status_code == 200
    assert "turno_quadro" not in browser.cookies
    assert browser.get("/painel/partes/quadro?modo=x").status_code in {200, 204}


def test_above_a_dozen_workers_the_board_is_a_mosaic_with_a_filter_and_comes_first(browser):
    for n in range(13):
        make_worker(f"worker-{n:02}")
    _, html = page(browser)
    assert "modo=mosaico" in html
    assert 'id="quadro-filtro"' in html
    assert html.index('id="quadro"') < html.index('id="atencao"')


@pytest.mark.parametrize("part", ["veredito", "atencao", "faixa", "ritmo", "quadro?modo=detalhe"])
def test_a_part_that_is_as_the_browser_has_it_is_not_sent_again(browser, part):
    make_worker()
    first = browser.get(f"/painel/partes/{part}")
    assert first.status_code == 200
    again = browser.get(f"/painel/partes/{part}", headers={"X-Turno-Seen": first["X-Turno-Seen"]})
    assert (again.status_code, again.content) == (204, b"")
    assert again["X-Turno-At"].isdigit()


@pytest.mark.parametrize("part", ["veredito", "atencao", "faixa", "ritmo"])
def test_a_part_is_the_region_itself(browser, part):
    _, html = page(browser)
    (opening,) = re.findall(rf'<\w+[^>]*\bid="{part}"[^>]*>', html)
    assert opening in browser.get(f"/painel/partes/{part}").content.decode()


def test_the_board_s_first_part_after_the_page_is_empty(browser):
    id_ = make_worker()
    rows.make_job("Processing", worker=id_)
    _, html = page(browser)
    (seen,) = re.findall(r'data-seen="([^"]+)"', html)
    shared.forget()
    assert browser.get("/painel/partes/quadro?modo=detalhe", headers={"X-Turno-Seen": seen}).status_code == 204


def test_the_page_holds_no_inline_script_or_style_and_asks_no_other_host(browser):
    id_ = make_worker()
    rows.make_job("Processing", worker=id_)
    for address in ("/painel/?quadro=detalhe", "/painel/?quadro=mosaico"):
        _, html = page(browser, address)
        assert " style=" not in html
        assert not re.findall(r"<script(?![^>]*src=)(?![^>]*application/json)", html)
        assert not re.findall(r'(?:src|href)="(?:https?:)?//', html)
        for source in set(re.findall(r'(?:src|href)="(/static/[^"]+)"', html)):
            assert browser.get(source).status_code == 200


@pytest.fixture
def away(monkeypatch):
    """The database does not answer the probe, and no statement may be sent to it."""

    def probe():
        raise ConnectionError("secret")

    monkeypatch.setattr(health, "_probes", {})
    health.register("postgresql", probe)


def test_a_database_that_is_away_is_told_on_the_page_without_asking_it(away, django_assert_num_queries):
    with django_assert_num_queries(0):  # nobody can be known either: each would wait for a connection
        status, html = page(Client(headers={"Accept": "text/html", "Accept-Language": "en"}))
    assert status == 503
    assert "The database does not answer" in html
    assert "PostgreSQL" in html
    assert "js/away.js" in html
    assert "secret" not in html
    assert Client().get(re.search(r'data-back-when="([^"]+)"', html)[1]).status_code == 503


def test_the_page_costs_the_same_queries_however_much_it_shows(browser, django_assert_max_num_queries):
    for n in range(20):
        id_ = make_worker(f"worker-{n}", {"default": 8})
        rows.make_job("Processing", worker=id_)
    rows.make_jobs(50)
    rows.make_jobs(50, "Failed")
    with django_assert_max_num_queries(28):
        page(browser)
    with django_assert_max_num_queries(2):  # the session; all else is shared
        page(browser, "/painel/partes/faixa")


def test_the_page_speaks_the_language_of_the_reader(browser):
    assert '<html lang="en"' in page(browser)[1]
    assert '<html lang="pt-br"' in browser.get("/painel/", headers={"Accept-Language": "pt-BR"}).content.decode()


@pytest.mark.parametrize(
    "part", ["", "partes/veredito", "partes/atencao", "partes/faixa", "partes/ritmo", "partes/quadro"]
)
def test_a_program_without_a_key_gets_a_problem_and_no_page(part):
    response = Client().get(f"/painel/{part}")
    assert response.status_code == 401
    assert response["Content-Type"] == "application/problem+json"


def test_nobody_working_is_told_in_the_list_too(browser):
    _, html = page(browser)
    assert "What is enqueued waits until one comes" in region(html, "atencao")
