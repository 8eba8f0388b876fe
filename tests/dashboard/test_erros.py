"""The dead letters' screen: causes, tabs, filters, the open example, the letters of one cause, single acts."""

import re
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.test import Client

from dashboard import shared
from dashboard.errorpage import bars, ordered
from jobs.ids import new_id
from jobs.states import State
from tests.api.client import KEY
from tests.transitions import rows
from tests.transitions.rows import ago, make_letter

pytestmark = pytest.mark.django_db
ERRORS = "/painel/erros"
STACK = (
    "Traceback (most recent call last):\n"
    '  File "/srv/app/tasks/sync.py", line 88, in fetch\n    answer = get(url)\n'
    '  File "/srv/venv/lib/python3.13/site-packages/httpx/_client.py", line 7, in get\n    send()\n'
    "TimeoutError: no answer"
)


@pytest.fixture
def browser():
    cache.clear()
    shared.forget()
    client = Client(headers={"Accept": "text/html", "Accept-Language": "en"})
    client.post("/entrar", {"chave": KEY})
    return client


def dead(fingerprint="ab", **columns):
    """A failed job and its letter's id."""
    job = {name: columns.pop(name) for name in ("type", "queue", "payload") if name in columns}
    made, letter = rows.make_job(State.FAILED, id=new_id(), **job), new_id()
    make_letter(made, id=letter, fingerprint=fingerprint, **{"error_type": "ValueError"} | columns)
    return made, letter


def html_of(browser, path=ERRORS, **query):
    answer = browser.get(path, query)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def causes_in(html):
    return re.findall(r'id="g-([^"]+)"', html)


def test_an_empty_house_says_so(browser):
    html = html_of(browser)
    assert "No dead letters" in html
    assert causes_in(html) == []


def test_letters_of_one_cause_are_one_group_with_its_count_and_its_acts(browser):
    for _ in range(3):
        dead("ab", error_message="no answer from 10.0.0.1")
    dead("cd")
    html = html_of(browser)
    assert causes_in(html) == ["ab", "cd"]
    assert "4 jobs" in html
    assert "2 causes" in html
    assert re.search(r"Requeue 3\s", html)
    assert re.search(r"Discard 3\s", html)
    assert "3 in 24 h" in html


def test_the_order_is_by_jobs_or_by_the_newest(browser):
    for _ in range(2):
        dead("many", created_at=ago(900))
    dead("new", created_at=ago(5))
    assert causes_in(html_of(browser)) == ["many", "new"]
    assert causes_in(html_of(browser, ordem="recentes")) == ["new", "many"]


def test_each_tab_has_its_letters_and_its_count_and_only_pending_ones_have_acts(browser):
    dead("ab")
    dead("cd", resolved_at=ago(60), resolved_how="discarded", resolved_by="ana")
    pending, discarded = html_of(browser), html_of(browser, situacao="descartadas")
    assert (causes_in(pending), causes_in(discarded)) == (["ab"], ["cd"])
    assert "data-lote" in pending
    assert "data-lote" not in discarded
    assert re.search(r'Discarded <span class="count">1</span>', pending)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"tipo": "a.b"}, ["one"]),
        ({"fila": "slow"}, ["two"]),
        ({"busca": "TIMEOUT"}, ["two"]),
        ({"busca": "10%"}, ["one"]),
        ({"busca": "%"}, ["one"]),
        ({"busca": "a.b"}, ["one"]),
        ({"causa": "two"}, ["two"]),
        ({"tipo": "a.b", "fila": "slow"}, []),
        ({"tipo": "x" * 201}, ["one", "two"]),
        ({"ordem": "purple"}, ["one", "two"]),
        ({"situacao": "\x1f"}, ["one", "two"]),
        ({"desde": "-1"}, ["one", "two"]),
        ({"desde": "99999999"}, ["one", "two"]),
        ({"aberta": "nobody"}, ["one", "two"]),
    ],
)
def test_filters_find_what_they_say_and_nonsense_asks_nothing(browser, query, found):
    dead("one", type="a.b", error_message="10% done")
    dead("two", type="c.d", queue="slow", error_type="TimeoutError")
    assert sorted(causes_in(html_of(browser, **query))) == found


def test_an_open_cause_shows_the_newest_stack_and_the_first_letters(browser):
    made = [dead("ab", stack=STACK, payload={"page": n}, created_at=ago(100 - n))[0] for n in range(5)]
    html = html_of(browser, aberta="ab")
    assert 'aria-expanded="true"' in html
    assert "tasks/sync.py:88" in html
    assert "1 library frame" in html
    assert "page=4" in html
    assert str(made[0].id) not in html
    assert "See all 5" in html
    body = html_of(browser, f"{ERRORS}/causas/ab/exemplo")
    assert body.count("data-row") == 3 + body.count("data-rows")


