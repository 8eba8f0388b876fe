"""What an operator's hands and eyes need: fingers, the keyboard alone, paper, no scripts."""

import re

import pytest
from playwright.sync_api import expect

from jobs import operations
from jobs.models import DeadLetter, Job, Worker
from tests.dashboard import recurring
from tests.kit.browser import PHONE, SETTLED
from tests.kit.processes import eventually
from workers.demo.fill import fill

SCREENS = (
    "/painel/", "/painel/tarefas", "/painel/workers", "/painel/erros", "{job}", "{worker}", "/painel/recorrentes",
    "{schedule}",
)  # fmt: skip
every_screen = pytest.mark.parametrize("screen", SCREENS)
FINGER = 43.5  # CSS pixels
# What is pressed alone; a link within a text or a row has the row, or the space around it.
PRESSED = "button, summary, select, .btn, .newrows, .tabs a, .crumbs a, .hit"
SMALL = """([pressed, least]) => [...document.querySelectorAll(pressed)]
    .filter((e) => e.checkVisibility({ visibilityProperty: true }) && !e.closest(".vh, thead, dialog:not([open])"))
    .map((e) => [e.className || e.tagName, e.textContent.trim().slice(0, 30), e.getBoundingClientRect()])
    .filter(([, , box]) => box.height < least || box.width < least)
    .map(([name, said, box]) => `${name} "${said}" ${box.width}x${box.height}`)"""
HIDDEN = """async () => {
    const held = document.activeElement;
    if (held === document.body || held.closest(".skip")) return "";
    const seen = () => {
        const box = held.getBoundingClientRect();
        const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
        const around = top && !top.matches("main, body") && top.contains(held);
        return box.width > 4 && box.height > 4 && top && (held.contains(top) || around);
    };
    // What lay above it may still be going: the skip link, a page that scrolls.
    for (let frames = 0; frames < 60 && !seen(); frames += 1) await new Promise(requestAnimationFrame);
    return seen() ? "" : `${held.tagName}#${held.id}.${held.className} "${held.textContent.trim().slice(0, 40)}"`;
}"""


@pytest.fixture
def demo():
    """A demonstration, and the addresses of one job and one worker of it."""
    fill(seed=7, finished=150)
    job = Job.objects.filter(state="Failed", error_type="TimeoutError").order_by("-id")[0]
    ids = {
        "job": f"/painel/tarefas/{job.id}",
        "worker": f"/painel/workers/{Worker.objects.get(name='worker-01').id}",
        "schedule": f"/painel/recorrentes/{recurring.make('fechamento-diario')}",
    }
    return lambda screen: screen.format(**ids)


def live(page, address):
    """Load the page and wait until it hears."""
    page.goto(address)
    expect(page.locator("html[data-live=on]")).to_have_count(1)
    page.wait_for_load_state("networkidle")


@every_screen
def test_a_finger_hits_everything_that_is_pressed(open_page, demo, screen):
    phone = open_page(**PHONE)
    live(phone, demo(screen))
    assert phone.evaluate(SMALL, [PRESSED, FINGER]) == []


def test_on_a_telephone_the_whole_card_opens_its_row_and_its_box_still_selects(phone, demo):
    live(phone, demo("/painel/tarefas?estado=falha"))
    row = phone.locator("[data-rows] tr").first
    row.locator("input[data-row]").tap()
    expect(phone.locator(".bulk")).to_be_visible()
    expect(phone).to_have_url(re.compile("estado=falha$"))
    box = phone.locator("[data-rows] tr").nth(1).bounding_box()
    phone.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] - 8)
    expect(phone).to_have_url(re.compile("/painel/tarefas/[0-9a-f-]{36}$"))


@pytest.mark.parametrize("width", [1440, 1024])
@every_screen
def test_the_focus_is_never_out_of_sight(open_page, demo, screen, width):
    page = open_page(viewport={"width": width, "height": 900})
    live(page, demo(screen))
    page.keyboard.press(".")  # paused: no row comes or goes while the keys walk
    for _step in range(45):
        page.keyboard.press("Tab")
        assert page.evaluate(HIDDEN) == ""


def test_zone_and_language_are_reached_where_the_navigation_is_icons(open_page, demo):
    page = open_page(viewport={"width": 1024, "height": 800})
    live(page, demo("/painel/"))
    page.get_by_role("button", name="Fuso e idioma").click()
    expect(page.locator("dialog#preferencias")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Fuso e idioma")).to_be_focused()


def test_the_keys_walk_the_causes_and_keep_their_place_through_an_update(page, demo):
    live(page, demo("/painel/erros"))
    causes = page.locator("#grupos .grp")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(causes.nth(1).locator(".grp__t")).to_be_focused()
    last = causes.last
    name = last.get_attribute("id")
    letter = DeadLetter.objects.filter(fingerprint=last.get_attribute("data-cause"), resolved_at=None)[0]
    operations.discard_letter(letter.id, actor="key")
    page.evaluate("Turno.regions.refreshAll()")
    expect(page.locator(f"#{name}")).to_have_count(0)
    expect(causes.nth(1)).to_have_attribute("data-here", "")
    page.keyboard.press("j")
    expect(causes.nth(2).locator(".grp__t")).to_be_focused()


def test_a_cause_that_leaves_passes_the_focus_to_its_neighbour(page, demo):
    live(page, demo("/painel/erros"))
    causes = page.locator("#grupos .grp")
    many = causes.count()
    name = causes.nth(many - 1).get_attribute("id")
    button = causes.nth(many - 1).get_by_role("button", name=re.compile("^Reenfileirar"))
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator(f"#{name}")).to_have_count(0)
    eventually(lambda: page.evaluate("document.activeElement.closest('.grp') !== null"), "a cause has the focus")


def test_paper_is_white_whatever_the_screen_is(open_page, demo):
    page = open_page(color_scheme="dark")
    page.goto(demo("/painel/"))
    dark = page.evaluate("getComputedStyle(document.body).color")
    page.emulate_media(media="print")
    page.evaluate(SETTLED)
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(21, 24, 27)" != dark


def test_without_scripts_nothing_calls_itself_live(open_page, demo):
    page = open_page(java_script_enabled=False)
    page.goto(demo("/painel/"))
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator(".rail .live")).to_be_hidden()
    expect(page.locator(".rail .go")).to_be_hidden()
