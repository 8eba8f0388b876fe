"""manage.py turno: what an administrator asks of Turno. Parses arguments and calls one function."""

import sys
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from jobs.speech import _, ngettext
from workers import alive, doctor, logs
from workers.demo.fill import NotEmpty, fill
from workers.demo.life import live
from workers.release import NotReleased, release_everything


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise ArgumentTypeError(
                _("expected a whole number from %(least)d to %(most)d") % {"least": least, "most": most}
            )
        return int(text)

    return parse


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
        alive.add_arguments(commands.add_parser("alive", help=_("say whether the workers of this machine are alive")))
        asked = commands.add_parser("check", help=_("say whether all is well, what is not, and what to do"))
        asked.add_argument("--json", action="store_true", help=_("as one JSON document"))
        show = commands.add_parser("demo", help=_("fill an empty database with a demonstration"))
        show.add_argument("--seed", type=int, default=7, help=_("the same seed gives the same picture"))
        show.add_argument("--workers", type=_whole(6, 500), default=6, help=_("how many workers"))
        show.add_argument("--finished", type=_whole(0, 1_000_000), default=6000, help=_("jobs that ended in 24 hours"))
        show.add_argument("--keep", action="store_true", help=_("go on living until Ctrl-C"))
        show.add_argument("--still", action="store_true", help=_("with --keep: only signs of life, nothing moves"))

    def handle(self, **options: Any) -> None:
        if options["command"] == "alive":
            sys.exit(alive.report(options["name"], options["timeout"]))
        if options["command"] == "check":
            sys.exit(doctor.check(self.stdout.write, as_json=options["json"]))
        logs.configure()
        if options["command"] == "demo":
            self._demo(**options)
        else:
            self._release(**options)

    def _demo(self, *, seed: int, workers: int, finished: int, keep: bool, still: bool, **_options: Any) -> None:
        try:
            done = fill(seed=seed, workers=workers, finished=finished)
        except NotEmpty:
            raise CommandError(
                _("The demonstration fills an empty database only, and this one has jobs or workers."), returncode=2
            ) from None
        self.stdout.write(
            _("Filled: %(workers)d workers, %(jobs)d jobs, %(letters)d dead letters.")
            % {"workers": done.workers, "jobs": done.jobs, "letters": done.letters}
        )
        if keep:
            self.stdout.write(_("The demonstration lives until Ctrl-C."))
            self.stdout.flush()
            live(Random(seed), moving=not still)  # noqa: S311

    def _release(self, **options: Any) -> None:
        try:
            count = release_everything(options["worker"], lost=options["lost"], reaped=options["reaped"])
        except NotReleased as error:
            raise CommandError(_("Not released: %(reason)s.") % {"reason": error}) from None
        self.stdout.write(ngettext("%(count)d job returned.", "%(count)d jobs returned.", count) % {"count": count})
