"""Recurring jobs before the eyes: rows that open and stay open, the switch and its way back, the editor."""

import re

import pytest
from playwright.sync_api import expect

from jobs.models import Job, RecurringJob
from tests.dashboard.recurring import make, run
from tests.kit.browser import PHONE, axe, both_themes, no_sideways_scroll
from tests.kit.processes import eventually
from tests.transitions import rows
from tests.transitions.recurring import half_a_year_away

LIST = "/painel/recorrentes"
KEY = "chave-dos-testes-0123456789"


@pytest.fixture
def page(open_page):
    """In English: the sentences that tests quote."""
    return open_page(locale="en")


def live(page, address):
    """Load the page and wait until it hears."""
    page.goto(address)
    expect(page.locator("html[data-live=on]")).to_have_count(1)


def test_a_row_opens_in_place_and_stays_open_while_the_page_is_live(page):
    made = make("fechamento", "0 0 3 * * *")
    run(made)
    live(page, LIST)
    opener = page.locator(f"#d-{made}")
    opener.click()
    more = page.locator(f"#m-{made}")
    expect(more.locator(".five li")).to_have_count(5)
    expect(page).to_have_url(re.compile(f"aberta={made}"))
    job = run(made, "Failed")
    page.evaluate("Turno.regions.refreshAll()")
    expect(page.locator(f"#r-{made} .c-last a")).to_have_attribute("href", f"/painel/tarefas/{job}")
    expect(more.locator(".hist a")).to_have_count(2)
    expect(opener).to_have_attribute("aria-expanded", "true")
    page.reload()
    expect(more).to_be_visible()
    page.locator(f"#d-{made}").focus()
    page.keyboard.press("Space")
    expect(more).to_have_count(0)
    expect(page.locator(f"#d-{made}")).to_be_focused()


def test_an_answer_that_was_under_way_does_not_close_what_was_opened_meanwhile(page):
    made = make("fechamento", "0 0 3 * * *")
    live(page, LIST)
    held, released = [], []
    page.route("**/painel/partes/recorrentes?*", lambda route: route.continue_() if released else held.append(route))
    make("depois", "0 0 4 * * *")
    page.evaluate("Turno.regions.refreshAll()")
    eventually(lambda: page.evaluate("1") and held, "the list is asked for")
    page.locator(f"#d-{made}").click()
    more = page.locator(f"#m-{made}")
    expect(more.locator(".five li")).to_have_count(5)
    released.append(True)
    for route in held:
        route.continue_()
    expect(page.get_by_role("link", name="1 new schedule")).to_be_visible()
    expect(more.locator(".five li")).to_have_count(5)


def test_the_switch_acts_at_once_and_can_be_undone(page):
    made = make("fechamento", "0 0 3 * * *")
    live(page, LIST)
    switch = page.get_by_role("switch", name="fechamento enabled")
    switch.focus()
    page.keyboard.press("Space")
    expect(page.locator(".toast")).to_contain_text("fechamento disabled")
    expect(page.locator(f"#r-{made} .c-next")).to_contain_text("disabled")
    assert not RecurringJob.objects.get().enabled
    page.locator(".toast").get_by_role("button", name="Undo").click()
    eventually(lambda: RecurringJob.objects.get().enabled, "it is enabled again")
    expect(switch).to_be_checked()
    expect(page.locator(f"#r-{made} .c-next")).not_to_contain_text("disabled")


def test_the_keys_walk_the_rows_and_a_row_runs_now_and_is_deleted_by_its_name(page, allow):
    allow("status of 409")
    made = make("fechamento", "0 0 3 * * *")
    make("depois", half_a_year_away())
    live(page, f"{LIST}?aberta={made}")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="depois", exact=True)).to_be_focused()
    page.get_by_role("button", name="Run fechamento now").click()
    expect(page.locator(".toast")).to_contain_text("fechamento was run")
    job = Job.objects.get()
    expect(page.locator(".toast a")).to_have_attribute("href", f"/painel/tarefas/{job.id}")
    page.get_by_role("button", name="Run fechamento now").click()
    expect(page.locator(".toast[role=alert]")).to_contain_text("does not overlap")
    page.locator(f"#x-{made}").click()
    dialog = page.locator("dialog#confirma")
    verb = dialog.get_by_role("button", name="Delete", exact=True)
    expect(verb).to_be_disabled()
    page.keyboard.type("fechamento")
    verb.click()
    expect(page.locator(f"#r-{made}")).to_have_count(0)
    assert [row.name for row in RecurringJob.objects.all()] == ["depois"]


def test_new_ones_are_offered_and_nothing_moves_by_itself(page):
    make("b", half_a_year_away())
    live(page, LIST)
    names = page.locator(".rec .c-name strong")
    make("a", "* * * * * *")
    page.evaluate("Turno.regions.refreshAll()")
    offer = page.get_by_role("link", name="1 new schedule")
    expect(offer).to_be_visible()
    expect(names).to_have_text(["b"])
    offer.click()
    expect(names).to_have_text(["a", "b"])


