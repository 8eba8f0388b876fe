"""The list of jobs before the eyes: what is chosen stays chosen, what is new is offered, nothing moves by itself."""

import re

import pytest
from playwright.sync_api import expect

from jobs import operations
from jobs.announcements import SCREENS
from jobs.ids import new_id
from jobs.nudge import Nudge
from tests.kit.browser import PHONE, axe, both_themes, no_sideways_scroll
from tests.transitions import rows

EVIL = "<img src=x onerror=window.__x=1><script>window.__x=2</script>"


def made(state="Enqueued", **columns):
    return rows.make_job(state, **({"id": new_id()} | columns)).id


def told(*ids):
    """As the engine does after a change: those who look are told."""
    rows.execute("SELECT pg_notify(%s, %s)", SCREENS, Nudge(["jobs"], [str(id_) for id_ in ids]).text())


def box(page, id_):
    return page.locator(f"#j-{id_} input[data-row]")


@pytest.fixture
def en(open_page):
    return open_page(locale="en")


@pytest.fixture
def live(en):
    """A page of the list whose connection stands."""

    def show(query=""):
        en.goto(f"/painel/tarefas{query}")
        en.wait_for_function("() => window.Turno && Turno.live && Turno.live.connected")
        return en

    return show


def test_a_selection_survives_live_swaps_and_paging_and_a_new_filter_clears_it(live):
    ids = [made() for _ in range(55)][::-1]
    page = live()
    box(page, ids[1]).click()
    box(page, ids[4]).click(modifiers=["Shift"])
    expect(page.locator("[data-bulk-n]")).to_have_text("4 selected")
    operations.cancel(ids[2], actor="ana")
    told(ids[2])
    expect(page.locator(f"#j-{ids[2]} .c-state")).to_contain_text("Cancelled")
    expect(box(page, ids[2])).to_be_checked()
    expect(page.locator("input[data-row]:checked")).to_have_count(4)
    expect(page.locator("[data-do=cancel] b")).to_have_text("3")
    expect(page.locator("[data-do=requeue] b")).to_have_text("1")
    page.get_by_role("link", name="Older").click()
    expect(page.locator("#linhas tr")).to_have_count(5)
    expect(page.locator("[data-bulk-n]")).to_have_text("4 selected")
    page.get_by_role("link", name="Newer").click()
    expect(page.locator("input[data-row]:checked")).to_have_count(4)
    page.locator("#aba-Enqueued").click()
    expect(page.locator("#aba-Enqueued")).to_have_attribute("aria-current", "page")
    expect(page.locator("[data-bulk]")).to_be_hidden()


def test_new_jobs_are_offered_and_come_only_when_asked_for(live):
    old = made()
    page = live()
    new = [made(), made("Failed")]
    told(*new)
    offer = page.get_by_role("link", name="2 new jobs")
    expect(offer).to_be_visible()
    expect(page.locator("#linhas tr")).to_have_count(1)
    offer.click()
    expect(page.locator("#linhas tr")).to_have_count(3)
    assert page.locator("#linhas tr").nth(2).get_attribute("data-job") == str(old)


def test_a_job_that_leaves_the_tab_keeps_its_row_and_a_deleted_one_says_so(live):
    first, second = made(), made()
    page = live("?estado=fila")
    expect(page.locator("#linhas tr")).to_have_count(2)
    box(page, first).click()
    operations.cancel(first, actor="ana")
    told(first)
    row = page.locator(f"#j-{first}")
    expect(row.locator(".c-state")).to_contain_text("Cancelled")
    operations.delete(first)
    told(first)
    expect(row.locator(".c-state")).to_contain_text("Deleted")
    expect(row).to_contain_text("test.echo")
    expect(page.locator("[data-bulk]")).to_be_hidden()
    operations.cancel(second, actor="ana")
    told(first, second)
    expect(page.locator(f"#j-{second} .c-state")).to_contain_text("Cancelled")
    expect(row.locator(".c-state")).to_contain_text("Deleted")
    expect(page.locator("#linhas tr")).to_have_count(2)


def test_what_jobs_say_is_shown_literally_in_every_place(live):
    id_ = made(
        "Failed", error_type=EVIL, error_message=EVIL, payload={EVIL: EVIL}, unique_key=EVIL, origin=EVIL, tags=[EVIL]
    )
    made("Processing", stage=EVIL)
    made("Cancelled", cancel_requested_by=EVIL)
    page = live()
    expect(page.locator(f"#j-{id_}")).to_contain_text("<img src=x")
    page.goto("/painel/tarefas?busca=" + EVIL + "&etiqueta=" + EVIL + "&erro=" + EVIL + "&prioridade=" + EVIL)
    expect(page.locator(".chips")).to_contain_text("<script>")
    page.goto("/painel/tarefas?etiqueta=" + EVIL)
    box(page, id_).click()
    page.locator("[data-whole]").click()
    expect(page.locator("[data-bulk-n]")).to_contain_text("All 1")
    page.locator("[data-do=delete]").click()
    expect(page.locator("#confirma")).to_contain_text("<script>")
    assert page.evaluate("window.__x") is None


