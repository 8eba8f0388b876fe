"""Takes the pictures of the READMEs into docs/images: `.venv-test/bin/python scripts/screenshots.py [NAME…]`.

Starts a throw-away PostgreSQL, fills it with the demonstration, serves it and looks at it in Chromium. Needs what
`./testar.sh` needs. Names are those of the pictures without ".png"; none means all.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

import psycopg  # noqa: E402
from playwright.sync_api import Browser, Page  # noqa: E402

from tests.kit.browser import BRAZIL, DESKTOP, PHONE, running_browser  # noqa: E402
from tests.kit.processes import eventually  # noqa: E402
from tests.kit.site import Site  # noqa: E402
from turno.launcher.postgres import QUICK, PrivatePostgres  # noqa: E402

IMAGES = ROOT / "docs" / "images"
FAILED = "SELECT id FROM turno.jobs WHERE state = 'Failed' AND error_type = 'TimeoutError' ORDER BY finished_at DESC"
RUNNING = "SELECT id FROM turno.jobs WHERE state = 'Processing' AND origin = 'fechamento-mensal'"
SMALL, LARGE = ("--finished", "47112"), ("--finished", "47112", "--workers", "56")
DARK = {"color_scheme": "dark"}
TALL = {"viewport": {"width": 1440, "height": 1000}}


def nothing(_page: Page) -> None:
    """The page as it comes."""


def wall(page: Page) -> None:
    """What the key `m` does."""
    page.keyboard.press("m")


def first_cause(page: Page) -> None:
    """The first cause of the dead letters, opened."""
    page.locator(".grp__t").first.click()
    page.mouse.move(0, 0)


def second_row(page: Page) -> None:
    """The second schedule, opened."""
    page.locator("[aria-expanded]").nth(1).click()
    page.mouse.move(0, 0)


def schedule(page: Page) -> None:
    """A schedule as one types it."""
    page.get_by_label("Nome").fill("fechamento-diario")
    page.get_by_label("Cron").fill("0 30 7 * * 1-5")
    page.get_by_text("de segunda a sexta").first.wait_for()


# Name, type, cron, zone.
SCHEDULES = (
    ("sincroniza-erp", "integration.sync", "0 */5 * * * *", "America/Sao_Paulo"),
    ("fechamento-diario", "report.generate", "0 30 7 * * 1-5", "America/Sao_Paulo"),
    ("limpa-temporarios", "integration.sync", "0 0 3 * * *", "UTC"),
    ("resumo-plantao", "report.generate", "0 15 6,12,18 * * *", "America/Sao_Paulo"),
    ("resumo-semanal", "report.generate", "0 0 8 * * 1", "America/Manaus"),
    ("fechamento-mensal", "report.generate", "0 0 6 1 * *", "America/Sao_Paulo"),
)
SCHEDULE = f"""
from jobs.schedules import Wanted, put
for name, type_, cron, zone in {SCHEDULES!r}:
    put(Wanted(name=name, type=type_, cron=cron, timezone=zone), actor="ana")
