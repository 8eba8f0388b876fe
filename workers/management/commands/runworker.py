"""manage.py runworker: parse arguments, run one worker below its supervisor."""

import asyncio
import os
import signal
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.conf import ConfigurationError, conf
from jobs.durations import parse_duration
from jobs.sections import parse_queues
from jobs.speech import _
from workers import logs, protocol
from workers.startup import wait_for_database
from workers.supervision.arguments import parse_processes
from workers.supervision.door import become_supervisor
from workers.wiring import require
from workers.worker import End, Options, Worker


def _checked(parse: Any) -> Any:
    def convert(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from None

    return convert


class Command(BaseCommand):
    help = _("Runs a worker: takes jobs from its queues until SIGTERM or Ctrl-C, then returns what does not finish.")
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--queues", type=_checked(parse_queues), help=_("queues and their slots: default:4,critical:2")
        )
        parser.add_argument("--name", help=_("how people know this worker; the host's name and the pid by default"))
        parser.add_argument(
            "--shutdown-timeout",
            type=_checked(parse_duration),
            help=_('time for running jobs at the end, such as "30s"'),
        )
        parser.add_argument(  # taken by the supervisor; here for the help, and for who calls the command itself
            "--processes", type=_checked(parse_processes), default=1, help=_("how many worker processes: 1 to 64")
        )

    def handle(self, **options: Any) -> None:
        if protocol.FD_VARIABLE not in os.environ:
            become_supervisor(_arguments(options))
        logs.configure()
        try:
            require()
        except ConfigurationError as error:
            raise CommandError(str(error)) from None
        settings = conf().worker
        grace = options["shutdown_timeout"]
        chosen = Options(
            queues=options["queues"] or parse_queues(settings.queues),
            name=options["name"],
            shutdown_timeout=settings.shutdown_timeout if grace is None else grace,
        )
        requests = protocol.StopRequests()
        for number in (protocol.STOP, *protocol.ASKED):
            signal.signal(number, lambda number, frame: requests.note(number))
        worker = Worker(chosen)
        wanted = wait_for_database(settings.reconnect_max, stop=lambda: requests.asked > 0 or worker.abandoned)
        if not wanted:
            worker.leave(End(clean=True))
        worker.fork()
        asyncio.run(worker.run(requests))


def _arguments(options: dict[str, Any]) -> list[str]:
    """The command line of these options."""
    queues, name, grace = options["queues"], options["name"], options["shutdown_timeout"]
    found = ["--processes", str(options["processes"])]
    if queues:
        found += ["--queues", ",".join(f"{queue}:{slots}" for queue, slots in queues.items())]
    if name:
        found += ["--name", name]
    if grace is not None:
        found += ["--shutdown-timeout", f"{grace:.3f}s"]
    return found
