"""The queues' screen: where work piles up, what is paused by whom, who holds a key and who waits for it."""

import re

import pytest

from dashboard import queuepage, shared
from jobs.queries import queues as read_queues
from tests.dashboard.boards import make_worker
from tests.dashboard.pages import signed_in, text
from tests.queries.house import pause
from tests.transitions import rows
from tests.transitions.rows import ago, ahead

pytestmark = pytest.mark.django_db
KEYED = {"concurrency_key": "crm", "concurrency_limit": 1}
DAY = 86_400


@pytest.fixture
def browser():
    with signed_in() as client:
        yield client


def get(browser, path="/painel/filas", status=200):
    shared.forget()
    response = browser.get(path)
    assert response.status_code == status
    return response.content.decode()


def names(html):
    return re.findall(r'<strong><a class="plain" href="[^"]+">([^<]+)</a></strong>', html)


def row(html, queue):
    return re.search(rf'<tr id="f-{re.escape(queue)}".*?</tr>', html, re.DOTALL)[0]


def part_of(html, which="filas"):
    return re.search(rf'hx-get="(/painel/partes/{which}[?"][^"]*)', html)[1].replace("&amp;", "&").rstrip('"')


def test_an_empty_house_says_how_a_queue_comes_to_be(browser):
    html = get(browser)
    assert "No queue yet" in html
    assert "runworker" in html
    assert "No key is in use" in html
    assert "No type, tag or key is paused." in html
    assert "Rates of types" not in html


def test_queues_stand_by_priority_and_name_and_say_how_many_are_paused(browser):
    for queue in ("zeta", "alpha", "critical", "slow"):
        make_worker(queue, {queue: 2})
    rows.execute("INSERT INTO turno.queues (name, default_priority) VALUES ('critical', 10), ('slow', -5)")
    pause("queue", "zeta")
    html = get(browser)
    assert names(html) == ["critical", "alpha", "zeta", "slow"]
    assert "4 queues, 1 paused" in text(html)
    assert "priority 10" in row(html, "critical")


def test_a_queue_says_what_waits_runs_fails_and_how_fast_it_goes(browser):
    worker = make_worker("a", {"default": 4})
    make_worker("b", {"default": 2})
    rows.make_jobs(3, enqueued_at=ago(42))
    rows.make_job("Scheduled", waiting_for="concurrency_key", gate="crm", **KEYED)
    rows.make_job("Processing", worker=worker)
    rows.make_jobs(2, "Failed", finished_at=ago(60))
    rows.execute(
        "INSERT INTO turno.metrics_minute (minute, queue, type, succeeded, failed, retried, durations)"
        " VALUES (date_trunc('minute', now()) - interval '3 minutes', 'default', 't', 28, 2, 5, '{}')"
    )
    said = text(row(get(browser), "default"))
    assert "4 queued" in said
    assert "0:42" in said
    assert "1 of 6" in said
    assert "2.3" in said  # 35 in 15 minutes
    assert "2 workers" in said
    assert "1 of them waits for a key, a limit or another job" in said


@pytest.mark.parametrize("query", ["estado=fila&fila=default", "estado=executando&fila=default",
                                   "estado=falha&fila=default&terminou=1h"])  # fmt: skip
def test_every_count_is_a_door_to_a_list_of_that_length(browser, query):
    worker = make_worker("a", {"default": 4})
    rows.make_jobs(3)
    rows.make_job("Scheduled", waiting_for="concurrency_key", gate="crm", **KEYED)
    rows.make_job("Scheduled")
    rows.make_job("Processing", worker=worker)
    rows.make_jobs(2, "Failed", finished_at=ago(60))
    rows.make_job("Failed", finished_at=ago(2 * DAY))
    rows.execute(
        "INSERT INTO turno.metrics_minute (minute, queue, type, failed, retried, durations)"
        " VALUES (date_trunc('minute', now()) - interval '3 minutes', 'default', 't', 2, 5, '{}')"
    )
    html = row(get(browser), "default")
    door = re.search(rf'href="/painel/tarefas\?{re.escape(query).replace("&", "&amp;")}">(\d+)', html)
    assert get(browser, f"/painel/tarefas?{query}").count('id="j-') == int(door[1])


def test_a_queue_whose_jobs_are_all_parked_does_not_say_that_it_has_none(browser):
    make_worker("a", {"default": 4})
    rows.make_job("Scheduled", waiting_for="concurrency_key", gate="crm", **KEYED)
    assert "none" not in text(row(get(browser), "default"))
    rows.execute("DELETE FROM turno.jobs")
    assert "none" in text(row(get(browser), "default"))


