"""Acts over many from the screens: the question before, the act, how far it is, the stop; bad input in words."""

from uuid import uuid4

import pytest
from django.core.cache import cache
from django.test import Client

from jobs import bulk
from jobs.ids import new_id
from jobs.states import State
from tests.api.client import KEY
from tests.transitions import rows
from tests.transitions.rows import make_letter

START, PREVIEW = "/painel/lotes", "/painel/lotes/previa"


@pytest.fixture
def browser(clean_tables):
    cache.clear()
    client = Client(headers={"Accept": "application/json", "Accept-Language": "en", "X-Turno-Act": "1"})
    client.post("/entrar", {"chave": KEY}, headers={"Accept": "text/html"})
    yield client
    bulk.crew.join()


def make_job(state=State.FAILED, **columns):
    return rows.make_job(state, id=new_id(), **columns)


def make_letters(count, **columns):
    made = [make_job() for _ in range(count)]
    for job in made:
        make_letter(job, id=new_id(), **columns)
    return made


def asked(browser, **query):
    response = browser.get(PREVIEW, query)
    assert response.status_code == 200, response.content
    return response.json()


def begun(browser, **body):
    response = browser.post(START, body)
    assert response.status_code == 200, response.content
    run = response.json()["run"]
    ended = bulk.wait(bulk.get(run["id"]).id, 20)
    assert ended.ended
    return browser.get(run["url"]).json()["run"]


def test_the_selected_are_acted_on_and_the_end_says_what_did_not_apply(browser):
    failed, done = make_job(), make_job(State.SUCCEEDED)
    run = begun(browser, act="requeue", ids=[str(failed.id), str(done.id), str(uuid4())])
    assert (run["state"], run["title"], run["percent"]) == ("done", "1 job requeued", 100)
    assert run["detail"] == "1 no longer existed, 1 was in another state by then"
    assert rows.state(failed.id) == State.ENQUEUED
    assert rows.history(failed.id)[0]["actor"]


def test_ids_may_come_in_one_field_with_commas(browser):
    made = [make_job() for _ in range(3)]
    run = begun(browser, act="delete", ids=",".join(str(job.id) for job in made))
    assert (run["applied"], run["title"]) == (3, "3 jobs deleted")


def test_all_that_match_the_screen_s_filter_are_acted_on(browser):
    ours, other = make_job(type="a.b"), make_job()
    seen = asked(browser, act="requeue", filter="?estado=falha&tipo=a.b")
    assert (seen["count"], seen["by_state"]) == (1, {"Failed": 1})
    assert [line["text"] for line in seen["list"]][-1] == "Failed: 1"
    run = begun(browser, act="requeue", filter="?estado=falha&tipo=a.b", id=seen["id"], before=seen["before"])
    assert run["id"] == seen["id"]
    assert (rows.state(ours.id), rows.state(other.id)) == (State.ENQUEUED, State.FAILED)


def test_dead_letters_of_one_cause_are_discarded(browser):
    [made] = make_letters(1, fingerprint="ab")
    make_letters(2)
    seen = asked(browser, act="discard", target="letters", filter="causa=ab")
    assert (seen["count"], seen["ask"], seen["typed"]) == (1, True, "")
    run = begun(browser, act="discard", target="letters", filter="causa=ab")
    assert run["title"] == "1 job discarded"
    assert rows.letters(made.id)[0]["resolved_how"] == "discarded"
    assert rows.select("SELECT count(*) AS n FROM turno.dead_letters WHERE resolved_at IS NULL")[0]["n"] == 2


@pytest.mark.parametrize(
    ("act", "number", "ask", "typed"),
    [
        ("requeue", 1, False, False),
        ("requeue", 20, False, False),
        ("requeue", 21, True, False),
        ("requeue", 100, True, False),
        ("requeue", 101, True, True),
        ("delete", 1, True, False),
        ("delete", 2, True, True),
    ],
)
def test_the_more_an_act_changes_the_more_it_is_asked_about(browser, act, number, ask, typed):
    ids = [new_id() for _ in range(number)]
    for id_ in ids:
        rows.make_job(State.FAILED, id=id_)
    seen = asked(browser, act=act, ids=",".join(map(str, ids)))
    assert (seen["ask"], seen["typed"]) == (ask, str(number) if typed else "")
    assert seen["verb"].endswith(str(number))


def test_by_filter_even_a_requeue_of_two_is_typed(browser):
    make_job(), make_job()
    assert asked(browser, act="requeue", filter="")["typed"] == "2"


