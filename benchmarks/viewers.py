"""What viewers of the live screens cost the database: one JSON line a page and number of viewers.

    python -m benchmarks.viewers [--jobs 200000] [--viewers 50] [--seconds 60] [--pages /painel/ …]

Starts a throw-away PostgreSQL with the demonstration alive in it. `statements` are those of the web process in
`seconds`; `fetches` the fragments asked for, of which `unchanged` came back empty; `scans` how often the table of jobs
was read from end to end meanwhile (by anybody).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.viewers.crowd import PAGES, compare, house, scans
from turno.launcher.postgres import QUICK, PrivatePostgres

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--pages", nargs="*", default=PAGES)
    asked = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turno-viewers-")))
        folder.chmod(0o755)
        server = PrivatePostgres(folder / "postgres", options=QUICK)
        stack.callback(server.stop, "immediate")
        server.start()
        url = server.url_of("postgres")
        migrate = [sys.executable, "manage.py", "migrate", "-v", "0"]
        subprocess.run(migrate, cwd=ROOT, env={**os.environ, "TURNO_DATABASE__URL": url}, check=True)
        site = stack.enter_context(house(url, folder, jobs=asked.jobs))
        for page in asked.pages:
            before, _rows = scans(url)
            for cost in compare(site, page, crowd=asked.viewers, seconds=asked.seconds):
                line = {
                    "page": page,
                    "viewers": cost.viewers,
                    "seconds": round(cost.seconds, 1),
                    "statements": cost.total,
                    "statistics": cost.statistics,
                    "fetches": cost.fetches,
                    "unchanged": cost.unchanged,
                    "signals": cost.signals,
                    "scans": scans(url)[0] - before,
                    "most": cost.most(4),
                }
                print(json.dumps(line, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
