"""One job before the eyes: what it says and what becomes of it appears without a reload; what people do to it."""

import json
import re
import shlex
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from jobs.enqueue import enqueue
from tests.kit import handlers, look  # noqa: F401  (the job types)
from tests.kit.browser import PHONE, axe, both_themes, no_sideways_scroll
from tests.transitions import rows
from tests.transitions.rows import ago, ahead

EVIL = "<img src=x onerror=window.__x=2><script>window.__x=1</script>"
LINES = """
INSERT INTO turno.job_logs (job_id, execution, number, level, message)
SELECT %s, 1, n, (ARRAY['info', 'info', 'debug', 'warning', 'error'])[1 + n %% 5], 'line ' || n
FROM generate_series(%s, %s) AS n
"""
AT_END = "box => box.scrollHeight - box.scrollTop - box.clientHeight < 24"


@pytest.fixture
def page(open_page):
    """In English: the sentences that tests quote."""
    return open_page(locale="en")


def visit(page, id_, query=""):
    page.evaluate("window.__same = true")
    page.goto(f"/painel/tarefas/{id_}{query}")
    page.evaluate("window.__same = true")


def not_reloaded(page):
    assert page.evaluate("window.__same") is True


def test_a_running_jobs_progress_stage_lines_and_end_appear_by_themselves(page, fleet):
    fleet.start("a", "default:2").wait_ready()
    made = enqueue("probe.talk", {"key": "t", "hold": 6})
    visit(page, made.id)
    state, now, log = page.locator("#estado .state"), page.locator("#agora"), page.locator("#log")
    expect(state).to_have_text("Running")
    expect(now).to_contain_text("40%")
    expect(now).to_contain_text("first half")
    expect(log).to_contain_text("one line")
    expect(log).to_contain_text("another line")
    expect(state).to_have_text("Succeeded")
    expect(now).to_contain_text("100%")
    expect(page.locator("#resultado")).to_contain_text('"said": 2')
    expect(page.locator("#tentativas")).to_contain_text("Succeeded")
    expect(page.locator("#linha")).to_contain_text("the handler returned")
    expect(page.locator("#b-cancel")).to_have_attribute("aria-disabled", "true")
    not_reloaded(page)


def test_a_running_job_is_cancelled_from_the_page_with_a_reason(page, fleet):
    fleet.start("a", "default:2").wait_ready()
    made = enqueue("probe.async", {"key": "c", "hold": 60})
    look.wait_state(made.id, "Processing")
    visit(page, made.id)
    page.locator("#b-cancel").click()
    dialog = page.locator("#confirma")
    expect(dialog).to_be_visible()
    expect(page.locator("#confirma-motivo")).to_be_focused()
    page.locator("#confirma-motivo").fill("the wrong file")
    dialog.get_by_role("button", name="Cancel the job").click()
    expect(page.locator("#estado .state")).to_have_text("Cancelled")
    expect(page.locator("#agora")).to_contain_text("the wrong file")
    not_reloaded(page)
    assert look.job(made.id).cancel_reason == "the wrong file"


def test_a_cancel_that_came_too_late_says_so(page, allow):
    allow("status of 409")
    made = rows.make_job("Processing")
    visit(page, made.id)
    page.locator(".rail [data-live-toggle]").click()  # the page does not know better yet
    rows.execute(
        "UPDATE turno.jobs SET state = 'Succeeded', finished_at = now(), worker_id = NULL, claim_id = NULL,"
        " claimed_at = NULL, lease_expires_at = NULL WHERE id = %s",
        made.id,
    )
    page.locator("#b-cancel").click()
    page.locator("#confirma [data-verb]").click()
    toast = page.locator(".toast[role=alert]")
    expect(toast).to_contain_text("Not cancelled.")
    expect(toast).to_contain_text(re.compile(r"The job had already finished at \d\d:\d\d:\d\d\."))