def test_what_applies_to_nothing_says_so(browser):
    assert "only jobs that failed" in asked(browser, act="requeue", filter="")["none"]


def test_the_words_are_in_the_language_of_the_browser(browser):
    make_job()
    title = asked(browser, act="requeue", filter="")["title"]
    assert title == "Requeue 1 job?"


def test_a_run_is_stopped_and_says_so(browser, monkeypatch):
    monkeypatch.setattr(bulk.crew, "wake", lambda: None)
    make_job()
    run = browser.post(START, {"act": "requeue", "filter": ""}).json()["run"]
    assert (run["title"], run["detail"], run["ended"]) == ("Requeueing…", "Waiting for its turn", False)
    stopped = browser.post(run["stop"]).json()["run"]
    assert (stopped["state"], stopped["detail"]) == ("stopped", "stopped before the end")


BAD = [
    {},
    {"act": "explode", "ids": str(uuid4())},
    {"act": "requeue"},
    {"act": "requeue", "ids": ""},
    {"act": "requeue", "ids": "no id"},
    {"act": "requeue", "ids": "\x00"},
    {"act": "requeue", "ids": str(uuid4()), "filter": ""},
    {"act": "requeue", "target": "worlds", "ids": str(uuid4())},
    {"act": "discard", "ids": str(uuid4())},
    {"act": "requeue", "filter": "estado=roxo"},
    {"act": "requeue", "filter": "tentativas=muitas"},
    {"act": "requeue", "filter": "de=9999-12-31T23:59&ate=0001-01-01"},
    {"act": "requeue", "filter": "", "before": "yesterday"},
    {"act": "requeue", "filter": "", "before": "0001-01-01T00:00:00+23:00"},
    {"act": "requeue", "target": "letters", "filter": "situacao=x"},
    {"act": "requeue", "target": "letters", "filter": "busca=" + "x" * 201},
]


@pytest.mark.parametrize("query", BAD)
def test_what_makes_no_sense_is_refused_in_words_by_the_question_and_by_the_act(browser, query):
    answers = [browser.get(PREVIEW, query), browser.post(START, query)]
    for answer in answers:
        assert answer.status_code == 400, answer.content
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["detail"]
    assert rows.select("SELECT count(*) AS n FROM turno.bulk_runs")[0]["n"] == 0


@pytest.mark.parametrize("id_", ["x", "00000000-0000-4000-8000-000000000000"])
def test_an_id_that_no_preview_gave_begins_nothing(browser, id_):
    assert browser.post(START, {"act": "requeue", "filter": "", "id": id_}).status_code == 400


def test_a_run_that_is_not_there_is_a_404(browser):
    assert browser.get(f"{START}/{uuid4()}").status_code == 404
    assert browser.post(f"{START}/{uuid4()}/parar").status_code == 404


def test_nobody_acts_without_a_session_or_without_the_page_s_token(browser):
    stranger = Client(headers={"Accept": "application/json"})
    for answer in (stranger.post(START, {"act": "requeue", "filter": ""}), stranger.get(PREVIEW)):
        assert answer.status_code in {401, 403}
    forged = Client(enforce_csrf_checks=True, headers={"Accept": "application/json"})
    forged.cookies = browser.cookies
    assert forged.post(START, {"act": "requeue", "filter": ""}).status_code == 403


def test_more_ids_than_a_form_has_fields_are_refused_and_more_than_may_be_named_too(browser):
    many = ",".join(str(uuid4()) for _ in range(bulk.IDS_MOST + 1))
    answer = browser.post(START, {"act": "requeue", "ids": many})
    assert answer.status_code == 400
    assert "10000" in answer.json()["detail"].replace(",", "").replace(".", "")


def test_without_a_script_a_page_asks_first_and_then_does_it(browser):
    [made] = make_letters(1, fingerprint="ab")
    make_letters(1, fingerprint="ab")
    plain = Client(headers={"Accept": "text/html", "Accept-Language": "en"})
    plain.cookies = browser.cookies
    body = {"act": "discard", "target": "letters", "filter": "causa=ab"}
    page = plain.post(START, body)
    html = page.content.decode()
    assert (page.status_code, "Discard 2 jobs?" in html, "Type 2 to confirm" in html) == (200, True, True)
    fields = dict(page.context["fields"])
    assert plain.post(START, fields | {"typed": "3"}).status_code == 200
    assert rows.letters(made.id)[0]["resolved_at"] is None
    assert plain.post(START, fields | {"typed": "2"}).status_code == 302
    assert rows.letters(made.id)[0]["resolved_how"] == "discarded"
