"""The list of recurring jobs: what fires next, what fired badly, rows that keep their places, and the acts of a row."""

import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.test import Client

from jobs.models import Job, RecurringJob
from jobs.queries import schedulelist
from jobs.queries.schedulelist import ScheduleCursor, ScheduleFilter
from tests.dashboard.pages import signed_in, text
from tests.dashboard.recurring import LIST, SCRIPT, make, run
from tests.kit import people
from tests.transitions import rows
from tests.transitions.recurring import half_a_year_away

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser():
    with signed_in() as client:
        yield client


def html_of(browser, path=LIST, **query):
    answer = browser.get(path, query)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def names(html):
    return re.findall(r"<strong>([^<]+)</strong></a>", html)


def part_of(html):
    return re.search(r'hx-get="(/painel/partes/recorrentes[^"]*)"', html)[1].replace("&amp;", "&")


def row_of(html, id_):
    return re.search(rf'<tr id="r-{id_}".*?</tr>', html, re.S)[0]


def test_an_empty_house_says_what_a_recurring_job_is_and_offers_one(browser):
    html = html_of(browser)
    assert "No recurring jobs yet" in html
    assert f'href="{LIST}/nova"' in html


def test_a_row_says_when_in_words_and_in_cron_and_what_came_of_the_last_run(browser):
    made = make(timezone="America/Sao_Paulo")
    job = run(made, "Failed", took=372, ended=120)
    row = row_of(html_of(browser), made)
    said = text(row)
    for words in ("fechamento", "report.generate", "0 30 7 * * 1-5", "Brasília", "6 min 12 s", "Failed", "2 min ago"):
        assert words in said
    assert f'href="/painel/tarefas/{job}"' in row
    assert 'role="switch"' in row
    assert "checked" in row


def test_the_next_to_fire_comes_first_and_those_that_do_not_fire_come_last(browser):
    later, sooner = make("later", half_a_year_away()), make("sooner", "* * * * * *")
    make("off-b", enabled=False, next_run_at=None)
    make("off-a", enabled=False, next_run_at=None)
    make("broken", error="no")
    html = html_of(browser)
    assert names(html) == ["sooner", "later", "broken", "off-a", "off-b"]
    assert "3 enabled, 2 disabled" in text(html)
    assert "disabled" in text(row_of(html, RecurringJob.objects.get(name="off-a").id))
    assert str(later) in html
    assert str(sooner) in html


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"mostrar": "ativas"}, {"good", "bad", "spoiled"}),
        ({"mostrar": "falha"}, {"bad", "spoiled"}),
        ({"busca": "OO"}, {"good"}),
        ({"busca": "report.gen"}, {"good", "bad", "spoiled", "off"}),
        ({"busca": "%"}, set()),
        ({"busca": "nothing"}, set()),
        ({"mostrar": "purple", "cursor": "x", "aberta": "y"}, {"good", "bad", "spoiled", "off"}),
        ({"cursor": ".."}, {"good", "bad", "spoiled", "off"}),
    ],
)
def test_filters_find_what_they_say_and_nonsense_asks_nothing(browser, query, found):
    run(make("good"))
    run(make("bad"), "Failed")
    make("spoiled", error="payload.rows: no")
    make("off", enabled=False)
    if "cursor" in query and query["cursor"] == "..":  # a cursor of its own kind: after the name "."
        found = {"off", "spoiled"}
    assert set(names(html_of(browser, **query))) == found


def test_what_can_not_fire_says_why_and_what_to_do_and_stops_no_other_row(browser):
    marked = make("marked", error="payload.rows: <b>required</b>")
    spoiled = make("spoiled", cron="0 0 5 * * *")
    RecurringJob.objects.filter(id=spoiled).update(cron="99 * * * *", timezone="Moon/Base")
    make("fine")
    html = html_of(browser)
    assert set(names(html)) == {"marked", "spoiled", "fine"}
    assert "Can't fire: payload.rows: &lt;b&gt;required&lt;/b&gt;" in row_of(html, marked)
    assert f'href="{LIST}/{marked}">Edit it and save' in row_of(html, marked)
    assert "Can't fire" in row_of(html, spoiled)


@pytest.mark.parametrize("instant", ["'infinity'", "'-infinity'", "'20000-01-01'"])
def test_instants_that_no_calendar_has_break_no_page(browser, instant):
    made = make()
    rows.execute(f"UPDATE turno.recurring_jobs SET next_run_at = {instant}, last_run_at = {instant}, "
                 f"last_skipped_at = {instant}")  # fmt: skip
    assert names(html_of(browser, aberta=str(made))) == ["fechamento"]


