"""The first page."""

import json
import re

import pytest
from django.core.cache import cache
from django.test import Client

from jobs import health
from tests.api.client import KEY
from tests.transitions import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser():
    cache.clear()
    health.forget()
    client = Client(headers={"Accept": "text/html", "Accept-Language": "en"})
    client.post("/entrar", {"chave": KEY})
    return client


def page(browser):
    response = browser.get("/")
    return response.status_code, response.content.decode()


def test_an_empty_house_says_what_to_do(browser):
    status, html = page(browser)
    assert status == 200
    assert "runworker" in html
    assert "curl -s" in html
    assert "/docs" in html


def test_workers_and_jobs_are_shown(browser):
    rows.execute(
        "INSERT INTO turno.workers (id, name, host, boot_id, pid_namespace, pid, pid_started, version, queues) "
        "VALUES (gen_random_uuid(), 'worker-7', 'host-9', 'b', 'n', 42, '1', '1', '{\"default\": 4}')"
    )
    rows.make_job("Failed", type="boletos.gerar")
    _, html = page(browser)
    assert "worker-7" in html
    assert "host-9:42" in html
    assert "boletos.gerar" in html


def test_handlers_that_do_not_stop_and_modules_that_fail_are_shown_literally_while_their_worker_lives(browser):
    problems = [
        {"handler": "a.slow", "job": "j-1", "error": "asked to stop & runs on", "at": "tasks.py:12 wait"},
        {"module": "shop.tasks", "error": "SyntaxError: <b>"},
        "something from a later version",
    ]
    for state, name in (("Online", "here"), ("Offline", "gone")):
        rows.execute(
            "INSERT INTO turno.workers (id, name, host, boot_id, pid_namespace, pid, pid_started, version, queues,"
            " state, problems) VALUES (gen_random_uuid(), %s, 'h', 'b', 'n', 42, '1', '1', '{}', %s, %s)",
            name,
            state,
            json.dumps(problems),
        )
    _, html = page(browser)
    assert html.count("asked to stop &amp; runs on") == 1
    assert "tasks.py:12 wait" in html
    assert html.count("SyntaxError: &lt;b&gt;") == 1
    assert "gone" not in html


def test_a_running_job_shows_the_attempt_that_runs(browser):
    rows.make_job("Processing", attempts_used=1, max_attempts=3)
    _, html = page(browser)
    assert "2 / 3" in html


def test_what_jobs_say_is_shown_literally(browser):
    evil = "<script>window.__x=1</script><img src=x onerror=window.__x=2>"
    rows.make_job("Failed", error_message=evil)
    rows.make_job("Processing", stage=evil)
    _, html = page(browser)
    assert "&lt;script&gt;" in html
    assert "<img src=x" not in html


def test_the_page_holds_no_inline_script_or_style_and_asks_no_other_host(browser):
    rows.make_jobs(3)
    _, html = page(browser)
    assert " style=" not in html
    assert not re.findall(r"<script(?![^>]*src=)", html)
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', html)
    for source in set(re.findall(r'(?:src|href)="(/static/[^"]+)"', html)):
        assert browser.get(source).status_code == 200


def test_a_database_that_is_away_is_told_on_the_page(browser, monkeypatch):
    def away():
        raise ConnectionError("secret")

    monkeypatch.setattr(health, "_probes", {})
    health.register("postgresql", away)
    status, html = page(browser)
    assert status == 503
    assert "PostgreSQL" in html
    assert "secret" not in html


def test_the_page_costs_the_same_queries_however_much_it_shows(browser, django_assert_max_num_queries):
    rows.make_jobs(50)
    rows.make_jobs(50, "Failed")
    with django_assert_max_num_queries(10):
        page(browser)


def test_the_page_speaks_the_language_of_the_reader(browser):
    assert '<html lang="en">' in page(browser)[1]
    assert '<html lang="pt-br">' in browser.get("/", headers={"Accept-Language": "pt-BR"}).content.decode()


def test_a_program_without_a_key_gets_a_problem_and_no_page(db):
    response = Client().get("/")
    assert response.status_code == 401
    assert response["Content-Type"] == "application/problem+json"