def test_a_failed_job_shows_its_stack_and_is_requeued_and_a_finished_one_deleted(page, fleet):
    fleet.start("a", "default:2").wait_ready()
    made = enqueue("probe.async", {"key": "f", "fail": "permanent"})
    look.wait_state(made.id, "Failed")
    visit(page, made.id)
    error = page.locator("#erro")
    expect(error).to_contain_text("PermanentJobError")
    expect(error.locator(".msg")).to_have_text("it will never work")
    expect(error.locator(".trace .own").first).to_contain_text("handlers.py")
    page.locator("#b-requeue").click()
    expect(page.locator(".toast")).to_contain_text("1 job requeued.")
    expect(page.locator("#t-2")).to_be_visible()
    not_reloaded(page)
    page.locator("#b-delete").click()
    expect(page.locator("#confirma [data-safe]")).to_be_focused()
    page.locator("#confirma [data-verb]").click()
    page.wait_for_url("**/painel/tarefas")
    expect(page.locator(".toast")).to_contain_text("1 job deleted.")


def test_an_act_that_does_not_apply_does_nothing(page):
    made = rows.make_job("Processing")
    visit(page, made.id)
    expect(page.locator("#b-delete")).to_have_attribute("title", "Only after it finishes")
    page.locator("#b-delete").press("Enter")
    expect(page.locator("#confirma")).to_be_hidden()
    assert rows.state(made.id) == "Processing"


def test_the_id_the_payload_and_the_command_are_copied(open_page):
    page = open_page(locale="en", permissions=["clipboard-read", "clipboard-write"])
    made = rows.make_job(type="test.echo", payload={"it's": 1})
    page.goto(f"/painel/tarefas/{made.id}")
    copied = {}
    for name in ("job-id", "payload-json", "curl"):
        page.locator(f"[data-copy={name}]").click()
        expect(page.locator(".toast").last).to_contain_text("Copied")
        copied[name] = page.evaluate("navigator.clipboard.readText()")
    assert copied["job-id"] == str(made.id)
    assert json.loads(copied["payload-json"]) == {"it's": 1}
    words = shlex.split(copied["curl"].replace("\\\n", " "))
    sent = json.loads(words[words.index("-d") + 1])
    assert sent == {"type": "test.echo", "queue": "default", "payload": {"it's": 1}}


def grow(page, made, first, last):
    rows.execute(LINES, made.id, first, last)
    page.evaluate("id => Turno.regions.signal({ topics: ['jobs'], jobs: [id], workers: [] })", str(made.id))


def test_the_log_stays_where_the_reader_scrolled_and_follows_again_at_its_end(page):
    made = rows.make_job("Processing", lease_expires_at=ahead(600))
    rows.execute(LINES, made.id, 1, 300)
    visit(page, made.id)
    box, follow = page.locator("#log-caixa"), page.locator("[data-log-follow]")
    assert box.evaluate(AT_END)
    grow(page, made, 301, 310)
    expect(page.locator("[data-k='1-310']")).to_be_attached()
    assert box.evaluate(AT_END)
    box.evaluate("box => { box.scrollTop = 200; }")
    expect(follow).not_to_be_checked()
    grow(page, made, 311, 320)
    expect(page.locator("[data-k='1-320']")).to_be_attached()
    assert box.evaluate("box => box.scrollTop") == 200
    follow.check()
    assert box.evaluate(AT_END)
    expect(page.locator("[data-log-count]")).to_have_text("320 lines")


def test_ten_thousand_lines_are_read_in_parts_and_at_most_two_thousand_stay_in_the_page(page):
    made = rows.make_job("Processing", lease_expires_at=ahead(600))
    rows.execute(LINES, made.id, 1, 10_000)
    visit(page, made.id)
    lines, older = page.locator("#log [data-k]"), page.locator("[data-log-older]")
    expect(lines).to_have_count(500)
    for count in (1000, 1500, 2000, 2000):
        page.locator("#log-caixa").evaluate("box => { box.scrollTop = 0; }")
        older.click()
        expect(lines).to_have_count(count)
        expect(older).to_be_visible()
    expect(lines.first).to_have_attribute("data-k", "1-7501")
    expect(lines.last).to_have_attribute("data-k", "1-9500")
    page.locator("[data-log-follow]").check()
    expect(lines.last).to_have_attribute("data-k", "1-10000")