def test_the_editor_says_what_would_come_of_it_as_one_types_and_keeps_what_was_typed(page, allow):
    allow("status of 400")
    live(page, f"{LIST}/nova")
    page.get_by_label("Name", exact=True).fill("fechamento")
    page.get_by_label("Type", exact=True).select_option("report.generate")
    cron = page.get_by_label("Cron")
    cron.press_sequentially("0 99 7 * * *")
    expect(page.locator("#e-cron")).to_contain_text("minute")
    expect(cron).to_have_attribute("aria-invalid", "true")
    expect(cron).to_be_focused()
    cron.fill("0 30 7 * * 1-5")
    expect(page.locator("#previa .words")).to_contain_text("07:30:00")
    expect(cron).not_to_have_attribute("aria-invalid", "true")
    expect(page.locator("#previa tbody tr")).to_have_count(5)
    expect(page.locator("#f-payload-t")).to_have_text("Parameters of report.generate")
    page.get_by_label("Time zone", exact=True).fill("America/Manaus")
    expect(page.locator("#previa thead")).to_contain_text("Manaus")
    page.get_by_label("Parameters, as JSON").fill('{"rows": 0}')
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#e-payload")).to_contain_text("Expected at least 1.")
    expect(page.get_by_label("Parameters, as JSON")).to_be_focused()
    expect(page.locator("#a-corrigir")).to_have_text("1 field to correct")
    assert not RecurringJob.objects.exists()
    page.get_by_label("Parameters, as JSON").fill('{"rows": 3}')
    page.get_by_role("button", name="Save").click()
    expect(page).to_have_url(re.compile(f"{LIST}$"))
    expect(page.locator(".toast")).to_contain_text("fechamento saved")
    row = RecurringJob.objects.get()
    assert (row.cron, row.timezone, row.payload) == ("0 30 7 * * 1-5", "America/Manaus", {"rows": 3})


def test_a_payload_that_nobody_wrote_follows_the_type_and_one_that_somebody_wrote_stays(page):
    live(page, f"{LIST}/nova")
    payload, type_ = page.get_by_label("Parameters, as JSON"), page.get_by_label("Type", exact=True)
    type_.select_option("notification.send")
    expect(payload).to_have_value(re.compile("recipient"))
    type_.select_option("report.generate")
    expect(payload).to_have_value("{}")
    payload.fill('{"rows": 9}')
    type_.select_option("file.process")
    expect(page.locator("#f-payload-t")).to_have_text("Parameters of file.process")
    expect(payload).to_have_value('{"rows": 9}')
    page.close(run_before_unload=False)


def test_who_saves_second_is_told_and_loses_nothing(page, open_page, allow):
    allow("status of 409")
    made = make("fechamento", "0 0 3 * * *")
    other = open_page(locale="en")
    for one in (page, other):
        live(one, f"{LIST}/{made}")
    other.get_by_label("Cron").fill("@daily")
    other.get_by_role("button", name="Save").click()
    expect(other).to_have_url(re.compile(f"{LIST}$"))
    page.get_by_label("Cron").fill("@hourly")
    page.get_by_role("button", name="Save").click()
    alert = page.locator("#e-alert")
    expect(alert).to_contain_text("Somebody else has saved it")
    expect(alert).to_be_focused()
    expect(page.get_by_label("Cron")).to_have_value("@hourly")
    assert RecurringJob.objects.get().cron == "@daily"
    # Whoever leaves now is asked first.
    asked = []
    page.once("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.get_by_role("link", name="Back", exact=True).click()
    expect(page).to_have_url(re.compile(f"{LIST}$"))
    assert asked == ["beforeunload"]


def test_a_session_that_ends_while_one_types_is_told_and_what_was_typed_stays(open_page, site_with):
    page = open_page(site_with(key=KEY), locale="en")
    page.goto("/entrar")
    page.locator("input[type=password]").fill(KEY)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/painel/$"))
    live(page, f"{LIST}/nova")
    page.context.clear_cookies(name="turno_session")
    page.get_by_label("Cron").fill("@daily")
    expect(page.get_by_text("Your session has ended")).to_be_visible()
    expect(page.get_by_label("Cron")).to_have_value("@daily")
    expect(page.locator("#previa h2")).to_have_text("Next 5")


@pytest.mark.longo  # `test_every_screen` looks at both as they come
@both_themes
def test_both_screens_fit_and_can_be_read(open_page, theme):
    page = open_page(locale="en", color_scheme=theme, **PHONE)
    long = make("n" * 100, "0 0,7,14,21,28,35,42,49,56 0-5,8-11,13-23 1-15,L * 1-5", "America/Argentina/Buenos_Aires")
    run(long, "Failed")
    make("broken", error="payload.rows: " + "x" * 300)
    make("off", enabled=False, next_run_at=None, disabled_by="user:" + "w" * 100)
    declared = make("declared", source="declared")
    RecurringJob.objects.filter(id=declared).update(skipped=3)
    rows.execute("UPDATE turno.recurring_jobs SET last_skipped_at = now() WHERE id = %s", declared)
    for path in (f"?aberta={long},{declared}", "?busca=nothing", f"/{long}", f"/{declared}", "/nova"):
        page.set_viewport_size(PHONE["viewport"])
        page.goto(f"{LIST}{path}")
        page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        axe(page)
        for width in (360, 390, 900, 1440) if theme == "light" else ():  # a theme changes no measure
            page.set_viewport_size({"width": width, "height": 800})
            no_sideways_scroll(page)


def test_the_form_works_without_scripts(open_page):
    page = open_page(locale="en", java_script_enabled=False)
    page.watch.allow("status of 400")
    page.goto(f"{LIST}/nova")
    page.get_by_label("Name", exact=True).fill("fechamento")
    page.get_by_label("Type", exact=True).select_option("report.generate")
    page.get_by_label("Cron").fill("nonsense")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#e-cron")).to_contain_text("Expected 5 fields")
    expect(page.get_by_label("Name", exact=True)).to_have_value("fechamento")
    page.get_by_label("Cron").fill("@daily")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".rec .c-name strong")).to_have_text("fechamento")
