"""What an operator wants, counted: from the Painel, each click is one, and each text with Enter."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from jobs.models import Job
from tests.dashboard import recurring
from tests.transitions import rows
from tests.transitions.recurring import half_a_year_away
from tests.transitions.rows import make_job
from workers.demo.fill import fill


class Hand:
    """Counts what a person does on a page: `clicks`, and `texts` that were typed and entered."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0
        self.texts = 0

    def click(self, what: Locator) -> None:
        """One click."""
        what.click()
        self.clicks += 1

    def enter(self, text: str, found: Locator) -> None:
        """Type a text where the focus is, and press Enter when `found` is offered."""
        self.page.keyboard.type(text)
        expect(found).to_be_visible()
        self.page.keyboard.press("Enter")
        self.texts += 1


@pytest.fixture
def hand(page):
    """A person before the Painel of the demonstration."""
    fill(seed=7, finished=150)
    make_job("Enqueued", type="file.process", unique_key="pedido-4711")
    make_job("Enqueued", type="boletos.gerar", lost_count=2, attempts_used=2, executions=2)
    page.goto("/painel/")
    expect(page.locator("html[data-live=on]")).to_have_count(1)
    return Hand(page)


def test_workers_die_again_and_again_which_job_does_it(hand):
    page = hand.page
    lost = Job.objects.get(lost_count=2)
    point = page.locator("#atencao li", has_text="perdeu o worker")
    if not point.is_visible():  # behind "mais"
        hand.click(page.locator("#atencao summary"))
    hand.click(point.get_by_role("link", name="Ver"))
    expect(page).to_have_url(re.compile(f"/painel/tarefas/{lost.id}$"))
    expect(page.get_by_text("boletos.gerar").first).to_be_visible()
    assert (hand.clicks <= 2, hand.texts) == (True, 0)


def test_the_nightly_cron_did_not_run_why_when_next_and_run_it_now(hand):
    page = hand.page
    made = recurring.make("fechamento-diario", half_a_year_away(hour=3))
    recurring.run(made, "Failed")
    rows.execute("UPDATE turno.recurring_jobs SET last_skipped_at = now(), last_skipped_why = 'misfire', skipped = 1")
    hand.click(page.locator(".rail a[href='/painel/recorrentes']"))
    row = page.locator(f"#r-{made}")
    expect(row.locator(".c-last .mark--failure")).to_be_visible()
    expect(row.locator(".skipped")).to_be_visible()
    expect(row.locator(".c-next .sub")).to_contain_text("00:00")
    hand.click(row.locator(f"#t-{made}"))
    expect(page.locator(".toast a")).to_be_visible()
    job = Job.objects.get(recurring_job_id=made, state="Enqueued")
    expect(page.locator(".toast a")).to_have_attribute("href", f"/painel/tarefas/{job.id}")
    assert (hand.clicks, hand.texts) == (2, 0)


def test_a_job_runs_for_long_what_does_it_do_and_stop_it(hand):
    page = hand.page
    slow = Job.objects.filter(state="Processing").order_by("claimed_at")[0]
    hand.click(page.locator(f"#quadro a[href='/painel/tarefas/{slow.id}']"))
    expect(page.get_by_text(slow.stage).first).to_be_visible()
    expect(page.get_by_text("88%").first).to_be_visible()
    hand.click(page.locator("#b-cancel"))
    hand.click(page.get_by_role("dialog").get_by_role("button", name="Cancelar"))
    expect(page.get_by_text("Cancelando").first).to_be_visible()
    slow.refresh_from_db()
    assert slow.cancel_requested_at is not None
    # Two to see and to ask, and the confirmation that a running job deserves.
    assert (hand.clicks, hand.texts) == (3, 0)


def test_what_happened_with_order_4711(hand):
    page = hand.page
    order = Job.objects.get(unique_key="pedido-4711")
    page.keyboard.press("Control+k")
    hand.enter("pedido-4711", page.locator("#achados a[data-job-found]", has_text="file.process"))
    expect(page).to_have_url(re.compile(f"/painel/tarefas/{order.id}$"))
    assert (hand.clicks, hand.texts) == (0, 1)