def test_levels_are_chosen_without_leaving_the_page(page):
    made = rows.make_job("Succeeded", executions=1)
    rows.execute(LINES, made.id, 1, 50)
    visit(page, made.id)
    page.locator(".seg [data-level=erros]").click()
    expect(page.locator("#log [data-k]")).to_have_count(10)
    expect(page).to_have_url(re.compile("nivel=erros"))
    page.locator(".seg [data-level='']").click()
    expect(page.locator("#log [data-k]")).to_have_count(50)
    not_reloaded(page)
    with page.expect_download() as downloading:
        page.locator("[href*='log.txt']").click()
    assert downloading.value.suggested_filename == f"turno-{made.id}-1.log"


def test_what_a_job_says_is_shown_literally(page):
    payload = {EVIL: EVIL}
    made = rows.make_job(
        "Processing", stage=EVIL, payload=payload, tags=[EVIL[:60]], origin=EVIL, error_message=EVIL,
        worker_label={"name": EVIL, "host": "h", "pid": 1, "version": "1"}, lease_expires_at=ahead(600),
    )  # fmt: skip
    visit(page, made.id)
    rows.execute("UPDATE turno.jobs SET progress = 5 WHERE id = %s", made.id)
    rows.execute("INSERT INTO turno.job_logs (job_id, execution, number, message) VALUES (%s, 1, 1, %s)", made.id, EVIL)
    page.evaluate("Turno.regions.refreshAll()")
    expect(page.locator("#log .msg")).to_have_text(EVIL)
    expect(page.locator("#agora")).to_contain_text(EVIL)
    expect(page.locator("#payload-json")).to_contain_text(EVIL)
    expect(page.locator("#dados")).to_contain_text(EVIL)
    assert page.evaluate("window.__x === undefined && !document.querySelector('main img')")


def test_a_deleted_job_is_told_and_the_page_stays_readable(page):
    made = rows.make_job("Succeeded", payload={"a": 1})
    visit(page, made.id)
    rows.execute("DELETE FROM turno.jobs WHERE id = %s", made.id)
    page.evaluate("Turno.regions.refreshAll()")
    expect(page.locator("#estado")).to_contain_text("This job is not there any more.")
    expect(page.locator("#payload-json")).to_contain_text('"a": 1')


def various():
    made = {
        "queued": rows.make_job(queue="slow"),
        "parked": rows.make_job("Scheduled", waiting_for="pause", gate="type:x"),
        "scheduled": rows.make_job("Scheduled"),
        "running": rows.make_job("Processing", progress=40, stage="x" * 180, lease_expires_at=ahead(600)),
        "cancelling": rows.make_job("Processing", cancel_requested_at=ago(3), cancel_reason="y" * 200),
        "succeeded": rows.make_job("Succeeded", result={"a": ["b" * 300]}, executions=1),
        "failed": rows.make_job("Failed", error_message="z" * 500, type="a" * 200, tags=["t" * 100] * 3),
        "cancelled": rows.make_job("Cancelled", cancel_reason="w" * 200),
    }
    for one in made.values():
        rows.execute(
            "INSERT INTO turno.job_attempts (job_id, ordinal, attempt, counted, dispatch_id, worker_name, started_at,"
            " ended_at, outcome, error_type, stack) VALUES (%s, 1, 1, true, %s, %s, now(), now(), 'Failed', %s, %s)",
            one.id, uuid4(), "w" * 100, "E" * 100, "s" * 500,
        )  # fmt: skip
        rows.execute(LINES, one.id, 1, 5)
    return {name: one.id for name, one in made.items()}


@both_themes
def test_every_state_fits_and_can_be_read(open_page, theme):
    page = open_page(locale="en", color_scheme=theme, **PHONE)
    page.watch.allow("status of 404")
    for id_ in [*various().values(), uuid4()]:
        page.set_viewport_size(PHONE["viewport"])
        page.goto(f"/painel/tarefas/{id_}")
        axe(page)
        for width in (360, 390, 900, 1440):
            page.set_viewport_size({"width": width, "height": 800})
            no_sideways_scroll(page)
