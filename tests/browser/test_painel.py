"""The landing screen before somebody's eyes: jobs run and end, workers die, and nothing moves that is being read."""

import re

import pytest
from playwright.sync_api import expect

from tests.dashboard.boards import make_worker
from tests.kit import look
from tests.kit.browser import PHONE, axe, both_themes, no_sideways_scroll
from tests.kit.processes import SHORT
from tests.transitions import rows
from workers import tree

EVIL = "<script>window.__x=1</script><img src=x onerror=window.__x=2>"


@pytest.fixture
def english(open_page):
    """A page that speaks English: its words are the ones in the code."""
    return open_page(locale="en")


@pytest.fixture
def quick(open_page, site_with):
    """A page of a house whose workers are missed within a second."""
    return open_page(site_with(**SHORT), locale="en")


def same_page(page):
    """Whether the page is still the one that `mark` marked: it was not loaded again."""
    return page.evaluate("window.__same === 1")


def mark(page):
    page.evaluate("window.__same = 1")


def row(page, name):
    return page.locator(f'#quadro [data-name="{name}"]')


def post(page, **payload):
    """Enqueue a probe by the API; its id."""
    answer = page.request.post("/api/jobs", data={"type": "probe.async", "payload": payload})
    assert answer.ok, answer.text()
    return answer.json()["id"]


def crowd(workers=14, **queues):
    """Idle workers, enough for a mosaic."""
    return [make_worker(f"worker-{n:02}", queues or {"default": 4}) for n in range(1, workers + 1)]


def test_a_job_comes_by_the_api_runs_and_succeeds_on_the_board(english, site, fleet):
    fleet.start("a", "default:2").wait_ready()
    english.goto("/painel/")
    mark(english)
    expect(row(english, "a").locator(".slot--free")).to_have_count(2)
    id_ = post(english, hold=2.5)
    slot = row(english, "a").locator("a.slot")
    expect(slot).to_contain_text("probe.async")
    expect(slot).to_have_attribute("href", f"/painel/tarefas/{id_}")
    expect(english.locator("#faixa .stat").nth(1)).to_contain_text("1 / 2")
    expect(row(english, "a").locator(".who__meta")).to_contain_text("1 of 2")
    expect(slot).to_have_count(0)
    look.wait_state(id_, "Succeeded")
    expect(row(english, "a").locator(".slot--free")).to_have_count(2)
    expect(english.locator("#ritmo-alt")).to_contain_text("1 run in 1 h")
    assert same_page(english)


def test_a_killed_worker_is_seen_and_its_job_returns(quick, fleet):
    victim = fleet.start("victim", "default:1").wait_ready()
    quick.goto("/painel/")
    mark(quick)
    job = post(quick, hold=30, key="k")
    expect(row(quick, "victim").locator("a.slot")).to_contain_text("probe.async")
    tree.kill_tree(victim.process.pid)
    lost = row(quick, "victim").locator("a.slot--lost")
    expect(lost).to_contain_text("back in")
    expect(row(quick, "victim").locator(".who__meta")).to_contain_text("silent for")
    expect(quick.locator("#atencao")).to_contain_text("victim without a heartbeat")
    fleet.start("heir", "default:1").wait_ready()
    look.started(fleet, "k", 2)
    expect(lost).to_have_count(0)
    expect(row(quick, "victim")).to_be_visible()  # it keeps its place
    expect(row(quick, "heir")).to_have_count(0)  # and nobody comes by themselves
    expect(quick.locator("#quadro-novos")).to_contain_text("1 new worker")
    assert same_page(quick)
    quick.locator("#quadro-novos a").click()
    expect(row(quick, "heir").locator("a.slot")).to_have_attribute("href", re.compile(job))


def test_the_first_worker_of_an_empty_board_just_comes(english, fleet):
    english.goto("/painel/")
    mark(english)
    expect(english.locator("#quadro")).to_contain_text("python manage.py runworker")
    expect(english.locator("#veredito")).to_contain_text("No worker online")
    fleet.start("a", "default:2").wait_ready()
    expect(row(english, "a")).to_be_visible()
    expect(english.locator("#veredito")).to_contain_text("All good")
    assert same_page(english)


def test_what_is_focused_and_read_stays_while_its_row_changes(english):
    for n in range(9):
        id_ = make_worker(f"worker-{n}", {"default": 4})
        rows.make_job("Processing", worker=id_, progress=20, stage="Linha 1")
    english.goto("/painel/")
    slot = row(english, "worker-7").locator("a.slot")
    slot.focus()
    english.evaluate("window.scrollTo(0, 400)")
    focused, scrolled = english.evaluate("[document.activeElement.id, window.scrollY]")
    english.evaluate("window.__node = document.activeElement")
    rows.execute("UPDATE turno.jobs SET progress = 60, stage = 'Linha 2'")
    expect(slot).to_contain_text("Linha 2")
    expect(slot.locator("progress")).to_have_attribute("value", "60")
    assert english.evaluate("[document.activeElement.id, window.scrollY]") == [focused, scrolled]
    assert english.evaluate("window.__node === document.activeElement")


def test_the_mosaic_is_one_tab_stop_a_group_and_the_arrows_walk_in_it(english):
    crowd()
    crowd(2, files=2)
    english.goto("/painel/")
    stops = english.locator("#quadro .wk[tabindex='0']")
    expect(stops).to_have_count(2)
    stops.first.focus()
    here = "document.activeElement.dataset.name"
    english.keyboard.press("ArrowRight")
    assert english.evaluate(here) == "worker-02"
    english.keyboard.press("ArrowDown")
    assert english.evaluate(here) == "worker-06"  # four beside each other
    english.keyboard.press("ArrowUp")
    english.keyboard.press("ArrowLeft")
    assert english.evaluate(here) == "worker-01"
    english.keyboard.press("ArrowLeft")
    assert english.evaluate(here) == "worker-01"
    english.keyboard.press("End")
    assert english.evaluate(here) == "worker-14"
    english.keyboard.press("Home")
    assert english.evaluate(here) == "worker-01"
    expect(english.locator("[data-lupa]")).to_contain_text("worker-01: 0 of 4 slots busy.")
    english.keyboard.press("Enter")
    expect(english).to_have_url(re.compile(r"/painel/workers/"))


