"""Every error is a problem for programs and a page for people; none tells what is inside."""

import logging

import psycopg
import pytest
from django.db import DataError, InterfaceError, OperationalError, ProgrammingError

from dashboard import shared
from jobs import queries
from tests.api.client import KEY, PROBLEM

pytestmark = pytest.mark.django_db
BROWSER = {"Accept": "text/html,application/xhtml+xml"}


def test_an_unknown_address_is_a_404(api):
    for path in ("/api/nothing", "/nothing", "/api", "/api/", "/api/jobs/", "/openapi", "/health", "/docs/x"):
        problem = api.get(path).problem(404)
        assert problem["instance"] == path


def test_a_method_that_is_not_known_is_a_405_and_names_those_that_are(api):
    answer = api.ask("PUT", "/api/jobs")
    answer.problem(405)
    assert {word.strip() for word in answer.headers["Allow"].split(",")} == {"GET", "POST"}
    assert {w.strip() for w in api.ask("PATCH", f"/api/jobs/{'0' * 32}").headers["Allow"].split(",")} == {
        "GET", "DELETE",
    }  # fmt: skip


def test_people_get_a_page_with_a_way_out(api):
    response = api.client.get("/nothing", headers=BROWSER)
    assert response.status_code == 404
    assert response["Content-Type"].startswith("text/html")
    assert b'href="/"' in response.content


@pytest.mark.parametrize("path", ["/", "/api/stats", "/nothing", "/health/live", "/static/css/base.css", "/docs"])
def test_the_security_headers_stand_on_every_answer(api, path):
    headers = api.client.get(path, headers=BROWSER).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "same-origin"
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert "default-src 'none'" in headers["Content-Security-Policy"]


def broken(monkeypatch, error):
    def fail(*_shared):
        raise error

    shared.forget()
    monkeypatch.setattr(queries, "stats", fail)


@pytest.mark.parametrize(
    "error", [OperationalError("secret host 10.0.0.1"), InterfaceError("connection already closed")]
)
def test_a_database_that_is_away_is_a_503_that_says_when_to_return(api, monkeypatch, error):
    broken(monkeypatch, error)
    answer = api.get("/api/stats")
    assert "secret" not in str(answer.problem(503))
    assert int(answer.headers["Retry-After"]) > 0


def test_missing_tables_are_a_503_that_names_the_command(api, monkeypatch):
    error = ProgrammingError("relation does not exist")
    error.__cause__ = psycopg.errors.UndefinedTable()
    broken(monkeypatch, error)
    assert "migrate" in api.get("/api/stats").problem(503)["detail"]


def test_a_value_that_the_database_refuses_is_a_400(api, monkeypatch):
    broken(monkeypatch, DataError("invalid byte sequence"))
    api.get("/api/stats").problem(400)


def test_an_unexpected_error_is_a_500_with_an_id_that_the_log_knows(api, monkeypatch, caplog):
    broken(monkeypatch, RuntimeError("the secret inside"))
    with caplog.at_level(logging.ERROR):
        problem = api.get("/api/stats").problem(500)
    assert "secret" not in str(problem)
    record = next(record for record in caplog.records if problem["error_id"] in record.getMessage())
    assert record.exc_info[1].args == ("the secret inside",)


@pytest.mark.parametrize(("error", "status"), [(RuntimeError("secret"), 500), (OperationalError("secret"), 503)])
def test_a_page_that_fails_says_so_without_telling_more(api, monkeypatch, error, status):
    broken(monkeypatch, error)
    api.client.post("/entrar", {"chave": api.key})
    response = api.client.get("/painel/", headers=BROWSER)
    assert response.status_code == status
    assert response["Content-Type"].startswith("text/html")
    assert b"secret" not in response.content
    assert b"Traceback" not in response.content


def test_a_host_name_that_is_not_served_is_a_400(api):
    answer = api.ask("GET", "/api/info", Host="evil.example")
    assert "TURNO_WEB__ALLOWED_HOSTS" in answer.problem(400)["detail"]


@pytest.mark.parametrize(
    ("wanted", "given"),
    [("", "pt-br"), ("en", "en"), ("en-US,en;q=0.9", "en"), ("fr", "pt-br"), ("pt", "pt-br"), ("*", "pt-br")],
)
def test_the_language_is_that_of_the_request(api, wanted, given):
    for path in ("/api/nothing", "/api/jobs?page=0", "/api/jobs"):
        assert api.get(path, Accept_Language=wanted).headers["Content-Language"] == given


def test_too_many_parameters_are_a_400(api):
    api.get("/api/jobs?" + "&".join(f"a{n}=1" for n in range(2000))).problem(400)


def test_problems_are_never_cached(api):
    answer = api.get("/api/jobs?page=0")
    assert answer.headers["Content-Type"] == PROBLEM
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "path", ["/", "/entrar", "/docs", "/openapi/v1.json", "/api/stats", "/health/live", "/nothing"]
)
def test_nothing_but_static_files_may_be_kept_by_a_cache(api, path):
    assert "no-store" in api.client.get(path, headers=BROWSER | {"X-Turno-Key": KEY}).headers["Cache-Control"]


def test_static_files_may_be_kept_and_are_open_to_no_other_site(api):
    headers = api.client.get("/static/css/base.css").headers
    assert "public" in headers["Cache-Control"]
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/api/info", "/api/jobs", "/api/stats"])
def test_head_answers_wherever_get_does(api, path):
    assert api.ask("HEAD", path).status == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", "/sair", 403, "forbidden"),
        ("GET", "/nothing", 404, "not_found"),
        ("PUT", "/api/jobs", 405, "method_not_allowed"),
    ],
)
def test_a_status_has_the_same_code_whoever_answers_it(api, method, path, status, code):
    api.client.handler.enforce_csrf_checks = True
    assert api.ask(method, path).problem(status)["code"] == code
