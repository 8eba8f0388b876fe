"""manage.py turno: what an administrator asks of Turno. Parses arguments and calls one function."""

from argparse import SUPPRESS, ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from jobs.speech import _, ngettext
from workers import logs
from workers.release import NotReleased, release_everything


class Command(BaseCommand):
    help = _("Turno's own commands.")
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        release = commands.add_parser("release", help=_("give back what a worker that has ended left running"))
        release.add_argument("worker", type=UUID, help=_("the worker's id"))
        release.add_argument("--lost", action="store_true", help=_("it crashed: charge its jobs with an attempt"))
        # What only its supervisor can say: that all of the worker's processes were killed and reaped.
        release.add_argument("--reaped", action="store_true", help=SUPPRESS)

    def handle(self, **options: Any) -> None:
        logs.configure()
        try:
            count = release_everything(options["worker"], lost=options["lost"], reaped=options["reaped"])
        except NotReleased as error:
            raise CommandError(_("Not released: %(reason)s.") % {"reason": error}) from None
        self.stdout.write(ngettext("%(count)d job returned.", "%(count)d jobs returned.", count) % {"count": count})