def test_the_tab_stop_the_reading_line_and_the_filter_survive_a_refresh(english):
    ids = crowd()
    rows.make_job("Processing", worker=ids[1], progress=20, type="file.process", stage="Linha 1")
    english.goto("/painel/")
    english.locator("#quadro-filtro").fill("WORKER-0")
    expect(row(english, "worker-14")).to_be_hidden()
    row(english, "worker-01").focus()
    english.keyboard.press("ArrowRight")
    expect(english.locator("[data-lupa]")).to_contain_text("Longest: file.process")
    rows.execute("UPDATE turno.jobs SET progress = 60, stage = 'Linha 2'")
    rows.execute("UPDATE turno.workers SET state = 'Draining' WHERE name = 'worker-14'")
    expect(row(english, "worker-02").locator("[data-p='6']")).to_have_count(1)
    expect(row(english, "worker-14").locator("[data-s='shut']")).to_have_count(4)
    expect(row(english, "worker-14")).to_be_hidden()
    expect(english.locator("[data-lupa]")).to_contain_text("Linha 2")
    expect(english.locator("#quadro .wk[tabindex='0']")).to_have_attribute("data-name", "worker-02")
    assert english.evaluate("document.activeElement.dataset.name") == "worker-02"


def test_only_those_with_a_problem_can_be_shown(english):
    crowd()
    make_worker("worker-99", seen_ago=30)
    english.goto("/painel/")
    button = english.get_by_role("button", name="With a problem 1")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(english.locator("#quadro .wk:visible")).to_have_count(1)
    english.get_by_role("button", name="All", exact=True).click()
    expect(english.locator("#quadro .wk:visible")).to_have_count(15)


def test_the_density_that_was_chosen_is_kept(english):
    crowd(2)
    english.goto("/painel/")
    expect(english.locator("#quadro table")).to_be_visible()
    english.get_by_role("link", name="Mosaic").click()
    expect(english.locator("#quadro .wk")).to_have_count(2)
    english.goto("/painel/")
    expect(english.locator("#quadro .wk")).to_have_count(2)


@pytest.mark.parametrize("density", ["detalhe", "mosaico"])
def test_what_jobs_and_workers_say_is_never_markup(english, density):
    id_ = make_worker(EVIL, {"default": 2}, problems=[{"module": EVIL, "error": EVIL}])
    rows.make_job("Processing", worker=id_, stage=EVIL)
    english.goto(f"/painel/?quadro={density}")
    expect(english.locator("#quadro")).to_contain_text(EVIL)
    rows.execute("UPDATE turno.jobs SET stage = %s", EVIL + "2")
    english.locator("#quadro .wk, #quadro a.slot").first.focus()
    expect(english.locator("#quadro")).to_contain_text(EVIL + "2")
    assert english.evaluate("window.__x") is None


def test_the_wall_comes_by_a_key_or_by_its_address_and_shows_no_controls(english):
    crowd(2)
    english.goto("/painel/")
    expect(english.locator(".rail")).to_be_visible()
    english.keyboard.press("m")
    expect(english.locator(".rail")).to_be_hidden()
    expect(english).to_have_url(re.compile(r"mural"))
    expect(english.locator("[data-wall-clock]")).to_have_text(re.compile(r"^\d\d:\d\d:\d\d$"))
    english.reload()
    expect(english.locator(".rail")).to_be_hidden()
    english.keyboard.press("Escape")
    expect(english.locator(".rail")).to_be_visible()


def fill():
    """Workers in each state, jobs with and without a percentage, a pause, a queue that nobody serves."""
    busy(make_worker("worker-1", {"default": 4, "critical": 2}))
    busy(make_worker("worker-with-a-very-long-name-2", {"default": 4}, "Draining"))
    busy(make_worker("worker-3", {"reports": 2}, seen_ago=40))
    rows.make_jobs(3, queue="orphan")
    rows.execute("INSERT INTO turno.pauses (scope, value, reason) VALUES ('queue', 'reports', 'x')")


@both_themes
@pytest.mark.parametrize("device", [{}, PHONE])
@pytest.mark.parametrize("density", ["detalhe", "mosaico", "vazio"])
def test_the_screen_breaks_no_rule_of_access_and_never_scrolls_sideways(open_page, theme, device, density):
    page = open_page(color_scheme=theme, **device)
    if density != "vazio":
        fill()
    page.goto(f"/painel/?quadro={density}")
    expect(page.locator("#quadro")).to_be_visible()
    axe(page)
    no_sideways_scroll(page)


@pytest.mark.parametrize("density", ["detalhe", "mosaico"])
def test_the_narrowest_screens_do_not_scroll_sideways(open_page, density):
    fill()
    page = open_page(**PHONE | {"viewport": {"width": 320, "height": 740}})
    page.goto(f"/painel/?quadro={density}")
    for width in (320, 360, 600, 768, 861, 1024, 1180):
        page.set_viewport_size({"width": width, "height": 800})
        no_sideways_scroll(page)


def busy(id_):
    for slot, progress in ((1, 0), (2, 62)):
        rows.make_job("Processing", worker=id_, slot=slot, progress=progress, stage="Conferindo o saldo de setembro")
