"""The login in a real browser: both ways in, with and without scripts, and what is left behind in the browser."""

import json

import pytest
from playwright.sync_api import expect

from tests.kit.browser import PHONE, axe, both_themes, no_sideways_scroll
from tests.kit.people import PASSWORD, make_real_user

KEY = "chave-de-teste-0123456789"
STORED = """() => JSON.stringify([
    {...localStorage}, {...sessionStorage}, document.cookie, document.documentElement.outerHTML,
])"""


@pytest.fixture
def house(site_with):
    """A house with a key."""
    return site_with(key=KEY)


@pytest.fixture
def page(open_page, house):
    return open_page(house)


def submit(page):
    page.get_by_role("button", name="Entrar").click()


def kept(page):
    return page.evaluate(STORED) + json.dumps(page.context.cookies())


@both_themes
@pytest.mark.parametrize("query", ["", "?com=usuario", "?com=usuario&next=/admin/"])
@pytest.mark.parametrize("size", [{}, PHONE], ids=["wide", "phone"])
def test_the_form_is_open_to_everybody(open_page, house, theme, query, size):
    page = open_page(house, color_scheme=theme, **size)
    page.goto(f"/entrar{query}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_role("button", name="Entrar")).to_be_visible()
    axe(page)
    no_sideways_scroll(page)


def test_the_key_opens_the_page_that_was_asked_for_and_is_kept_nowhere(page):
    page.goto("/painel/?x=1")
    page.wait_for_url("**/entrar?next=**")
    page.get_by_label("Chave de acesso").fill(KEY)
    submit(page)
    page.wait_for_url("**/painel/?x=1")
    assert KEY not in kept(page)
    session = next(cookie for cookie in page.context.cookies() if cookie["name"] == "turno_session")
    assert session["httpOnly"]
    assert session["sameSite"] == "Lax"


def test_a_wrong_key_is_told_beside_the_field_and_is_not_in_the_page(page):
    page.watch.allow("status of 401")
    page.goto("/entrar")
    page.get_by_label("Chave de acesso").fill("errada-de-todo")
    submit(page)
    field = page.get_by_label("Chave de acesso")
    expect(page.get_by_role("alert")).to_contain_text("4")
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    assert "errada-de-todo" not in kept(page)
    axe(page)


def test_a_user_signs_in_by_the_other_way_and_out_again(page):
    make_real_user()
    page.goto("/painel/")
    page.get_by_role("navigation").get_by_role("link", name="Usuário e senha").click()
    page.get_by_label("Usuário", exact=True).fill("ana")
    page.get_by_label("Senha", exact=True).fill(PASSWORD)
    submit(page)
    page.wait_for_url("**/painel/")
    assert PASSWORD not in kept(page)
    page.goto("/entrar")
    page.wait_for_url("**/painel/")


def test_the_fields_keep_what_may_be_kept_after_a_wrong_password(page):
    page.watch.allow("status of 401")
    page.goto("/entrar?com=usuario")
    page.get_by_label("Usuário", exact=True).fill("ana")
    page.get_by_label("Senha", exact=True).fill("errada")
    submit(page)
    expect(page.get_by_label("Usuário", exact=True)).to_have_value("ana")
    expect(page.get_by_label("Senha", exact=True)).to_have_value("")
    expect(page.get_by_label("Senha", exact=True)).to_be_focused()
    axe(page)


def test_a_typed_secret_can_be_looked_at(page):
    page.goto("/entrar?com=usuario")
    field = page.locator("#senha")
    field.fill("abc")
    page.get_by_role("button", name="Mostrar a senha").click()
    expect(field).to_have_attribute("type", "text")
    page.get_by_role("button", name="Mostrar a senha").click()
    expect(field).to_have_attribute("type", "password")


def test_everything_works_without_scripts(open_page, house):
    make_real_user()
    page = open_page(house, java_script_enabled=False)
    page.goto("/painel/")
    page.get_by_role("link", name="Usuário e senha").click()
    page.locator("#usuario").fill("ana")
    page.locator("#senha").fill(PASSWORD)
    submit(page)
    page.wait_for_url("**/painel/")
