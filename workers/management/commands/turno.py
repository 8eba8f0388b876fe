"""manage.py turno: what an administrator asks of Turno. Parses arguments and calls one function."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from jobs.speech import _, ngettext
from workers import logs
from workers.release import NotProvenDead, release_everything


class Command(BaseCommand):
    help = _("Turno's own commands.")
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        release = commands.add_parser("release", help=_("give back what a worker that has ended left running"))
        release.add_argument("worker", type=UUID, help=_("the worker's id"))

    def handle(self, **options: Any) -> None:
        logs.configure()
        try:
            count = release_everything(options["worker"])
        except NotProvenDead as error:
            raise CommandError(_("Nothing was released: %(reason)s.") % {"reason": error}) from None
        self.stdout.write(ngettext("%(count)d job returned.", "%(count)d jobs returned.", count) % {"count": count})