def test_the_page_of_a_queue_names_its_pause_and_its_want_of_workers_apart_from_its_depth(browser):
    rows.make_job(queue="reports")
    pause("queue", "reports", reason="the printer", created_at=ago(720))
    html = get(browser, "/painel/filas/reports")
    facts = dict(re.findall(r"<dt>([^<]+)</dt>\s*<dd[^>]*>(.*?)</dd>", html, re.DOTALL))
    assert "12 min ago" in text(facts["Paused"])
    assert "the printer" in text(facts["Paused"])
    assert "runworker --queues reports:4" in text(facts["No worker"])
    assert "printer" not in facts["Queued"]


def test_a_queue_that_nobody_serves_says_so_and_what_to_do(browser):
    rows.make_job(queue="nightly")
    said = row(get(browser), "nightly")
    assert "No worker" in said
    assert "runworker --queues nightly:4" in said


def test_a_paused_queue_says_since_when_by_whom_why_and_until_when(browser):
    make_worker("a", {"reports": 2})
    rows.make_job(queue="reports")
    pause("queue", "reports", reason="<b>the printer</b>", paused_by="user:ana", created_at=ago(720), until=ahead(600))
    html = row(get(browser), "reports")
    said = text(html)
    assert "Paused 12 min ago , ana" in said
    assert "resumes in" in said
    assert "&lt;b&gt;the printer&lt;/b&gt;" in html
    assert "Resume" in said
    assert 'action="/painel/pausas/retomar"' in html


def test_who_asks_to_pause_is_told_what_runs_on_and_what_waits():
    rows.make_jobs(17, "Processing")
    rows.make_jobs(44)
    [queue] = read_queues()
    assert queuepage.question(queue, 44) == (
        "The 17 that run finish. The 44 in the queue wait until somebody resumes it. New jobs keep coming in."
    )
    rows.execute("DELETE FROM turno.jobs")
    make_worker("a", {"default": 1})
    [queue] = read_queues()
    assert queuepage.question(queue, 0) == "New jobs keep coming in."


def test_rows_keep_their_places_and_new_queues_are_counted(browser):
    make_worker("a", {"b": 1, "c": 1})
    html = get(browser)
    make_worker("z", {"a": 1})
    rows.execute("INSERT INTO turno.queues (name, default_priority) VALUES ('c', 10)")
    again = get(browser, part_of(html))
    assert names(again) == ["b", "c"]
    assert "1 new queue" in again
    assert part_of(again) == part_of(html)
    assert names(get(browser)) == ["c", "a", "b"]


def test_a_page_that_was_empty_stays_so_and_counts_the_new_ones(browser):
    html = get(browser)
    make_worker("a", {"default": 1})
    again = get(browser, part_of(html))
    assert names(again) == []
    assert "1 new queue" in again


def hold(value, kind="key", **columns):
    made = rows.make_job("Processing", **columns)
    rows.execute("INSERT INTO turno.concurrency_keys (kind, value) VALUES (%s, %s)", kind, value)
    rows.execute(
        "INSERT INTO turno.concurrency_slots (key_id, slot, job_id, dispatch_id, taken_at) SELECT id, 1, %s, %s,"
        " now() - interval '191 seconds' FROM turno.concurrency_keys WHERE kind = %s AND value = %s",
        made.id, made.token, kind, value,
    )  # fmt: skip
    return made


def test_a_key_says_who_holds_it_since_when_and_leads_to_those_who_wait(browser):
    holder = hold("cliente 42&x", type="boletos.gerar", concurrency_key="cliente 42&x", concurrency_limit=1)
    waits = rows.make_job(
        "Scheduled", waiting_for="concurrency_key", gate="cliente 42&x", concurrency_key="cliente 42&x",
        concurrency_limit=1,
    )  # fmt: skip
    html = get(browser, "/painel/partes/filas/exclusao")
    assert f'href="/painel/tarefas/{holder.id}">boletos.gerar' in html
    said = text(html)
    assert "Concurrency" in said
    assert "1 of 1" in said
    assert "3:1" in said
    door = re.search(r'href="(/painel/tarefas\?estado=fila&amp;espera=chave[^"]*)">1<', html)[1].replace("&amp;", "&")
    listed = get(browser, door)
    assert f"j-{waits.id}" in listed
    assert listed.count('id="j-') == 1


def test_a_type_with_a_limit_stands_there_though_it_is_free(browser):
    rows.execute("INSERT INTO turno.job_types (name, max_running) VALUES ('crm.sync', 3)")
    said = text(get(browser, "/painel/partes/filas/exclusao"))
    assert "crm.sync Limit of the type Limit of the type free 0 of 3 0" in said


