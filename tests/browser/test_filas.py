"""The queues before the eyes: pausing asks first, everybody sees it, and what changes changes where it stands."""

import pytest
from playwright.sync_api import expect

from jobs import operations
from jobs.enqueue import enqueue
from jobs.flow import pause, resume
from tests.dashboard.boards import make_worker
from tests.kit import gatecheck, handlers, look  # noqa: F401  (the job types)
from tests.kit.browser import PHONE, axe, both_themes, no_sideways_scroll
from tests.kit.processes import eventually
from tests.kit.site import FORGET
from tests.transitions import rows
from tests.transitions.rows import ahead


@pytest.fixture
def page(open_page):
    """In English: the sentences that tests quote."""
    return open_page(locale="en")


def key(value, *, waiting=0, **columns):
    keyed = {"concurrency_key": value, "concurrency_limit": 1} | columns
    made = rows.make_job("Processing", **keyed)
    rows.execute("INSERT INTO turno.concurrency_keys (kind, value) VALUES ('key', %s)", value)
    rows.execute(
        "INSERT INTO turno.concurrency_slots (key_id, slot, job_id, dispatch_id) SELECT id, 1, %s, %s"
        " FROM turno.concurrency_keys WHERE value = %s", made.id, made.token, value,
    )  # fmt: skip
    for _ in range(waiting):
        rows.make_job("Scheduled", waiting_for="concurrency_key", gate=value, **keyed)
    return made


def again(page):
    """What is shared by all viewers for some seconds is read anew, at once."""
    page.request.get(FORGET)
    page.evaluate("Turno.regions.refreshAll()")


def test_a_queue_is_paused_with_a_reason_that_others_see_and_resumed(page, open_page):
    make_worker("a", {"default": 4, "reports": 2})
    rows.make_jobs(3, queue="reports")
    other = open_page(locale="en")
    other.goto("/painel/filas")
    page.goto("/painel/filas")
    page.get_by_role("button", name="Pause reports").click()
    dialog = page.locator("dialog#pausar-f")
    expect(dialog.locator("h2")).to_have_text("Pause reports?")
    expect(dialog).to_contain_text("The 3 in the queue wait until somebody resumes it. New jobs keep coming in.")
    expect(dialog.locator("input[name=reason]")).to_be_focused()
    axe(page, "dialog#pausar-f")
    page.keyboard.type("the printer")
    page.keyboard.press("Enter")
    expect(dialog).not_to_be_visible()
    for one in (page, other):
        row = one.locator("#f-reports")
        expect(row).to_contain_text("Paused")
        expect(row).to_contain_text("the printer")
        expect(one.locator("#filas-resumo")).to_contain_text("1 paused")
    expect(page.locator("#nav-contagens")).to_contain_text("1 queue paused")
    page.get_by_role("button", name="Resume reports").click()
    expect(page.locator("#f-reports")).not_to_contain_text("Paused")
    expect(other.get_by_role("button", name="Pause reports")).to_be_visible()


def test_who_thinks_better_of_it_pauses_nothing_and_has_the_focus_back(page):
    make_worker("a", {"default": 4})
    page.goto("/painel/filas")
    button = page.get_by_role("button", name="Pause default")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator("dialog#pausar-f")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(button).to_be_focused()
    assert rows.select("SELECT id FROM turno.pauses") == []


def test_an_open_dialog_outlives_what_changes_behind_it(page):
    make_worker("a", {"default": 4})
    page.goto("/painel/filas")
    page.get_by_role("button", name="Pause default").click()
    reason = page.locator("dialog#pausar-f input[name=reason]")
    reason.fill("half a sen")
    rows.make_jobs(7)
    again(page)
    expect(page.locator("#f-default .big.right")).to_contain_text("7")
    expect(page.locator("dialog#pausar-f")).to_be_visible()
    expect(reason).to_have_value("half a sen")


def test_a_key_is_paused_by_its_name_and_what_is_wrong_is_said_in_the_dialog(page, allow):
    allow("status of 400")
    page.goto("/painel/filas")
    page.get_by_role("button", name="Pause…").click()
    dialog = page.locator("dialog#pausar-x")
    axe(page, "dialog#pausar-x")
    dialog.get_by_label("Name").fill("Not A Type")
    page.keyboard.press("Enter")
    expect(dialog.locator("[data-wrong]")).to_be_visible()
    expect(dialog.get_by_label("Name")).to_have_attribute("aria-invalid", "true")
    expect(dialog.get_by_label("Name")).to_be_focused()
    dialog.get_by_label("Kind").select_option("key")
    dialog.get_by_label("Goes on").select_option("1h")
    dialog.get_by_role("button", name="Pause", exact=True).click()
    expect(dialog).not_to_be_visible()
    row = page.locator(".ps tbody tr")
    expect(row).to_contain_text("Not A Type")
    expect(row).to_contain_text("resumes in")
    row.get_by_role("button").click()
    expect(page.locator(".ps")).to_have_count(0)


