"""Dead letters before the eyes: causes open in place and stay where they are, acts ask by their size."""

import re

import pytest
from playwright.sync_api import expect

from jobs import operations
from jobs.announcements import SCREENS
from jobs.ids import new_id
from jobs.nudge import Nudge
from jobs.states import State
from tests.jobs.bulkrows import ID
from tests.kit.browser import PHONE, axe, both_themes, no_sideways_scroll
from tests.kit.processes import eventually
from tests.transitions import rows
from tests.transitions.rows import ago, make_letter

STACK = (
    "Traceback (most recent call last):\n"
    '  File "/srv/app/tasks/sync.py", line 88, in fetch\n    answer = get(url)\n'
    '  File "/srv/venv/lib/python3.13/site-packages/httpx/_client.py", line 7, in get\n    send()\n'
    "TimeoutError: no answer"
)
MANY = """
INSERT INTO turno.dead_letters (id, job_id, type, queue, failure_kind, fingerprint, attempts)
SELECT id, id, type, queue, 'error', 'many', 1 FROM turno.jobs
"""


def dead(cause="ab", count=1, **columns):
    made = []
    for n in range(count):
        job = rows.make_job(State.FAILED, id=new_id(), payload={"page": n}, type=columns.get("type", "test.echo"))
        letter = {"error_type": "TimeoutError", "error_message": "no answer", "stack": STACK} | columns
        make_letter(job, **{"id": new_id(), "fingerprint": cause, "created_at": ago(100 - n)} | letter)
        made.append(job)
    return made


def told():
    rows.execute("SELECT pg_notify(%s, %s)", SCREENS, Nudge(["letters"], []).text())


def pending():
    return rows.select("SELECT count(*) AS n FROM turno.dead_letters WHERE resolved_at IS NULL")[0]["n"]


@pytest.fixture
def show(open_page):
    """The screen, in English, with its connection standing."""

    def opened(query="", **context):
        page = open_page(locale="en", **context)
        page.goto(f"/painel/erros{query}")
        page.wait_for_function("() => window.Turno && Turno.live && Turno.live.connected")
        return page

    return opened


def head(page, cause):
    return page.locator(f"#gt-{cause}")


def causes(page):
    return page.locator("#grupos .grp").evaluate_all("groups => groups.map(group => group.dataset.cause)")


def test_a_cause_opens_in_place_and_a_live_refresh_closes_nothing(show):
    dead("ab", 4)
    page = show()
    head(page, "ab").click()
    expect(page.locator("#gb-ab .own")).to_contain_text("tasks/sync.py:88")
    page.locator("#gb-ab summary").click()
    page.locator("#gb-ab input[data-row]").first.click()
    expect(page.locator("#gb-ab tbody tr")).to_have_count(3)
    dead("cd")
    told()
    expect(page.locator("#g-cd")).to_be_visible()
    expect(head(page, "ab")).to_have_attribute("aria-expanded", "true")
    expect(page.locator("#gb-ab details")).to_have_attribute("open", "")
    expect(page.locator("#gb-ab input[data-row]").first).to_be_checked()
    assert "aberta=ab" in page.url


def test_while_a_cause_is_open_the_causes_keep_their_places(show):
    dead("ab", 2)
    dead("cd", 1)
    page = show()
    head(page, "cd").click()
    expect(page.locator("#gb-cd")).to_be_visible()
    dead("cd", 5)
    told()
    expect(page.locator("#g-cd .grp__n")).to_have_text("6")
    assert causes(page) == ["ab", "cd"]
    head(page, "cd").click()
    expect(page.locator("#gb-cd")).to_be_hidden()
    dead("cd")
    told()
    expect(page.locator("#g-cd .grp__n")).to_have_text("7")
    assert causes(page) == ["cd", "ab"]


def test_the_keyboard_opens_a_cause(show):
    dead("ab")
    page = show()
    head(page, "ab").focus()
    page.keyboard.press("Space")
    expect(page.locator("#gb-ab .own")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("#gb-ab")).to_be_hidden()


def test_an_address_with_an_open_cause_shows_it_open(show):
    dead("ab")
    expect(show("?aberta=ab").locator("#gb-ab .own")).to_be_visible()


def test_a_few_are_requeued_without_a_question_and_the_toast_says_how_many(show):
    made = dead("ab", 3)
    page = show()
    page.locator("#gr-ab").click()
    expect(page.locator(".toast")).to_contain_text("3 jobs requeued")
    expect(page.locator("#erros-vazio")).to_be_visible()
    assert {rows.state(job.id) for job in made} == {State.ENQUEUED}


