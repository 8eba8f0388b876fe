"""The admin in a real browser: under the strict policy, in both themes, wide and narrow, by keyboard and eye."""

import pytest
from playwright.sync_api import expect

from tests.kit.browser import PHONE, axe, both_themes, no_sideways_scroll
from tests.kit.people import PASSWORD, make_real_user
from tests.transitions import rows

SCREENS = ["", "jobs/job/", "jobs/deadletter/", "jobs/worker/", "jobs/job/{job}/change/", "auth/user/",
           "auth/user/add/", "auth/user/{user}/change/", "auth/group/add/", "password_change/",
           "jobs/job/{job}/history/",
           "admin/logentry/"]  # fmt: skip
EVIL = "<script>window.__x=1</script><img src=x onerror=window.__x=2>"


@pytest.fixture
def root(clean_tables):
    return make_real_user("raiz", is_staff=True, is_superuser=True)


def sign_in(page, path="/admin/"):
    page.goto(path)
    page.locator("#usuario").fill("raiz")
    page.locator("#senha").fill(PASSWORD)
    page.get_by_role("button", name="Entrar").click()
    page.wait_for_url(f"**{path}")


@both_themes
@pytest.mark.parametrize("size", [{}, PHONE], ids=["wide", "phone"])
def test_no_screen_of_the_admin_breaks_the_policy_or_leaves_the_window(root, open_page, theme, size):
    made = rows.make_job("Failed", payload={"a": {"b": 1}}, error_message="no\n" * 50)
    page = open_page(color_scheme=theme, **size)
    sign_in(page)
    for screen in SCREENS:
        page.goto(f"/admin/{screen.format(job=made.id, user=root.pk)}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        no_sideways_scroll(page)


@both_themes
@pytest.mark.parametrize("screen", ["", "jobs/job/", "jobs/job/{job}/change/"])
def test_the_screens_of_ours_are_open_to_everybody(root, open_page, theme, screen):
    made = rows.make_job("Failed", payload={"a": 1})
    page = open_page(color_scheme=theme)
    sign_in(page)
    page.goto(f"/admin/{screen.format(job=made.id)}")
    axe(page, preload=False)


def test_it_wears_the_house_s_colours_and_letters_in_both_themes(root, page):
    sign_in(page)
    colour = "() => getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="light")
    assert page.evaluate(colour) == "rgb(246, 247, 247)"
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(colour) == "rgb(15, 18, 19)"
    assert "Red Hat Text" in page.evaluate("() => getComputedStyle(document.body).fontFamily")
    page.get_by_role("button", name="Tema").click()
    assert page.evaluate(colour) == "rgb(246, 247, 247)"
    page.reload()
    assert page.evaluate(colour) == "rgb(246, 247, 247)"


def test_what_jobs_wrote_is_shown_and_never_run(root, page):
    made = rows.make_job("Failed", payload={EVIL: EVIL}, error_type=EVIL, error_message=EVIL, unique_key=EVIL)
    rows.make_letter(made, error_type=EVIL, error_message=EVIL)
    sign_in(page)
    for path in ("/admin/jobs/job/", f"/admin/jobs/job/{made.id}/change/", "/admin/jobs/deadletter/"):
        page.goto(path)
        expect(page.get_by_text(EVIL).first).to_be_visible()
        assert page.evaluate("() => window.__x") is None


def test_selected_jobs_are_cancelled_and_it_says_how_many(root, page):
    waiting, ended = rows.make_job(), rows.make_job("Succeeded")
    sign_in(page)
    page.goto("/admin/jobs/job/")
    page.locator("#action-toggle").check()
    page.locator("select[name=action]").select_option("cancel")
    page.locator(".actions button").click()
    said = page.locator(".messagelist li")
    expect(said).to_have_count(2)
    expect(said.first).to_contain_text("1")
    assert rows.state(waiting.id) == "Cancelled"
    assert rows.state(ended.id) == "Succeeded"


def test_the_search_finds_by_a_key(root, page):
    found = rows.make_job(unique_key="a-chave")
    rows.make_job()
    sign_in(page)
    page.goto("/admin/jobs/job/")
    page.locator("#searchbar").fill("a-chave")
    page.locator("#searchbar").press("Enter")
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    expect(page.locator(f"#result_list a[href*='{found.id}']")).to_be_visible()


def test_signing_out_leads_to_the_house_s_login(root, page):
    sign_in(page)
    page.get_by_role("button", name="Sair").click()
    page.goto("/admin/")
    page.wait_for_url("**/entrar?com=usuario**")
