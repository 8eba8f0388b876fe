#!/usr/bin/env python
"""Turno's command line: `python manage.py help`."""

import gc
import sys
from pathlib import Path


def main() -> None:
    if sys.argv[1:2] == ["runworker"]:  # a worker's supervisor is small: it goes on without Django
        from workers.supervision.door import supervise_if_asked

        supervise_if_asked(sys.argv, [str(Path(__file__).resolve())])
    gc.disable()  # what is imported stays: to look it through again and again takes a fifth of a start
    from turno.environment import prepare

    prepare()
    if sys.argv[1:3] == ["turno", "alive"]:  # health checks ask all the time, on each machine
        from workers.alive import main as alive

        sys.exit(alive(sys.argv[3:]))
    from django.core.management import execute_from_command_line

    # Where the arguments name other settings, or a reloader wants to see what fails, Django sets itself up.
    if sys.argv[1:2] != ["runserver"] and not any(a.startswith(("--settings", "--pythonpath")) for a in sys.argv[2:]):
        import django

        django.setup()
    gc.freeze()
    gc.enable()
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