def test_discarding_is_asked_and_typed_and_the_safe_way_out_does_nothing(show):
    dead("ab", 2)
    page = show()
    page.locator("#gd-ab").click()
    dialog = page.locator("#confirma")
    expect(dialog).to_contain_text("Discard 2 jobs?")
    expect(dialog.locator("[data-verb]")).to_be_disabled()
    dialog.locator("[data-safe]").click()
    assert pending() == 2
    page.locator("#gd-ab").click()
    dialog.locator("#confirma-n").fill("2")
    dialog.locator("[data-verb]").click()
    expect(page.locator(".toast")).to_contain_text("2 jobs discarded")
    assert pending() == 0
    expect(page.locator("#aba-discarded .count")).to_have_text("2")


def test_the_chosen_letters_are_acted_on_and_no_others(show):
    made = dead("ab", 5)
    page = show()
    page.goto("/painel/erros/causas/ab")
    for place in (0, 2):
        page.locator("#cartas tbody input[data-row]").nth(place).click()
    expect(page.locator("[data-bulk-n]")).to_have_text("2 selected")
    page.locator("[data-do=requeue]").click()
    expect(page.locator(".toast")).to_contain_text("2 jobs requeued")
    expect(page.locator("#cartas tbody tr")).to_have_count(3)
    expect(page.locator("#em-massa")).to_be_hidden()
    assert [rows.state(job.id) for job in made] == ["Failed", "Failed", "Enqueued", "Failed", "Enqueued"]


def test_one_letter_is_requeued_from_its_row(show):
    made = dead("ab", 2)
    page = show()
    page.goto("/painel/erros/causas/ab")
    page.locator("#cartas tbody tr").first.get_by_role("button", name=re.compile("^Requeue")).click()
    expect(page.locator(".toast")).to_contain_text("Job requeued")
    expect(page.locator("#cartas tbody tr")).to_have_count(1)
    assert [rows.state(job.id) for job in made] == ["Failed", "Enqueued"]


def test_what_somebody_else_did_meanwhile_is_said_at_the_end(show):
    made = dead("ab", 3)
    page = show()
    page.goto("/painel/erros/causas/ab")
    page.locator("#cartas input[data-all]").click()
    operations.requeue(made[0].id)
    page.locator("[data-do=requeue]").click()
    expect(page.locator(".toast")).to_contain_text("2 jobs requeued")
    expect(page.locator(".toast")).to_contain_text("1 had been dealt with before")


def test_a_large_act_goes_on_when_its_tab_is_closed(show):
    rows.make_jobs(3000, State.FAILED, id=ID)
    rows.execute(MANY)
    page = show()
    page.locator("#gr-many").click()
    page.locator("#confirma-n").fill("3000")
    page.locator("#confirma [data-verb]").click()
    expect(page.locator(".toast").first).to_be_visible()
    page.close()
    eventually(lambda: pending() == 0, "the letters are resolved")
    ended = "SELECT done, applied FROM turno.bulk_runs WHERE state = 'done'"
    [run] = eventually(lambda: rows.select(ended), "the act is over")
    assert run == {"done": 3000, "applied": 3000}


@both_themes
def test_the_screen_has_no_barrier_open_or_closed_wide_or_narrow(show, theme):
    dead("ab", 4)
    dead("cd", error_message="x" * 3000)
    for context in ({}, PHONE, PHONE | {"viewport": {"width": 360, "height": 780}}):
        page = show("?aberta=ab", **context)
        page.emulate_media(color_scheme=theme)
        axe(page)
        no_sideways_scroll(page)
        page.goto("/painel/erros/causas/ab")
        axe(page)
        no_sideways_scroll(page)
        page.close()


def test_the_filters_of_a_narrow_screen_stand_in_a_dialog(show):
    dead("ab")
    dead("cd", type="other.type")
    page = show(**PHONE)
    page.get_by_role("button", name="Filters").click()
    dialog = page.locator("#filtros")
    axe(page, "#filtros")
    dialog.locator("[name=tipo]").select_option("other.type")
    dialog.get_by_role("button", name="Filter").click()
    expect(page.locator("#grupos .grp")).to_have_count(1)
    assert causes(page) == ["cd"]


def test_a_choice_filters_at_once_and_the_address_says_it(show):
    dead("ab")
    dead("cd", type="other.type")
    page = show()
    page.locator(".filters [name=tipo]").select_option("other.type")
    expect(page.locator("#grupos .grp")).to_have_count(1)
    assert page.url.endswith("?tipo=other.type&ordem=tarefas") or page.url.endswith("?tipo=other.type")
