"""The login by user and password: who comes in, what they may, how wrong tries are met, what ends it."""

import pytest
from django.contrib.auth.hashers import get_hasher
from django.core.cache import cache
from django.test import Client

from jobs import throttle
from jobs.conf import overridden
from tests.api.client import KEY
from tests.kit.people import BROWSER, PASSWORD, make_user, sign_in, signed_in, token
from tests.transitions import rows

pytestmark = pytest.mark.django_db
TRIES = throttle.FAILURES_A_MINUTE


@pytest.fixture(autouse=True)
def _fresh():
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def browser():
    return Client(headers=BROWSER)


def elsewhere(number):
    return Client(headers=BROWSER, REMOTE_ADDR=f"10.0.{number // 250}.{number % 250 + 1}")


def test_the_form_has_two_ways_that_work_without_a_script(browser):
    by_key = browser.get("/entrar?next=/painel/%3Fx%3D1").content.decode()
    assert 'name="chave"' in by_key
    assert 'name="senha"' not in by_key
    assert 'href="/entrar?com=usuario&amp;next=/painel/%3Fx%3D1"' in by_key
    by_user = browser.get("/entrar?com=usuario&next=/painel/%3Fx%3D1").content.decode()
    assert 'name="senha"' in by_user
    assert 'name="chave"' not in by_user
    assert 'value="/painel/?x=1"' in by_user


def test_a_user_comes_in_with_name_and_password_and_goes_where_they_wanted(browser):
    make_user()
    response = sign_in(browser, next="/painel/?x=1")
    assert (response.status_code, response["Location"]) == (302, "/painel/?x=1")
    assert browser.get("/painel/").status_code == 200


@pytest.mark.parametrize(
    ("name", "password"),
    [("ana", "wrong"), ("nobody", PASSWORD), ("inativa", PASSWORD), ("Ana", PASSWORD), ("ana", PASSWORD + " "),
     ("a\0na", PASSWORD), ("ana", "a\0"), ("a" * 5000, PASSWORD), ("ana'--", "x"), ("<script>", "x")],
)  # fmt: skip
def test_whatever_is_wrong_the_words_are_the_same(browser, name, password):
    make_user()
    make_user("inativa", is_active=False)
    response = sign_in(browser, name, password)
    assert response.status_code == 401
    html = response.content.decode()
    assert "The user name or the password was not accepted. 4 more tries this minute." in html.replace("\n", " ")
    assert PASSWORD not in html
    assert "<script>" not in html.split("<main", 1)[1]
    assert "turno_session" not in browser.cookies


@pytest.fixture(autouse=True)
def _english(settings):
    settings.LANGUAGE_CODE = "en"


@pytest.mark.parametrize(("name", "password"), [("", PASSWORD), ("ana", ""), ("  ", "  ")])
def test_an_empty_field_is_asked_for_and_counts_as_no_try(browser, name, password):
    for _ in range(TRIES + 1):
        response = sign_in(browser, name, password)
        assert response.status_code == 401
    assert b"Type the user name and the password." in response.content


def test_an_unknown_name_costs_as_many_hashes_as_a_known_one(browser, monkeypatch):
    make_user()
    make_user("inativa", is_active=False)
    hashed = []
    hasher = type(get_hasher())
    original = hasher.encode
    monkeypatch.setattr(hasher, "encode", lambda *given: hashed.append(1) or original(*given))
    counts = []
    for name in ("ana", "nobody", "inativa"):
        hashed.clear()
        sign_in(browser, name, "wrong")
        counts.append(len(hashed))
    assert counts == [1, 1, 1]


def test_keys_and_passwords_of_an_address_are_counted_together(browser):
    make_user()
    for left in (4, 3):
        assert f"{left} more tries".encode() in browser.post("/entrar", {"chave": "wrong"}).content
    assert b"2 more tries" in sign_in(browser, password="wrong").content
    for _ in range(2):
        sign_in(browser, password="wrong")
    assert browser.post("/entrar", {"chave": KEY}).status_code == 429
    response = sign_in(browser)
    assert response.status_code == 429
    assert 0 < int(response["Retry-After"]) <= 60
    assert sign_in(elsewhere(1)).status_code == 302


def test_a_right_password_is_no_failure(browser):
    make_user()
    for _ in range(TRIES + 2):
        assert sign_in(browser).status_code == 302
        browser.post("/sair")


def test_one_name_can_not_be_guessed_from_many_addresses():
    make_user()
    for number in range(throttle.NAME_FAILURES_A_MINUTE):
        assert sign_in(elsewhere(number), password="wrong").status_code == 401
    assert sign_in(elsewhere(999)).status_code == 429
    assert sign_in(elsewhere(998), "nobody").status_code == 401


