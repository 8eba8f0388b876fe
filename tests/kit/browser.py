"""A real browser for the tests: how it is found and started, what may not happen in it, what is asked of a page."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
BRAZIL: dict[str, Any] = {"locale": "pt-BR", "timezone_id": "America/Sao_Paulo", "reduced_motion": "reduce"}
AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Told by the browser itself, also where it says nothing on the console.
CSP_WATCH = """
    document.addEventListener("securitypolicyviolation", (event) => console.error(
        `CSP: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""
# Until two frames pass without a transition; colours that are inherited take one frame for each floor.
SETTLED = """async () => {
    for (let quiet = 0, frames = 0; quiet < 2 && frames < 120; frames += 1) {
        await new Promise(requestAnimationFrame);
        quiet = document.getAnimations().length ? 0 : quiet + 1;
    }
}"""
both_themes = pytest.mark.parametrize("theme", ["light", "dark"])


def find_browser() -> str:
    """The path of a Chromium or Chrome of this machine; fails with one sentence where there is none."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    pytest.fail(f"no browser: none of {', '.join(NAMES)} is on the PATH; install the package chromium", pytrace=False)


@contextmanager
def running_browser() -> Iterator[Browser]:
    """A browser without a window; it and its driver are ended with the block."""
    path = find_browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, headless=True, chromium_sandbox=False, args=ARGUMENTS
        )
        try:
            yield browser
        finally:
            browser.close()


class Watch:
    """What happened in a browser context that no page may do: console errors, script errors, CSP, foreign requests."""

    def __init__(self, context: BrowserContext, host: str) -> None:
        self._host = host
        self._faults: list[str] = []
        self._allowed: list[re.Pattern[str]] = []
        context.add_init_script(CSP_WATCH)
        context.on("console", self._console)
        context.on("weberror", lambda error: self._faults.append(f"script error: {error.error}"))
        context.on("request", self._request)
        context.on("page", lambda page: page.on("websocket", lambda socket: self._address(socket.url)))

    def allow(self, pattern: str) -> None:
        """The test provokes faults that match: `allow("status of 409")`."""
        self._allowed.append(re.compile(pattern))

    def faults(self) -> list[str]:
        """What happened and is not allowed."""
        return [fault for fault in self._faults if not any(allowed.search(fault) for allowed in self._allowed)]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            where = message.location
            self._faults.append(f"console: {message.text} ({where.get('url', '')}:{where.get('lineNumber', '')})")

    def _request(self, request: Request) -> None:
        self._address(request.url)

    def _address(self, url: str) -> None:
        scheme, _colon, rest = url.partition(":")
        if scheme in {"http", "https", "ws", "wss"} and rest.split("/")[2] != self._host:
            self._faults.append(f"request to another host: {url}")


@cache
def _axe_source() -> str:
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def axe(page: Page, within: str | None = None, **more: Any) -> None:
    """The page (or the part `within`) breaks no rule of WCAG 2.0-2.2 A and AA, nor a best practice.

    `more` are options of axe's own; `preload=False` where a sheet imports another, which axe would copy into the page.
    """
    if not page.evaluate("typeof window.axe === 'object'"):
        page.evaluate(_axe_source())
    page.evaluate(SETTLED)  # a colour on its way is neither of the two
    options = {"runOnly": {"type": "tag", "values": AXE_TAGS}, "resultTypes": ["violations"], **more}
    found = page.evaluate(
        "([within, options]) => axe.run(within || document, options).then((all) => all.violations)", [within, options]
    )
    told = [
        f"{violation['id']} ({violation['impact']}): {violation['help']}\n"
        + "\n".join(f"    {node['target']} {node['html'][:200]}\n      {node['failureSummary']}" for node in nodes[:5])
        for violation in found
        for nodes in [violation["nodes"]]
    ]
    assert not told, f"{page.url}\n" + "\n".join(told)


WIDER = """() => {
    const width = document.documentElement.clientWidth;
    if (document.scrollingElement.scrollWidth <= width) return [];
    const wide = [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > width + 1);
    const name = (e) => `${e.tagName.toLowerCase()}#${e.id}.${e.className} ${e.textContent.trim().slice(0, 40)}`;
    return [`${document.scrollingElement.scrollWidth} > ${width}`].concat(wide.slice(0, 8).map(name));
}"""


def no_sideways_scroll(page: Page) -> None:
    """The page is not wider than the window."""
    wider = page.evaluate(WIDER)
    assert not wider, f"{page.url} scrolls sideways at {page.viewport_size}: " + "\n".join(wider)
