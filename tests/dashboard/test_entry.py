"""The login by access key, and the way out."""

import pytest
from django.core.cache import cache
from django.test import Client

from jobs.conf import overridden
from tests.api.client import KEY

pytestmark = pytest.mark.django_db
BROWSER = {"Accept": "text/html"}


@pytest.fixture
def browser():
    cache.clear()
    yield Client(headers=BROWSER)
    cache.clear()


def enter(browser, key=KEY, **form):
    return browser.post("/entrar", {"chave": key, **form})


def test_a_page_leads_to_the_login_and_back(browser):
    response = browser.get("/painel/?x=1")
    assert (response.status_code, response["Location"]) == (302, "/entrar?next=%2Fpainel%2F%3Fx%3D1")
    form = browser.get(response["Location"])
    assert b'value="/painel/?x=1"' in form.content
    response = enter(browser, next="/painel/?x=1")
    assert (response.status_code, response["Location"]) == (302, "/painel/?x=1")
    assert browser.get("/painel/").status_code == 200


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "evil", "",
               "http:evil.example", "/\t/evil.example", "\\\\evil.example", "/%00", "///evil.example"],
)  # fmt: skip
def test_the_login_leads_nowhere_else(browser, wanted):
    location = enter(browser, next=wanted)["Location"]
    assert location in {"/", "/%00"}


def test_a_wrong_key_is_told_with_the_tries_that_are_left(browser):
    response = enter(browser, "wrong-key")
    assert response.status_code == 401
    assert b'role="alert"' in response.content
    assert b"wrong-key" not in response.content
    assert "turno_session" not in browser.cookies


@pytest.mark.parametrize("key", ["", "  ", "a\0b", "ção", "😀" * 3000, "'\"<script>"])
def test_a_strange_key_is_only_a_wrong_one(browser, key):
    assert enter(browser, key).status_code == 401


def test_after_five_wrong_keys_the_form_waits(browser):
    for _ in range(5):
        enter(browser, "wrong-key")
    response = enter(browser)
    assert response.status_code == 429
    assert int(response["Retry-After"]) > 0
    assert browser.get("/painel/").status_code == 302


def test_signing_in_begins_a_new_session(browser):
    session = browser.session
    session["x"] = 1
    session.save()
    before = browser.cookies["turno_session"].value
    enter(browser)
    assert browser.cookies["turno_session"].value != before


def test_the_session_cookie_is_out_of_reach_of_scripts(browser):
    cookie = enter(browser).cookies["turno_session"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"


def test_signing_out_ends_the_session_for_good(browser):
    enter(browser)
    old = browser.cookies["turno_session"].value
    assert browser.post("/sair")["Location"] == "/entrar"
    browser.cookies["turno_session"] = old
    assert browser.get("/painel/").status_code == 302


def test_signing_out_takes_a_post(browser):
    assert browser.get("/sair").status_code == 405


@pytest.mark.parametrize("path", ["/entrar", "/sair"])
def test_the_forms_need_their_token(path):
    strict = Client(enforce_csrf_checks=True, headers=BROWSER)
    response = strict.post(path, {"chave": KEY})
    assert response.status_code == 403
    assert b"<h1>" in response.content


def test_an_open_house_asks_for_no_key(browser):
    with overridden(api={"key": None}):
        assert browser.get("/entrar", headers={"Host": "localhost"})["Location"] == "/"


def test_somebody_who_is_in_is_not_asked_again(browser):
    enter(browser)
    assert browser.get("/entrar?next=/docs")["Location"] == "/docs"
