"""The harness itself: what it must notice, and that real workers and pages work together in it."""

import pytest
from playwright.sync_api import Error, expect

from tests.kit.browser import Watch, axe, no_sideways_scroll


@pytest.fixture
def watched(site, browser):
    """A page whose faults the test looks at itself."""
    context = browser.new_context(base_url=site.address)
    watch = Watch(context, site.host)
    yield context.new_page(), watch
    context.close()


def test_a_console_error_a_script_error_and_a_foreign_request_are_noticed(watched):
    page, watch = watched
    page.goto("/entrar")
    page.evaluate("console.error('said aloud')")
    page.evaluate("setTimeout(() => { throw new Error('thrown') })")
    with page.expect_console_message(lambda message: message.text.startswith("CSP: ")):
        page.evaluate("document.body.setAttribute('style', 'color: red')")
    with pytest.raises(Error, match="ERR_"):  # nothing listens there
        page.goto("http://127.0.0.2:9/")
    told = "\n".join(watch.faults())
    for word in ("said aloud", "thrown", "request to another host: http://127.0.0.2:9/", "CSP: style-src"):
        assert word in told
    for allowed in ("said aloud", "thrown", "127.0.0.2", "CSP|Content Security Policy"):
        watch.allow(allowed)
    assert watch.faults() == []


def test_axe_and_the_width_are_looked_at(watched):
    page, _watch = watched
    page.goto("/entrar")
    axe(page)
    no_sideways_scroll(page)
    page.evaluate("document.querySelector('main').appendChild(document.createElement('img'))")
    with pytest.raises(AssertionError, match="image-alt"):
        axe(page)
    page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<pre>' + 'x'.repeat(2000))")
    with pytest.raises(AssertionError, match="scrolls sideways"):
        no_sideways_scroll(page)


def test_a_house_with_a_key_asks_for_it_in_a_process_of_its_own(site, site_with, open_page):
    closed = site_with(key="chave-de-teste-0123456789")
    assert closed.port != site.port
    page = open_page(closed)
    page.goto("/")
    expect(page.locator("input[name=chave]")).to_be_visible()
