"""A house with a past and a life, and viewers of it: what the tests and `benchmarks/viewers.py` measure."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.kit.processes import PROJECT, eventually
from tests.kit.site import Site
from tests.kit.viewers import Cost, watch

MORE = """
INSERT INTO turno.jobs (id, type, queue, payload, state, created_at, enqueued_at, finished_at, progress)
SELECT gen_random_uuid(), 'integration.sync', 'default', '{}', 'Succeeded',
       now() - n * interval '1 s', now() - n * interval '1 s', now() - n * interval '1 s', 100
FROM generate_series(1, %s) AS n
"""
SCANS = "SELECT seq_scan, seq_tup_read FROM pg_stat_user_tables WHERE schemaname = 'turno' AND relname = 'jobs'"
# The list comes last: PostgreSQL's counters hear of a scan late, and only there may be some.
PAGES = ("/painel/", "/painel/workers", "/painel/erros", "/painel/tarefas")


@contextmanager
def house(url: str, folder: Path, *, jobs: int) -> Iterator[Site]:
    """The demonstration alive in the empty database of `url`, `jobs` finished ones more, and a web process."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TURNO_", "DJANGO_"))}
    environment |= {"TURNO_DATABASE__URL": url, "TURNO_LANG": "en"}
    said = folder / "demo.log"
    with said.open("wb") as log:
        command = [sys.executable, "manage.py", "turno", "demo", "--finished", "200", "--keep"]
        demo = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=log, stderr=log)
    site = Site(folder, {"TURNO_DATABASE__URL": url})
    try:
        eventually(lambda: demo.poll() is not None or "until Ctrl-C" in said.read_text(), "the demonstration", 120)
        assert demo.poll() is None, said.read_text()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(MORE, [jobs])
            connection.execute("VACUUM ANALYZE turno.jobs")
        yield site.wait_ready()
        assert demo.poll() is None, said.read_text()
    finally:
        demo.terminate()
        demo.wait(60)
        site.close()


def scans(url: str) -> tuple[int, int]:
    """How often the table of jobs was read without an index, and how many rows were, since ever."""
    with psycopg.connect(url) as connection:
        row = connection.execute(SCANS).fetchone()
        return (int(row[0]), int(row[1])) if row else (0, 0)


def compare(site: Site, path: str, *, crowd: int, seconds: float) -> tuple[Cost, Cost]:
    """What one viewer of the page costs, and what `crowd` do."""
    one = asyncio.run(watch(site, path, viewers=1, seconds=seconds))
    many = asyncio.run(watch(site, path, viewers=crowd, seconds=seconds))
    return one, many
