"""Databases of a test's own, and processes of the product that run against them."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import psycopg
from django.db import connection
from psycopg import sql

PROJECT = Path(__file__).resolve().parents[2]
# Locks are listed for the whole server, and another test process has a database beside ours.
OUR_LOCKS = """
    SELECT count(*) FROM pg_locks WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
ADVISORY_LOCKS = f"{OUR_LOCKS} AND locktype = 'advisory' AND granted"
PATIENCE = 60.0  # seconds for what takes one: a limit for a hanging test, no measure


def server(database: str) -> str:
    """The address of a database on the tests' server."""
    given = connection.settings_dict
    who = quote(given["USER"], safe="") + (f":{quote(given['PASSWORD'], safe='')}" if given["PASSWORD"] else "")
    if given["HOST"].startswith("/"):
        return f"postgresql://{who}@/{database}?host={quote(given['HOST'], safe='')}&port={given['PORT'] or 5432}"
    return f"postgresql://{who}@{given['HOST'] or 'localhost'}:{given['PORT'] or 5432}/{database}"


@contextmanager
def scratch_database() -> Iterator[str]:
    """The address of an empty database, dropped at the end with whoever is still connected."""
    name = f"turno_scratch_{uuid4().hex[:12]}"
    with psycopg.connect(server("postgres"), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield server(name)
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def environment(url: str, **more: str) -> dict[str, str]:
    """The environment of a child of ours: nothing of the person's configuration, messages in English."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TURNO_")}
    return {**inherited, "TURNO_DATABASE__URL": url, "TURNO_CONFIG": os.devnull, "TURNO_LANG": "en", **more}


def command(*arguments: str) -> list[str]:
    """`python manage.py …` with the Python that runs the tests."""
    return [sys.executable, str(PROJECT / "manage.py"), *arguments]


@contextmanager
def started(url: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that runs while the block does; killed at its end where it still does."""
    child = subprocess.Popen(
        command(*arguments),
        env=environment(url),
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def finished(url: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command that ran to its end, whatever that was."""
    return subprocess.run(
        command(*arguments),
        env=environment(url, **variables),
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def line_with(text: str, *children: subprocess.Popen[str]) -> subprocess.Popen[str]:
    """Read the children's output until one of them prints a line that contains `text`; returns that child."""
    streams = {child.stdout: child for child in children if child.stdout is not None}
    seen: list[str] = []
    while streams:
        ready, _writable, _failed = select.select(list(streams), [], [], PATIENCE)
        assert ready, f"nobody printed {text!r}: {seen}"
        for stream in ready:
            line = stream.readline()
            seen.append(line)
            if text in line:
                return streams[stream]
            if not line:
                del streams[stream]
    raise AssertionError(f"nobody printed {text!r}: {seen}")


def eventually(condition: Callable[[], object], child: subprocess.Popen[str]) -> None:
    """Ask until it holds: for what a child does in the database, which sends no event."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert child.poll() is None, f"the child ended: {child.communicate()[0]}"
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.05)