def test_all_that_match_are_cancelled_and_no_later_one(live):
    wanted = [made(queue="slow") for _ in range(30)]
    other = made(queue="fast")
    page = live("?fila=slow")
    box(page, wanted[5]).click()
    page.locator("[data-whole]").click()
    expect(page.locator("[data-bulk-n]")).to_contain_text("All 30")
    later = made(queue="slow")
    page.locator("[data-do=cancel]").click()
    dialog = page.locator("#confirma")
    expect(dialog).to_contain_text("slow")
    expect(dialog.locator("[data-verb]")).to_be_disabled()
    page.locator("#confirma-n").fill("30")
    dialog.locator("[data-verb]").click()
    expect(page.locator("#avisos")).to_contain_text("30 jobs cancelled")
    expect(page.locator("#lista-t")).to_be_focused()
    expect(page.locator("[data-bulk]")).to_be_hidden()
    assert {rows.state(id_) for id_ in wanted} == {"Cancelled"}
    assert {rows.state(id_) for id_ in (other, later)} == {"Enqueued"}


def test_deleting_two_asks_for_the_number_and_tells_what_did_not_apply(live):
    ids = [made("Succeeded") for _ in range(2)]
    page = live()
    page.locator("input[data-all]").click()
    page.locator("[data-do=delete]").click()
    expect(page.locator("#confirma-n")).to_be_focused()
    operations.delete(ids[0])
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    expect(page.locator("#avisos")).to_contain_text("1 job deleted")
    expect(page.locator("#avisos")).to_contain_text("1 no longer existed")


def test_the_keyboard_alone_chooses_and_cancels(live):
    ids = [made() for _ in range(3)][::-1]
    page = live()
    for key in ("j", "j", "x", "j", "x"):
        page.keyboard.press(key)
    expect(page.locator("[data-bulk-n]")).to_have_text("2 selected")
    page.keyboard.press("Escape")
    expect(page.locator("[data-bulk]")).to_be_hidden()
    page.keyboard.press("x")
    page.keyboard.press("k")
    page.keyboard.press("x")
    page.locator("[data-do=cancel]").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#avisos")).to_contain_text("2 jobs cancelled")
    assert {rows.state(id_) for id_ in ids[1:]} == {"Cancelled"}
    assert rows.state(ids[0]) == "Enqueued"


def test_the_menu_of_a_row_acts_and_says_why_it_can_not(live):
    id_ = made()
    page = live()
    menu = page.locator(f"#m-{id_}")
    menu.locator("summary").click()
    off = menu.locator("[data-row-act=delete]")
    expect(off).to_have_attribute("aria-disabled", "true")
    expect(off).to_contain_text("Only after it finishes")
    menu.locator("[data-row-act=cancel]").click()
    expect(page.locator(f"#j-{id_} .c-state")).to_contain_text("Cancelled")
    assert rows.state(id_) == "Cancelled"


def test_filters_make_a_short_address_that_shows_the_same_again(live, open_page):
    wanted = made(queue="reports", type="report.generate", priority=5)
    made(queue="default")
    rows.execute("INSERT INTO turno.job_types (name) VALUES ('report.generate')")
    page = live()
    page.locator("#filtrar select[name=tipo]").select_option("report.generate")
    page.wait_for_url(re.compile(r"/painel/tarefas\?tipo=report\.generate$"))
    page.get_by_role("button", name="Filters").click()
    page.locator("#fi-prioridade").fill("5")
    page.locator("#fi-prioridade").blur()
    expect(page.locator("[data-number-shown]")).to_have_text("1")
    page.locator("#filtros button[type=submit]").click()
    page.wait_for_url(re.compile(r"prioridade=5"))
    again = open_page(locale="en")
    again.goto(page.url)
    expect(again.locator("#linhas tr")).to_have_count(1)
    expect(again.locator(f"#j-{wanted}")).to_be_visible()


@both_themes
def test_the_list_fits_a_phone_and_is_accessible(open_page, theme):
    for state in ("Enqueued", "Processing", "Succeeded", "Failed", "Cancelled", "Scheduled"):
        made(state, payload={"competencia": "2026-10", "arquivo": "x" * 200}, type="integration." + "a" * 90)
    page = open_page(color_scheme=theme, **PHONE)
    for width in (390, 360, 320):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto("/painel/tarefas?periodo=24h")
        no_sideways_scroll(page)
    page.locator("input[data-row]").first.click()
    expect(page.locator("[data-bulk]")).to_be_visible()
    axe(page)
    page.locator(".morefilters").click()
    expect(page.locator("#filtros")).to_be_visible()
    axe(page)


@both_themes
def test_the_list_is_accessible_on_a_desk(en, theme):
    en.emulate_media(color_scheme=theme)
    for state in ("Enqueued", "Processing", "Succeeded", "Failed", "Cancelled", "Scheduled"):
        made(state, payload={"competencia": "2026-10"}, priority=3, progress=40 if state == "Processing" else 0)
    en.goto("/painel/tarefas?prioridade=x")
    en.locator("input[data-row]").first.click()
    en.locator(".c-menu summary").last.click()  # an open one lies over those below it
    axe(en)
    en.goto("/painel/tarefas?busca=nothing-says-this")
    expect(en.get_by_text("No jobs match these filters")).to_be_visible()
    axe(en)