def test_rows_and_keys_change_where_they_stand(page):
    make_worker("a", {"b": 2, "c": 2})
    key("crm", waiting=2)
    page.goto("/painel/filas")
    names = page.locator(".qs tbody strong")
    expect(names).to_have_text(["b", "c", "default"])
    pause("queue", "b", reason="elsewhere")
    make_worker("z", {"a": 1})
    rows.execute("UPDATE turno.jobs SET type = 'boletos.gerar' WHERE state = 'Processing'")
    again(page)
    expect(page.locator("#f-b")).to_contain_text("elsewhere")
    expect(page.locator(".ks .c-who")).to_contain_text("boletos.gerar")
    expect(names).to_have_text(["b", "c", "default"])
    resume("queue", "b")
    again(page)
    expect(page.locator("#f-b")).not_to_contain_text("Paused")
    page.get_by_role("link", name="1 new queue").click()
    expect(names).to_have_text(["a", "b", "c", "default"])


def test_the_keyboard_goes_to_the_queues_and_through_their_rows(page):
    make_worker("a", {"b": 2, "c": 2})
    page.goto("/painel/")
    page.keyboard.press("g")
    page.keyboard.press("f")
    expect(page.locator("h1")).to_have_text("Queues")
    expect(page.locator("html[data-live=on]")).to_have_count(1)
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("#f-c a").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("c")


def test_the_settings_of_a_queue_are_saved_and_what_is_wrong_is_said_beside_them(page, allow):
    allow("status of 400")
    make_worker("a", {"reports": 2})
    page.goto("/painel/filas/reports")
    page.get_by_label("Slots a worker").fill("3")
    page.get_by_label("Default priority").fill("-2")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toast")).to_contain_text("Saved.")
    page.reload()
    expect(page.get_by_label("Slots a worker")).to_have_value("3")
    page.locator("form[data-settings-form]").evaluate("(form) => { form.noValidate = true; }")
    page.get_by_label("Default priority").fill("11")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("form[data-settings-form] [data-wrong]")).to_contain_text("from -10 to 10")
    expect(page.get_by_label("Default priority")).to_be_focused()
    assert rows.select("SELECT slots, default_priority FROM turno.queues") == [{"slots": 3, "default_priority": -2}]


def test_a_parked_job_leads_to_who_holds_its_key_and_the_key_to_who_waits(page):
    make_worker("a", {"default": 2})
    holder = key("crm", waiting=1)
    page.goto("/painel/filas")
    page.locator(".ks td[data-l] a").click()
    expect(page.locator("tr[id^=j-], [id^=j-]")).to_have_count(1)
    page.locator("tbody .c-job a").first.click()
    why = page.locator("#agora")
    expect(why).to_contain_text("crm: 1 of 1 in use.")
    why.locator(".others a").click()
    page.wait_for_url(f"**/painel/tarefas/{holder.id}")


def test_real_workers_hand_a_key_on_before_the_eyes_and_every_waiting_job_says_the_truth(page, fleet):
    fleet.start("a", "default:4").wait_ready()
    first = enqueue("probe.talk", {"key": "t", "hold": 600}, concurrency_key="crm")
    look.wait_state(first.id, "Processing")
    second = enqueue("probe.talk", {"key": "u", "hold": 600}, concurrency_key="crm")
    page.goto("/painel/filas")
    row = page.locator(".ks tbody tr", has_text="crm")
    expect(row.locator("td[data-l]")).to_have_text("1")
    expect(row.locator(".c-who a")).to_have_attribute("href", f"/painel/tarefas/{first.id}")
    eventually(gatecheck.waits_truly, "whatever is parked is so for a reason")
    operations.cancel(first.id)
    look.wait_state(second.id, "Processing")
    expect(row.locator(".c-who a")).to_have_attribute("href", f"/painel/tarefas/{second.id}")
    expect(row.locator("td[data-l]")).to_have_text("0")
    operations.cancel(second.id)
    expect(row).to_have_count(0)
    eventually(gatecheck.waits_truly, "no slot is left behind")


@both_themes
def test_the_screen_fits_and_can_be_read(open_page, theme):
    page = open_page(locale="en", color_scheme=theme, **PHONE)
    long = "q" * 100
    make_worker("a", {long: 64, "default": 4})
    rows.make_jobs(5, queue="nightly")
    pause("queue", long, reason="<b>" + "r" * 300, actor="user:" + "u" * 150)
    pause("key", "k" * 200, reason="why")
    key("k" * 200, waiting=2, type="t" * 200)
    rows.execute("INSERT INTO turno.job_types (name, max_running) VALUES (%s, 3)", "t" * 200)
    rows.execute('INSERT INTO turno.rates (type, allowed, "window") VALUES (%s, 100, 60)', "t" * 200)
    rows.make_job("Scheduled", run_at=ahead(5), queue=long)
    for path in ("", f"/{long}", "/nightly", "?depois=zzz"):
        page.set_viewport_size(PHONE["viewport"])
        page.goto(f"/painel/filas{path}")
        axe(page)
        for width in (360, 390, 900, 1440) if theme == "light" else ():  # a theme changes no measure
            page.set_viewport_size({"width": width, "height": 800})
            no_sideways_scroll(page)