"""


@dataclass(frozen=True)
class Picture:
    """One file: which demonstration, which address ("{failed}" and "{running}" are jobs), how wide and how dark."""

    name: str
    address: str
    demo: tuple[str, ...] = SMALL
    context: dict[str, Any] = field(default_factory=dict)
    prepare: Callable[[Page], None] = nothing


PICTURES = (
    Picture("painel-claro", "/painel/", context=TALL),
    Picture("painel-escuro", "/painel/", context=TALL | DARK),
    Picture("mosaico-56", "/painel/", LARGE),
    Picture("mural", "/painel/", LARGE, {"viewport": {"width": 1920, "height": 1080}, **DARK}, wall),
    Picture("tarefas", "/painel/tarefas"),
    Picture("tarefa-executando", "/painel/tarefas/{running}"),
    Picture("tarefa-falha", "/painel/tarefas/{failed}", context=TALL | DARK),
    Picture("recorrentes", "/painel/recorrentes", prepare=second_row),
    Picture("recorrente-editar", "/painel/recorrentes/nova", context=TALL, prepare=schedule),
    Picture("workers", "/painel/workers"),
    Picture("filas", "/painel/filas", context=DARK),
    Picture("fila-de-erros", "/painel/erros", prepare=first_cause),
    Picture("celular-painel", "/painel/", context=PHONE),
    Picture("celular-tarefas", "/painel/tarefas", context=PHONE | DARK),
    Picture("celular-erros", "/painel/erros", context=PHONE),
)


class Jobs(dict[str, str]):
    """The ids of the jobs that an address names."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    def __missing__(self, name: str) -> str:
        with psycopg.connect(self._url) as connection:
            found = connection.execute({"failed": FAILED, "running": RUNNING}[name]).fetchone()
        return str(found[0]) if found else ""


@contextmanager
def demonstration(server: PrivatePostgres, folder: Path, options: tuple[str, ...]) -> Iterator[tuple[Site, str]]:
    """A database with the demonstration, whose workers go on beating, and a web process; its URL."""
    name = f"demo{len(list(folder.iterdir()))}"
    with psycopg.connect(server.url_of("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url, place = server.url_of(name), folder / name
    place.mkdir()
    environment = {**os.environ, "TURNO_DATABASE__URL": url, "TURNO_LANG": "en"}
    manage = [sys.executable, "manage.py"]
    subprocess.run([*manage, "migrate", "-v", "0"], cwd=ROOT, env=environment, check=True)
    said = place / "demo.log"
    with said.open("wb") as log:
        command = [*manage, "turno", "demo", "--seed", "7", *options, "--keep", "--still"]
        demo = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    site: Site | None = None
    try:
        eventually(lambda: demo.poll() is not None or "until Ctrl-C" in said.read_text(), "the demonstration", 180)
        if demo.poll() is not None:
            sys.exit(said.read_text())
        subprocess.run([*manage, "shell", "-v", "0", "-c", SCHEDULE], cwd=ROOT, env=environment, check=True)
        site = Site(place, {"TURNO_DATABASE__URL": url, "TURNO_HANDLERS": ""}).wait_ready()
        yield site, url
    finally:
        demo.terminate()
        demo.wait(20)
        if site is not None:
            site.close()


def take(browser: Browser, picture: Picture, site: Site, url: str) -> None:
    """One picture, when its fonts are there and nothing is asked any more."""
    context = browser.new_context(**(DESKTOP | BRAZIL | picture.context), base_url=site.address)
    page = context.new_page()
    page.goto(picture.address.format_map(Jobs(url)))
    page.evaluate("document.fonts.ready")
    page.wait_for_load_state("networkidle")
    picture.prepare(page)
    page.wait_for_load_state("networkidle")
    path = IMAGES / f"{picture.name}.png"
    page.screenshot(path=path, animations="disabled")
    print(f"{path.relative_to(ROOT)}  {path.stat().st_size // 1024} kB")
    context.close()


def main(names: list[str]) -> int:
    """Take those pictures, or all. Exit code 2 for a name that is none."""
    if unknown := set(names) - {picture.name for picture in PICTURES}:
        print(f"no such picture: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    wanted = [picture for picture in PICTURES if not names or picture.name in names]
    IMAGES.mkdir(exist_ok=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turno-screenshots-")))
        folder.chmod(0o755)
        server = PrivatePostgres(folder / "postgres", options=QUICK)
        stack.callback(server.stop, "immediate")
        server.start()
        demos = folder / "demos"
        demos.mkdir()
        browser = stack.enter_context(running_browser())
        for options in dict.fromkeys(picture.demo for picture in wanted):
            with demonstration(server, demos, options) as (site, url):
                for picture in wanted:
                    if picture.demo == options:
                        take(browser, picture, site, url)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