def test_an_instant_that_nobody_has_fired_is_late_and_says_so(browser):
    made = make(next_run_at=datetime.now(UTC) - timedelta(seconds=145))
    row = row_of(html_of(browser), made)
    assert "late by" in row
    assert re.search(r'data-since="1\d\d"', row)


@pytest.mark.parametrize(
    ("why", "said"), [("overlap", "the previous run was not over"), ("misfire", "nobody was there to fire it")]
)
def test_why_nothing_ran_at_the_last_instant_stands_in_the_row_until_it_runs_again(browser, why, said):
    made = make()
    run(made, ended=7200)
    RecurringJob.objects.filter(id=made).update(skipped=1, last_skipped_at=datetime.now(UTC), last_skipped_why=why)
    assert said in text(row_of(html_of(browser), made))
    RecurringJob.objects.filter(id=made).update(last_run_at=datetime.now(UTC) + timedelta(seconds=1))
    assert said not in text(row_of(html_of(browser), made))


def test_a_declared_one_is_marked_and_can_be_disabled_and_not_deleted(browser):
    made = make(source="declared")
    html = html_of(browser, aberta=str(made))
    assert "declared" in text(row_of(html, made))
    delete = re.search(rf'id="x-{made}"[^>]*>', html)[0]
    assert 'aria-disabled="true"' in delete
    assert browser.post(f"{LIST}/{made}/excluir", headers=SCRIPT).status_code == 409
    assert browser.post(f"{LIST}/{made}/desativar", headers=SCRIPT).status_code == 200
    assert not RecurringJob.objects.get(id=made).enabled


def test_what_can_not_be_read_is_said_in_the_viewers_language(browser):
    made = make(timezone="UTC", error="timezone: Esperado um fuso da base IANA.")
    RecurringJob.objects.filter(id=made).update(timezone="Mars/Olympus")
    said = text(row_of(html_of(browser), made))
    assert "Esperado" not in said
    assert "Can't fire: timezone: Expected a time zone" in said


def test_one_that_its_file_declares_disabled_says_that_the_configuration_did_it(browser):
    made = make(source="declared", enabled=False, disabled_by="file")
    assert "disabled by the configuration" in text(row_of(html_of(browser), made))


def test_one_that_the_configuration_has_dropped_says_so(browser):
    made = make(source="declared", enabled=False, disabled_by="configuration")
    said = text(row_of(html_of(browser), made))
    assert "not in the configuration any more" in said


def test_an_open_row_shows_five_instants_ten_runs_and_both_policies(browser):
    made = make(overlap="queue", misfire="all", skipped=3, last_skipped_at=datetime(2020, 1, 2, 12, tzinfo=UTC))
    for number in range(12):
        run(made, "Failed" if number == 11 else "Succeeded", ended=100 - number)
    html = html_of(browser, aberta=str(made))
    more = re.search(rf'<tr class="more" id="m-{made}".*?</tr>', html, re.S)[0]
    assert more.count("<li>") == 5
    assert more.count('href="/painel/tarefas/') == 10
    said = text(more)
    assert "1 of 10 failed" in said
    assert "Waits for the previous run to finish; if its times are missed, runs all of them (up to 100)" in said
    assert "3 runs left out, the last 2020-01-02 " in said
    assert f"/painel/tarefas?recorrente={made}" in more
    assert f'id="m-{made}"' in html_of(browser, f"/painel/partes/recorrentes/{made}/detalhe")
    assert browser.get(f"/painel/partes/recorrentes/{uuid4()}/detalhe").status_code == 404


def test_the_runs_of_a_schedule_are_the_list_of_jobs_narrowed_to_it(browser):
    made = make()
    job = run(made)
    other = rows.make_job("Succeeded", id=uuid4())
    html = html_of(browser, "/painel/tarefas", recorrente=str(made))
    assert str(job) in html
    assert str(other.id) not in html
    assert "schedule fechamento" in text(html)
    assert f'href="{LIST}/{made}">fechamento</a>' in html_of(browser, f"/painel/tarefas/{job}")
    RecurringJob.objects.all().delete()
    gone = html_of(browser, "/painel/tarefas", recorrente=str(made))
    assert str(job) in gone
    assert f"schedule {made}" in text(gone)


