"""What a person sees when everything runs: address, key, what to try next, and the browser."""

import os
import shutil
import subprocess
import sys

from turno.launcher.config import PASSWORD, Config
from turno.launcher.say import Console, _, decimal

EXAMPLE = '{"type": "report.generate", "payload": {"duration": 5}}'


def welcome(console: Console, config: Config, workers: int, seconds: float, first_user: str = "") -> None:
    """Print where Turno runs and what to try; the login once, when its user was made."""
    address, key = config.address, config.key
    console.done(_("Web and {count} workers are ready").format(count=workers))
    console.line()
    console.line("  " + _("Turno is running (started in {seconds} s).").format(seconds=decimal(seconds)))
    console.line()
    password = config.variable(PASSWORD)
    login = _("{name}, password {password}  (in .env; for /admin too)").format(name=first_user, password=password)
    rows = [
        (_("Address"), address),
        (_("Key"), _("{key}  (in .env; for X-Turno-Key and to sign in)").format(key=key) if key else "-"),
        *([(_("Login"), login)] if first_user else []),
        ("API", f"{address}/docs"),
        (_("Logs"), ".turno/logs"),
    ]
    width = max(len(name) for name, _value in rows)
    for name, value in rows:
        console.line(f"  {name:<{width}}  {value}")
    console.line()
    console.line("  " + _("Try next:"))
    console.line("    scripts/demo.sh 60    # " + _("sends 60 jobs and follows them to their end"))
    curl = f"    curl -H 'X-Turno-Key: {key}'" if key else "    curl"
    console.line(f"{curl} {address}/api/workers")
    console.line(f"{curl} -H 'Content-Type: application/json' \\\n         -d '{EXAMPLE}' {address}/api/jobs")
    console.line()
    console.line("  " + _("Ctrl-C stops everything. In another terminal: ./iniciar.sh --estado, ./iniciar.sh --parar"))


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
