"""A page of the frame with regions that a test writes itself; the rest, server and socket included, is real."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.template import engines
from django.test import RequestFactory
from django.utils import translation
from playwright.sync_api import Page, Request, expect

from jobs.announcements import SCREENS
from jobs.nudge import Nudge
from tests.kit import shelf
from tests.kit.processes import eventually

PAGE = "page"


@dataclass
class Cable:
    """A site as a browser sees it behind a proxy that the test can cut."""

    port: int

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        return f"http://{self.host}"


def nudge(*topics: str, jobs: Any = (), workers: Any = ()) -> None:
    """What a process that changed something says."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [SCREENS, Nudge(topics, jobs, workers).text()])


def region(name: str, inner: str, live: str = "jobs", every: int = 1, more: str = "") -> str:
    """The markup of a region; `every` in milliseconds."""
    return (
        f'<section id="{name}" data-live="{live}" data-every="{every}" {more} hx-get="{shelf.SHELF}{name}" '
        f'hx-trigger="turno:refresh" hx-swap="outerMorph">{inner}</section>'
    )


class LivePage:
    """`lay` says what a region answers next, `show` loads the page; `asked` has the fetches of regions in order."""

    def __init__(self, page: Page, site: Any) -> None:
        self.page = page
        self.site = site  # the web process itself, whatever the page goes through
        self.html = page.locator("html")
        self.asked: list[tuple[str, dict[str, str]]] = []
        page.on("request", self._request)

    def _request(self, request: Request) -> None:
        path = request.url.partition(shelf.SHELF)[2]
        if path and path != PAGE:
            self.asked.append((path, request.headers))

    def lay(self, name: str, body: str, **more: Any) -> None:
        """What the region's address answers from now on; `status`, `headers`."""
        shelf.put(self.site.port, name, body, **more)

    def show(self, *regions: str, replace: tuple[str, str] = ("", "")) -> "LivePage":
        """Load the page with these regions."""
        policy = self.page.request.get("/entrar").headers["content-security-policy"]
        source = '{% extends "app.html" %}{% block main %}' + "\n".join(regions) + "{% endblock %}"
        with translation.override("pt-br"):
            html = engines["django"].from_string(source).render({"screen": ""}, RequestFactory().get("/"))
        self.lay(PAGE, html.replace(*replace), headers={"Content-Security-Policy": policy})
        self.page.goto(shelf.SHELF + PAGE)
        return self

    def connected(self, *names: str) -> "LivePage":
        """Wait until the hub has said that it hears, and these regions were fetched once for that."""
        expect(self.html).to_have_attribute("data-hub", "on")
        for name in names:
            self.until(name, 1)
        return self

    def settled(self) -> None:
        """Wait until no region's answer is under way."""
        expect(self.page.locator(".htmx-request")).to_have_count(0)

    def count(self, name: str) -> int:
        """How often the region was fetched."""
        self.page.evaluate("0")  # the driver hands over what it has seen while it waits for something
        return sum(asked == name for asked, _headers in self.asked)

    def until(self, name: str, count: int) -> None:
        """Wait until the region was fetched so often, and the answer is in the page."""
        eventually(lambda: self.count(name) >= count, f"{name} is fetched {count} times")
        self.settled()

    def again(self, name: str, act: Callable[[], Any]) -> None:
        """Do `act`, and wait until the region was fetched once more for it."""
        count = self.count(name)
        act()
        self.until(name, count + 1)

    def with_time(self, name: str) -> None:
        """Let the page's own clock (`page.clock.install()`) run until the region is fetched once more."""
        count = self.count(name)

        def later() -> bool:
            self.page.clock.run_for(500)
            return self.count(name) > count

        eventually(later, f"{name} is fetched again by itself")
        self.settled()

    def signal(self, *topics: str, jobs: Any = (), workers: Any = ()) -> None:
        """As if the socket had said it: at once, and in order with what the test does next."""
        self.page.evaluate("(message) => Turno.regions.signal(message)", Nudge(topics, jobs, workers).said())