def test_5000_rows_are_paged_each_once(browser):
    rows.execute(
        """INSERT INTO turno.recurring_jobs (id, name, type, payload, cron, enabled, next_run_at)
        SELECT gen_random_uuid(), 'n' || lpad(n::text, 4, '0'), 'report.generate', '{}', '0 0 3 * * *', n % 3 > 0,
            now() + n % 7 * interval '1 hour' FROM generate_series(1, 5000) AS n"""
    )
    html, seen = html_of(browser), []
    assert "5,000" in text(html)
    for _page in range(3):
        seen += names(html)
        following = re.search(r'href="([^"]+)" rel="next"', html)[1].replace("&amp;", "&")
        html = browser.get(following).content.decode()
        assert 'rel="prev"' in html
    assert len(seen) == len(set(seen)) == 150
    every, at = [], None
    while True:
        page = schedulelist.schedule_list(ScheduleFilter(), at, size=1000)
        every += [row.name for row in page.rows]
        if page.after is None:
            break
        at = ScheduleCursor.parse(str(page.after))
    assert len(every) == len(set(every)) == 5000
    assert every[:150] == seen


def test_the_live_part_keeps_the_rows_of_the_page_and_only_counts_new_ones(browser):
    first, second = make("first", half_a_year_away(hour=3)), make("second", half_a_year_away(hour=4))
    answer = browser.get(part_of(html_of(browser)))
    unchanged = browser.get(part_of(html_of(browser)), headers={"X-Turno-Seen": answer["X-Turno-Seen"]})
    assert unchanged.status_code in {200, 204}  # a minute may have passed
    part = part_of(html_of(browser))
    make("third", "* * * * * *")
    RecurringJob.objects.filter(id=first).update(next_run_at=datetime.now(UTC) + timedelta(days=9))
    html = html_of(browser, part)
    assert names(html) == ["first", "second"]
    assert "1 new schedule" in html
    RecurringJob.objects.filter(id=second).delete()
    assert names(html_of(browser, part)) == ["first"]


def test_the_acts_of_a_row_do_what_they_say(browser):
    made = make(cron=half_a_year_away())
    ran = browser.post(f"{LIST}/{made}/disparar", headers=SCRIPT)
    assert ran.status_code == 200
    job = Job.objects.get()
    assert ran.json()["link"]["href"] == f"/painel/tarefas/{job.id}"
    assert "fechamento" in ran.json()["toast"]
    again = browser.post(f"{LIST}/{made}/disparar", headers=SCRIPT)  # the first one is not over
    assert again.status_code == 409
    assert str(job.id) in again.json()["detail"]
    assert browser.post(f"{LIST}/{made}/desativar", headers=SCRIPT).status_code == 200
    row = RecurringJob.objects.get()
    assert (row.enabled, row.next_run_at) == (False, None)
    assert "by" in text(row_of(html_of(browser), made))
    assert browser.post(f"{LIST}/{made}/ativar", headers=SCRIPT).status_code == 200
    assert RecurringJob.objects.get().next_run_at > datetime.now(UTC)
    gone = browser.post(f"{LIST}/{made}/excluir", {"de": "editor"}, headers=SCRIPT)
    assert gone.json()["go"] == LIST
    assert not RecurringJob.objects.exists()
    assert Job.objects.filter(id=job.id).exists()
    for act in ("disparar", "ativar", "desativar", "excluir"):
        assert browser.post(f"{LIST}/{made}/{act}", headers=SCRIPT).status_code == 404


def test_without_scripts_an_act_leads_back_to_the_page(browser):
    made = make()
    answer = browser.post(f"{LIST}/{made}/desativar", headers={"Referer": f"http://testserver{LIST}?mostrar=ativas"})
    assert (answer.status_code, answer["Location"]) == (302, f"{LIST}?mostrar=ativas")


def test_who_only_looks_sees_all_and_can_press_nothing():
    made = make()
    viewer = people.signed_in()
    html = html_of(viewer, aberta=str(made))
    assert re.search(rf'id="s-{made}"[^>]*disabled', html, re.S)
    for id_ in ("t", "t2", "x"):
        assert re.search(rf'id="{id_}-{made}"[^>]*aria-disabled="true"', html, re.S)
    assert viewer.post(f"{LIST}/{made}/disparar", headers=SCRIPT).status_code == 403
    assert not Job.objects.exists()
    stranger = Client(headers={"Accept": "application/json"})
    assert stranger.get(LIST).status_code in {401, 403}
    assert stranger.post(f"{LIST}/{made}/disparar").status_code in {401, 403}
