"""`python -m tests.crash.storm`: a storm over real workers and servers, judged. Exit code 1: a rule was broken."""

import argparse
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.crash.storm.plan import PROFILES, plan
from tests.crash.storm.servers import servers_of


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.crash.storm", description="A storm over Turno, and a referee."
    )
    parser.add_argument("--profile", choices=sorted(PROFILES), default="embedded")
    parser.add_argument("--minutes", type=float, default=1.5, help="how long it lasts (1.5)")
    parser.add_argument("--seed", type=int, default=1, help="jobs, deeds and blows come from it alone (1)")
    parser.add_argument("--jobs-per-second", type=float, default=20.0, help="about so many are asked for (20)")
    parser.add_argument("--report", type=Path, help="write the report to this file (Markdown)")
    parser.add_argument(
        "--tell", metavar="URL", help="store it in this database of Turno's, for the screen of promises"
    )
    parser.add_argument("--keep", action="store_true", help="keep the folder of logs also when nothing was broken")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """Let it happen, print what came of it, keep the logs when a rule was broken."""
    asked = arguments(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # whatever was started ends with this
    began = time.monotonic()

    def tell(text: str) -> None:
        say(f"[{time.monotonic() - began:6.1f} s] {text}")

    folder = Path(tempfile.mkdtemp(prefix="turno-storm-"))
    folder.chmod(0o755)  # the server's user passes through it
    seconds = asked.minutes * 60
    ok = False
    try:
        with servers_of(asked.profile, folder) as servers:
            tell(f"servers of the {asked.profile} profile are up; seed {asked.seed}")
            settle(servers.env)
            from tests.crash.storm.storm import storm

            planned = plan(asked.seed, seconds, asked.profile, asked.jobs_per_second)
            report = storm(planned, servers, tell)
        text = report.markdown()
        say(text)
        say(report.line())
        if asked.report is not None:
            asked.report.write_text(text)
        if asked.tell is not None:
            with another_database(asked.tell) as alias:
                report.keep(alias)
        ok = report.ok
    finally:
        if ok and not asked.keep:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            say(f"the logs are in {folder}")
    return 0 if ok else 1


@contextmanager
def another_database(url: str) -> Iterator[str]:
    """The name of a connection to it, which ends with the block."""
    from django.db import connections

    from jobs.sections import Database
    from turno.databases import databases

    settings = databases(Database(url=url), pooled=False)["default"]
    connections.databases["told"] = connections["default"].settings_dict | settings
    try:
        yield "told"
    finally:
        connections["told"].close()


def say(text: str) -> None:
    """A line for whoever looks on."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def settle(env: dict[str, str]) -> None:
    """This process is one of the house's clients: Django on the storm's database, with the types of its jobs."""
    for name in [name for name in os.environ if name.startswith(("TURNO_", "DJANGO_"))]:
        del os.environ[name]
    os.environ |= {name: value for name, value in env.items() if name.startswith("TURNO_")}
    os.environ["DJANGO_SETTINGS_MODULE"] = "turno.settings"
    import django

    django.setup()
    from jobs import events

    events.silence()
    logging.getLogger("pika").setLevel(logging.CRITICAL)  # it tells of each connection that breaks


if __name__ == "__main__":
    sys.exit(main())
