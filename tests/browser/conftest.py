"""Browser tests: one web process and one browser for all of this folder, a fresh page and empty tables for each test.

`page` and `phone` fail the test at its end on a console error, a script error, a CSP violation or a request to another
host; `site` on a traceback or an error in the web process's log. What a test provokes it allows: `allow("status of
409")`. Sync Playwright leaves an event loop marked as running in this thread, so the browser ends with this folder.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kit.browser import BRAZIL, DESKTOP, PHONE, Watch, running_browser
from tests.kit.site import Site, Sites

HERE = Path(__file__).parent
PATIENCE = 60_000  # ms: what a click or an expectation waits on a busy machine
FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder carries the marker `browser`."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Fixtures learn whether the test failed, for a picture of the page."""
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The one browser."""
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # the loop that seems to run here is the browser driver's
    expect.set_options(timeout=PATIENCE)
    try:
        with running_browser() as running:
            yield running
    finally:
        asyncio._set_running_loop(None)
        if before is None:
            del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="package")
def _sites(django_db_setup, tmp_path_factory) -> Iterator[Sites]:
    sites = Sites(tmp_path_factory.mktemp("sites"))
    try:
        yield sites
    finally:
        sites.close()


@pytest.fixture
def site_with(clean_tables, _sites) -> Iterator[Callable[..., Site]]:
    """`site_with(key="…", TURNO_X__Y="…")`: a web process with these settings; the same settings, the same process."""

    def get(key: str = "", **env: str) -> Site:
        return _sites.get(env | ({"TURNO_API__KEY": key} if key else {}))

    with _sites.one_test():
        yield get


@pytest.fixture
def site(site_with) -> Site:
    """The web process of an open house."""
    return site_with()


@pytest.fixture
def open_page(request, browser, site_with, tmp_path) -> Iterator[Callable[..., Page]]:
    """`open_page(site, **context)`: a page of its own (another person) with `base_url`, not yet loaded.

    Without a site it is the open house's. Context: Playwright's `new_context`, e.g. `color_scheme="dark"`,
    `locale="en"`, `**PHONE`. `page.watch.allow(pattern)` allows a fault of this page's.
    """
    opened: list[Page] = []

    def open_one(site: Site | None = None, **context: Any) -> Page:
        served = site or site_with()
        settings = DESKTOP | BRAZIL | {"base_url": served.address} | context
        made = browser.new_context(**settings)
        made.set_default_timeout(PATIENCE)
        watch = Watch(made, served.host)
        page = made.new_page()
        page.watch = watch  # type: ignore[attr-defined]
        opened.append(page)
        return page

    yield open_one
    faults = []
    for number, page in enumerate(opened):
        if request.node.stash.get(FAILED, False) and not page.is_closed():
            picture = tmp_path / f"failed-{number}.png"
            page.screenshot(path=picture)
            print(f"what the page showed: {picture} ({page.url})")  # noqa: T201
        page.context.close()
        faults += page.watch.faults()  # type: ignore[attr-defined]
    assert not faults, "in the browser:\n" + "\n".join(faults)


@pytest.fixture
def page(open_page) -> Page:
    """A page of the open house: pt-BR, America/Sao_Paulo, 1440 x 900, light."""
    return open_page()


@pytest.fixture
def phone(open_page) -> Page:
    """The same on a telephone: 390 x 844, touch."""
    return open_page(**PHONE)


@pytest.fixture
def allow(page) -> Callable[[str], None]:
    """`allow(pattern)`: faults of `page` that the test provokes, as a regular expression."""
    return page.watch.allow
