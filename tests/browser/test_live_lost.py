"""The connection lost, and found again: what the page says meanwhile, and that it catches up."""

import re

import pytest
from django.db import connection
from playwright.sync_api import expect

from tests.browser.live_page import Cable, LivePage, nudge, region
from tests.kit.proxy import Proxy

TROUBLE = "WebSocket|ERR_|htmx:error|Failed to (load|fetch)"
KEY = "chave-de-teste-0123456789"
CLOCK = '<time data-since="83" id="t">1:23</time>'
LISTENERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'turno-screens'
"""
NOTE_STATES = """
    window.states = [];
    new MutationObserver(() => states.push(document.documentElement.dataset.live))
        .observe(document.documentElement, {attributes: true, attributeFilter: ["data-live"]});
"""


@pytest.fixture
def cable(site):
    with Proxy(site.address) as proxy:
        yield proxy


@pytest.fixture
def live(open_page, site, cable):
    page = open_page(Cable(cable.port))
    page.watch.allow(TROUBLE)
    html = region("a", CLOCK)
    live = LivePage(page, site)
    live.lay("a", html, headers={"X-Turno-At": "1700000000000"})
    page.clock.install()
    return live.show(html).connected("a")


def test_after_three_seconds_the_page_says_so_and_its_clocks_stand_still(live, cable):
    cable.cut(refuse=True)
    expect(live.html).to_have_attribute("data-hub", "off")
    expect(live.page.locator("#queda")).to_be_hidden()

    live.page.clock.run_for(4000)

    expect(live.html).to_have_attribute("data-live", "off")
    banner = live.page.locator("#queda")
    expect(banner).to_be_visible()
    expect(banner).to_contain_text(re.compile(r"Dados de \d\d:\d\d:\d\d\."))
    expect(banner.locator("[data-lost-text] [aria-hidden]")).to_contain_text("s.")
    expect(live.page.locator(".rail [data-live-text]")).to_have_text("Sem conexão")
    text, fetched = live.page.locator("#t").text_content(), live.count("a")
    live.page.clock.run_for(5000)
    assert live.page.locator("#t").text_content() == text
    assert live.count("a") == fetched


def test_when_it_is_back_everything_is_fetched_and_nothing_is_said(live, cable):
    cable.cut(refuse=True)
    expect(live.html).to_have_attribute("data-hub", "off")
    live.page.clock.run_for(10_000)
    expect(live.page.locator("#queda")).to_be_visible()
    live.lay("a", region("a", "<p id='p'>de volta</p>"))
    before = live.count("a")
    cable.open()

    live.with_time("a")  # no further: the page's time goes faster than the server speaks, and would call that silence

    expect(live.html).to_have_attribute("data-live", "on")
    expect(live.page.locator("#queda")).to_be_hidden()
    expect(live.page.locator("#p")).to_have_text("de volta")
    assert live.count("a") == before + 1


def test_the_button_tries_at_once(live, cable):
    cable.cut(refuse=True)
    expect(live.html).to_have_attribute("data-hub", "off")
    for _ in range(6):  # far into the waiting
        live.page.clock.run_for(10_000)
    live.page.clock.pause_at(live.page.evaluate("Date.now() / 1000") + 1)
    cable.open()

    live.page.locator("#queda [data-live-retry]").click()

    expect(live.html).to_have_attribute("data-hub", "on")
    expect(live.page.locator("#queda")).to_be_hidden()


def test_a_connection_that_is_back_within_three_seconds_was_never_away(live, cable):
    live.page.evaluate(NOTE_STATES)
    before = live.count("a")

    cable.cut()
    expect(live.html).to_have_attribute("data-hub", "off")
    live.until("a", before + 1)

    expect(live.html).to_have_attribute("data-hub", "on")
    assert live.page.evaluate("states") == []


def test_a_cable_that_was_pulled_out_is_noticed(live, cable):
    cable.blackhole()
    live.page.clock.run_for(60_000)

    expect(live.html).to_have_attribute("data-live", "off")
    expect(live.page.locator("#queda")).to_be_visible()
    cable.open()
    live.with_time("a")
    expect(live.html).to_have_attribute("data-live", "on")


def test_a_hub_that_lost_the_database_for_a_moment_has_everything_fetched(live):
    before = live.count("a")

    with connection.cursor() as cursor:
        cursor.execute(LISTENERS)
        assert cursor.rowcount > 0

    live.until("a", before + 1)
    expect(live.html).to_have_attribute("data-hub", "on")
    live.lay("a", region("a", "<p id='p'>de novo</p>"))
    nudge("jobs")
    expect(live.page.locator("#p")).to_have_text("de novo")


def test_a_session_that_has_ended_leaves_the_page_readable_and_offers_the_login(open_page, site_with):
    site = site_with(key=KEY)
    with Proxy(site.address) as cable:
        page = open_page(Cable(cable.port))
        page.watch.allow(TROUBLE + "|40[13]")
        page.goto("/entrar")
        page.locator("input[name=chave]").fill(KEY)
        page.locator("input[name=chave]").press("Enter")
        page.wait_for_url("**/painel/")
        live = LivePage(page, site)
        live.lay("a", region("a", "<p id='p'>lido</p>"))
        page.clock.install()
        live.show(region("a", "<p id='p'>lido</p>")).connected("a")
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM django_session")

        cable.cut()
        expect(live.html).to_have_attribute("data-hub", "off")
        page.clock.run_for(3000)

        expect(page.locator("#queda [data-sign-in]")).to_be_visible()
        expect(page.locator("#queda [data-live-retry]")).to_be_hidden()
        expect(live.html).to_have_attribute("data-live", "off")
        expect(page.locator("#p")).to_have_text("lido")
        assert "next=" in page.locator("#queda [data-sign-in]").get_attribute("href")