def test_whoever_came_in_from_an_address_is_not_locked_out_by_tries_elsewhere_or_of_neighbours(browser):
    make_user()
    assert sign_in(browser).status_code == 302
    browser.post("/sair")
    for number in range(throttle.NAME_FAILURES_A_MINUTE):
        sign_in(elsewhere(number), password="wrong")
    for _ in range(TRIES):
        sign_in(browser, "nobody")
    assert sign_in(browser, "nobody").status_code == 429
    assert sign_in(browser).status_code == 302


def test_where_somebody_came_in_their_password_can_not_be_guessed_either(browser):
    make_user()
    sign_in(browser)
    browser.post("/sair")
    for _ in range(TRIES):
        assert sign_in(browser, password="wrong").status_code == 401
    assert sign_in(browser).status_code == 429


def test_tries_are_counted_before_the_password_is_looked_at(browser, monkeypatch):
    counted = []
    monkeypatch.setattr("django.contrib.auth.authenticate", lambda *_a, **_k: counted.append(
        cache.get("turno:failures:127.0.0.1")))  # fmt: skip
    sign_in(browser)
    assert counted == [1]


def test_a_new_session_begins_with_the_login_and_ends_with_the_logout(browser):
    make_user()
    browser.post("/entrar", {"chave": KEY})
    by_key = browser.cookies["turno_session"].value
    assert sign_in(browser).status_code == 302
    by_user = browser.cookies["turno_session"].value
    assert by_user != by_key
    browser.post("/sair")
    for old in (by_key, by_user):
        browser.cookies["turno_session"] = old
        assert browser.get("/painel/").status_code == 302


def test_a_new_password_ends_the_sessions_at_once(browser):
    user = make_user()
    sign_in(browser)
    user.set_password("another password, long")
    user.save()
    assert browser.get("/painel/").status_code == 302
    assert browser.get("/api/jobs", headers={"Accept": "*/*"}).status_code == 401


def test_a_user_who_is_deactivated_is_out_at_once(browser):
    user = make_user()
    sign_in(browser)
    user.is_active = False
    user.save()
    assert browser.get("/painel/").status_code == 302


def test_the_password_and_the_key_are_kept_nowhere_in_the_browser(browser):
    make_user()
    sign_in(browser)
    shown = browser.get("/painel/").content.decode() + str(browser.cookies) + str(dict(browser.session.items()))
    assert PASSWORD not in shown
    assert KEY not in shown


def test_the_next_page_is_one_of_this_house(browser):
    make_user()
    assert sign_in(browser, next="https://evil.example/")["Location"] == "/"


def test_an_open_house_asks_only_who_wants_to_act_under_a_name(browser):
    make_user(is_staff=True)
    with overridden(api={"key": None}):
        here = {"HTTP_HOST": "localhost"}
        assert browser.get("/entrar", **here)["Location"] == "/"
        form = browser.get("/entrar?com=usuario", **here).content.decode()
        assert "open on this machine" in form
        assert 'name="chave"' not in form
        form = {"com": "usuario", "usuario": "ana", "senha": PASSWORD}
        assert browser.post("/entrar", form, **here).status_code == 302
        made = rows.make_job()
        answer = browser.post(f"/api/jobs/{made.id}/cancel", content_type="application/json", **here)
        assert answer.status_code == 200
        assert rows.job(made.id)["cancel_requested_by"] == "user:ana"


def test_a_closed_house_lets_no_user_in(browser):
    make_user(is_superuser=True)
    with overridden(api={"key": None}):
        assert sign_in(browser, next="/").status_code == 403
        assert browser.get("/admin/").status_code == 403


def test_signing_in_and_acting_take_the_form_s_token():
    make_user()
    strict = Client(enforce_csrf_checks=True, headers=BROWSER)
    assert strict.post("/entrar", {"com": "usuario", "usuario": "ana", "senha": PASSWORD}).status_code == 403
    operator = signed_in("olga", strict=True, is_staff=True)
    made = rows.make_job()
    assert operator.post(f"/api/jobs/{made.id}/cancel", content_type="application/json").status_code == 403
    assert rows.state(made.id) == "Enqueued"
    sent = {"X-CSRFToken": token(operator)}
    assert (
        operator.post(f"/api/jobs/{made.id}/cancel", content_type="application/json", headers=sent).status_code == 200
    )
    assert rows.job(made.id)["cancel_requested_by"] == "user:olga"
