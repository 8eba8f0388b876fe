#!/usr/bin/env python
"""Turno's command line: `python manage.py help`."""

import os
import sys


def main() -> None:
    from turno.environment import load_env_file

    load_env_file()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "turno.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