def test_what_an_error_says_is_shown_as_text(browser):
    dead("ab", error_type="<i>", error_message="<script>alert(1)</script>", stack="<b>", payload={"<u>": "<s>"})
    html = html_of(browser, aberta="ab")
    assert not re.search(r"<(i|b|u|s)>|<script>alert", html.split('id="grupos"')[1].split('id="em-massa"')[0])


def test_a_cause_without_a_fingerprint_has_an_address_too(browser):
    dead("")
    html = html_of(browser)
    assert causes_in(html) == ["-"]
    assert "Jobs of this cause" in html_of(browser, f"{ERRORS}/causas/-")


def test_the_letters_of_a_cause_are_paged_by_key(browser):
    made = [dead("ab", created_at=ago(1000 - n))[0] for n in range(60)]
    first = html_of(browser, f"{ERRORS}/causas/ab")
    following = re.search(r'href="([^"]+)" rel="next"', first)[1].replace("&amp;", "&")
    second = browser.get(following).content.decode()
    seen = [re.findall(r'<tr id="l-[^"]+"\s+role="row"\s+data-job="([^"]+)"', page) for page in (first, second)]
    assert [len(part) for part in seen] == [50, 10]
    assert seen[0] + seen[1] == [str(job.id) for job in reversed(made)]


@pytest.mark.parametrize("cursor", ["x", "99999999999999999-" + "0" * 32, "1-" + "g" * 32])
def test_a_cursor_that_is_none_is_the_first_page(browser, cursor):
    dead("ab")
    assert "Jobs of this cause" in html_of(browser, f"{ERRORS}/causas/ab", cursor=cursor)


def test_a_cause_that_has_left_says_so(browser):
    answer = browser.get(f"{ERRORS}/causas/ab")
    assert answer.status_code == 404
    assert "no dead letters here any more" in answer.content.decode()
    assert browser.get(f"{ERRORS}/causas/ab/exemplo").status_code == 404
    part = html_of(browser, f"{ERRORS}/causas/ab/cartas")
    assert 'id="cartas"' in part
    assert "no dead letters here any more" in part
    assert "<table" not in part


def test_the_live_part_keeps_the_order_of_the_page_and_is_not_sent_twice(browser):
    for name in ("a", "b", "b"):
        dead(name)
    part = f"{ERRORS}/partes/grupos"
    answer = browser.get(part, {"ordem_atual": "a,b"})
    assert causes_in(answer.content.decode()) == ["a", "b"]
    assert causes_in(browser.get(part).content.decode()) == ["b", "a"]
    again = browser.get(part, {"ordem_atual": "a,b"}, headers={"X-Turno-Seen": answer["X-Turno-Seen"]})
    assert again.status_code == 204


def test_a_single_letter_is_requeued_or_discarded_once(browser):
    (first, one), (second, two) = dead(), dead()
    headers = {"X-Turno-Act": "1", "Accept": "application/json"}
    said = browser.post(f"{ERRORS}/cartas/{one}/reenfileirar", headers=headers)
    assert (said.status_code, said.json()["toast"]) == (200, "Job requeued")
    assert browser.post(f"{ERRORS}/cartas/{two}/descartar", headers=headers).status_code == 200
    assert (rows.state(first.id), rows.state(second.id)) == (State.ENQUEUED, State.FAILED)
    again = browser.post(f"{ERRORS}/cartas/{two}/reenfileirar", headers=headers)
    assert again.status_code == 409
    assert "already requeued or discarded" in again.json()["detail"]
    assert browser.post(f"{ERRORS}/cartas/{uuid4()}/descartar", headers=headers).status_code == 404


def test_strangers_see_and_do_nothing():
    stranger = Client(headers={"Accept": "application/json"})
    for path in (ERRORS, f"{ERRORS}/partes/grupos", f"{ERRORS}/causas/ab"):
        assert stranger.get(path).status_code in {401, 403}
    assert stranger.post(f"{ERRORS}/cartas/{uuid4()}/descartar").status_code in {401, 403}


def test_the_bars_of_a_day_are_as_tall_as_the_hours_are_many():
    found = bars([0] * 22 + [1, 4])
    assert len(found) == 24
    assert [bar.fails for bar in found[-3:]] == [False, True, True]
    assert float(found[-1].height) > float(found[-2].height) > float(found[0].height)
    assert all(0 <= float(bar.y) <= 10 for bar in bars([10**9] * 24))


def test_new_causes_come_after_those_that_the_page_has():
    class Named:
        def __init__(self, fingerprint):
            self.fingerprint = fingerprint

    found = ordered([Named("c"), Named("a"), Named("b")], ["a", "b"])
    assert [cause.fingerprint for cause in found] == ["a", "b", "c"]