def test_keys_are_paged(browser):
    rows.execute(
        "INSERT INTO turno.jobs (id, type, queue, payload, state, waiting_for, gate, concurrency_key,"
        " concurrency_limit)"
        " SELECT gen_random_uuid(), 't', 'q', '{}', 'Scheduled', 'concurrency_key', 'k' || n, 'k' || n, 1"
        " FROM generate_series(100, 160) AS n"
    )
    html = get(browser)
    assert html.count("<code>k1") == 50
    onward = re.search(r'href="(/painel/filas\?depois=[^"#]*)', html)[1]
    second = get(browser, onward)
    assert second.count("<code>k1") == 11
    assert "First keys" in second
    assert part_of(second, "filas/exclusao").endswith(onward.partition("?")[2])
    assert "No key after this one is in use" in get(browser, "/painel/filas?depois=zzz")


def test_other_pauses_say_how_many_wait_for_them(browser):
    pause("type", "email.send", reason="the provider is down", paused_by="user:ana", created_at=ago(720))
    pause("tag", "month end")
    rows.make_jobs(3, "Scheduled", type="email.send", waiting_for="pause", gate="type:email.send")
    html = get(browser, "/painel/partes/filas/exclusao")
    said = text(html)
    assert "email.send the provider is down Type 12 min ago , ana 3 Resume" in said
    assert "month end Tag just now 0 Resume" in said
    door = re.search(r'href="(/painel/tarefas\?estado=fila&amp;espera=pausa[^"]*)">3<', html)[1].replace("&amp;", "&")
    assert get(browser, door).count('id="j-') == 3


def test_rates_say_what_is_allowed_spent_and_when_the_next_may_start(browser):
    rows.execute(
        "INSERT INTO turno.rates (type, allowed, \"window\", spent) SELECT 'email.send', 100, 60,"
        " jsonb_build_array(jsonb_build_array(floor(extract(epoch FROM now()) / 1.2)::int, 70))"
    )
    rows.make_job("Scheduled", type="email.send", waiting_for="rate", gate="email.send")
    said = text(get(browser))
    assert "email.send 100 in 1 min 70 of 100 now 1" in said


def test_a_queue_of_its_own_page_has_figures_and_settings(browser):
    make_worker("a", {"reports": 2})
    rows.execute("INSERT INTO turno.queues (name, slots, default_priority) VALUES ('reports', 3, -2)")
    html = get(browser, "/painel/filas/reports")
    assert "<h1>reports</h1>" in html
    assert 'name="slots" type="number" min="0" max="1000" inputmode="numeric" value="3"' in html
    assert 'value="-2"' in html
    assert 'href="/painel/tarefas?fila=reports"' in html
    assert "Pause" in text(html)


def test_a_queue_that_is_not_there_says_so(browser):
    assert "No such queue" in get(browser, "/painel/filas/nothing-here", status=404)
    assert "Nothing is known of this queue any more." in get(browser, "/painel/partes/filas/nothing-here/agora")


def test_the_navigation_says_that_a_queue_is_paused(browser):
    assert "queue paused" not in get(browser)
    pause("queue", "reports")
    pause("type", "x")
    assert "1 queue paused" in get(browser)


def test_what_a_region_shows_is_not_sent_twice(browser):
    make_worker("a", {"default": 2})
    path = part_of(get(browser))
    first = browser.get(path)
    again = browser.get(path, headers={"X-Turno-Seen": first["X-Turno-Seen"]})
    assert again.status_code == 204


def test_the_points_of_a_line_lie_in_its_box():
    assert queuepage.line([0, 0]) == "0.0,23.0 100.0,23.0"
    assert queuepage.line([0, 5, 10]) == "0.0,23.0 50.0,12.5 100.0,2.0"
    assert queuepage.line([]) == ""
    level = queuepage.line([*[0.0] * 20, 6, *[3.0] * 20]).split()
    assert level == ["0.0,23.0", "47.5,23.0", "50.0,2.0", "52.5,12.5", "100.0,12.5"]  # level stretches take two points


@pytest.mark.parametrize(("count", "every", "poll"), [(3, 2000, 5000), (150, 6000, 6000)])
def test_the_more_queues_there_are_the_seldomer_their_list_is_fetched_whole(browser, count, every, poll):
    make_worker("a", {f"q{number}": 1 for number in range(count)})
    html = get(browser)
    assert re.search(rf'id="filas-lista"[^>]*data-every="{every}"\s+data-poll="{poll}"', html)
