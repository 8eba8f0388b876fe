"""The workers before the eyes: what a row says changes where it stands, and what the reader opened stays open."""

import json
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from jobs.enqueue import enqueue
from tests.kit import handlers, look  # noqa: F401  (the job types)
from tests.kit.browser import PHONE, axe, both_themes, no_sideways_scroll
from tests.transitions import rows
from tests.transitions.rows import ahead

INSERT = """
INSERT INTO turno.workers (id, name, host, boot_id, pid_namespace, pid, pid_started, version, queues, state, seen_at,
    problems)
VALUES (%s, %s, %s, %s, 'n', 4242, '1', %s, %s, %s, now() - %s * interval '1 second', %s)
"""
PROBLEMS = [{"module": "a." + "m" * 150, "error": "<b>" + "e" * 300, "at": "f.py:1 g"}]


@pytest.fixture
def page(open_page):
    """In English: the sentences that tests quote."""
    return open_page(locale="en")


def worker(name, state="Online", seen=0.0, **queues):
    id_ = uuid4()
    slots, problems = json.dumps(queues or {"default": 4}), json.dumps(PROBLEMS)
    rows.execute(INSERT, id_, name, "h" * 60, id_.hex, "v" * 40, slots, state, seen, problems)
    return id_


def test_a_real_workers_job_is_seen_in_its_row_and_leaves_it_while_the_row_stays_open(page, fleet):
    fleet.start("a", "default:2").wait_ready()
    page.goto("/painel/workers")
    row = page.locator("tr[data-worker]")
    expect(row).to_contain_text("0 of 2")
    made = enqueue("probe.talk", {"key": "t", "hold": 8})
    expect(row).to_contain_text("1 of 2")
    row.locator("summary").click()
    expect(row.locator(f"#r-{made.id}")).to_contain_text("first half")
    second = enqueue("probe.talk", {"key": "u", "hold": 8})
    expect(row.locator(f"#r-{second.id}")).to_be_visible()
    expect(row.locator("details")).to_have_attribute("open", "")
    look.wait_state(second.id, "Succeeded")
    expect(row).to_contain_text("0 of 2")


def test_rows_keep_their_places_and_new_workers_are_offered(page):
    worker("b-here")
    second = worker("c-here")
    page.goto("/painel/workers")
    names = page.locator("tr[data-worker] strong")
    expect(names).to_have_text(["b-here", "c-here"])
    rows.execute("UPDATE turno.workers SET seen_at = now() - interval '40 seconds' WHERE id = %s", second)
    worker("a-new")
    page.evaluate("Turno.regions.refreshAll()")
    expect(page.locator(f"#w-{second}")).to_contain_text("No heartbeat")
    expect(names).to_have_text(["b-here", "c-here"])
    expect(page.locator("#workers-resumo")).to_contain_text("1 without a heartbeat")
    page.get_by_role("link", name="1 new worker").click()
    expect(names).to_have_text(["c-here", "a-new", "b-here"])


@both_themes
def test_the_screen_fits_and_can_be_read(open_page, theme):
    page = open_page(locale="en", color_scheme=theme, **PHONE)
    busy = worker("w" * 120, **{"q" * 90: 64, "default": 4})
    for slot in range(1, 4):
        rows.make_job("Processing", worker=busy, slot=slot, progress=slot * 20, stage="s" * 200, type="t" * 200)
    silent = worker("silent", seen=40)
    rows.make_job("Processing", worker=silent, lease_expires_at=ahead(40))
    rows.make_job("Processing", type="x" * 200)
    worker("leaving", state="Draining")
    worker("stopped", state="Offline")
    for path in ("", "?estado=encerrados", "?busca=nothing", f"/{busy}", f"/{silent}"):
        page.set_viewport_size(PHONE["viewport"])
        page.goto(f"/painel/workers{path}")
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        axe(page)
        for width in (360, 390, 900, 1440):
            page.set_viewport_size({"width": width, "height": 800})
            no_sideways_scroll(page)
