#!/usr/bin/env python
"""Turno's command line: `python manage.py help`."""

import sys


def main() -> None:
    from turno.environment import prepare

    prepare()
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
