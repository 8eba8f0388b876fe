"""What a person sees when everything runs: address, key, what to try next, and the browser."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from turno.launcher.config import PASSWORD, Config
from turno.launcher.say import Console, _, decimal

FIRST_USER = "first user made: "  # `migrate --first-user` says so, with the name
EXAMPLE = '{"type": "report.generate", "payload": {"duration": 5}}'


@dataclass(frozen=True)
class Access:
    """Where and how people get in; `first_user` is "" unless this start made it."""

    address: str
    key: str
    first_user: str
    password: str


def welcome(console: Console, config: Config, workers: int, seconds: float, first_user: str = "") -> None:
    """Print where Turno runs and what to try; the login once, when its user was made."""
    access = Access(config.address, config.key, first_user, config.variable(PASSWORD))
    logs = [(_("Logs"), ".turno/logs")]
    _show(console, access, logs, workers=workers, seconds=seconds, demo="scripts/demo.sh 60")
    console.line("  " + _("Ctrl-C stops everything. In another terminal: ./iniciar.sh --estado, ./iniciar.sh --parar"))


def welcome_docker(
    console: Console, access: Access, rows: Sequence[tuple[str, str]], workers: int, seconds: float
) -> None:
    """The same for containers, which go on when the launcher has ended."""
    demo = "docker compose exec web python -m turno.launcher.demo 60"
    _show(console, access, rows, workers=workers, seconds=seconds, demo=demo)
    console.line("    docker compose up -d --scale worker=8    # " + _("eight workers"))
    console.line()
    console.line("  " + _("It goes on by itself. ./iniciar.sh --estado says how it is, ./iniciar.sh --parar stops it."))


def _show(
    console: Console, access: Access, more: Sequence[tuple[str, str]], *, workers: int, seconds: float, demo: str
) -> None:
    address, key = access.address, access.key
    console.done(_("Web and {count} workers are ready").format(count=workers))
    console.line()
    console.line("  " + _("Turno is running (started in {seconds} s).").format(seconds=decimal(seconds)))
    console.line()
    login = _("{name}, password {password}  (in .env; for /admin too)")
    rows = [
        (_("Address"), address),
        (_("Key"), _("{key}  (in .env; for X-Turno-Key and to sign in)").format(key=key) if key else "-"),
        *([(_("Login"), login.format(name=access.first_user, password=access.password))] if access.first_user else []),
        ("API", f"{address}/docs"),
        *more,
    ]
    width = max(len(name) for name, _value in rows)
    for name, value in rows:
        console.line(f"  {name:<{width}}  {value}")
    console.line()
    console.line("  " + _("Try next:"))
    console.line(f"    {demo}    # " + _("sends 60 jobs and follows them to their end"))
    curl = f"    curl -H 'X-Turno-Key: {key}'" if key else "    curl"
    console.line(f"{curl} {address}/api/workers")
    console.line(f"{curl} -H 'Content-Type: application/json' \\\n         -d '{EXAMPLE}' {address}/api/jobs")
    console.line()


def open_browser(address: str) -> None:
    """Open the address where there is a screen, and never wait for it."""
    if sys.platform == "darwin":
        tool = shutil.which("open")
    elif os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        tool = shutil.which("xdg-open") or shutil.which("wslview")
    else:
        tool = None
    if tool:
        subprocess.Popen(
            [tool, address],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
