"""manage.py turno: what an administrator asks of Turno. Parses arguments and calls one function."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand

from workers import logs
from workers.release import release_everything


class Command(BaseCommand):
    help = "Turno's own commands."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        release = commands.add_parser("release", help="give back what a worker that has ended left running")
        release.add_argument("worker", type=UUID, help="the worker's id")

    def handle(self, **options: Any) -> None:
        logs.configure()
        release_everything(options["worker"])
