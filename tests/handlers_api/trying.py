"""A process that tries modules: with a single thread it forks for that, with two it starts a program."""

import atexit
import json
import sys
import threading
from pathlib import Path

import django


def descriptors() -> int:
    """How many file descriptors are open."""
    return len(list(Path("/dev/fd").iterdir()))


def backend() -> int:
    """The server's process on the other side of this process's connection."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


def main() -> None:
    django.setup()
    from jobs.tryout import try_modules

    way, limit, *modules = sys.argv[1:]
    sys.stdout.write("printed before\n")  # stands in the buffer while the modules are tried
    atexit.register(sys.stdout.write, "at exit\n")
    backend_before, descriptors_before = backend(), descriptors()
    if way == "program":
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    found = try_modules(modules, float(limit))
    told = {
        "found": {module: problem and [problem.error, problem.trace] for module, problem in found.items()},
        "same connection": backend() == backend_before,
        "descriptors left": descriptors() - descriptors_before,
    }
    sys.stdout.write(json.dumps(told) + "\n")


main()
