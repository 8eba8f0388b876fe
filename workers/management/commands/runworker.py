"""manage.py runworker: parse arguments, run one worker."""

import asyncio
import signal
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand

from jobs.conf import conf
from jobs.durations import parse_duration
from jobs.sections import parse_queues
from jobs.speech import _
from workers import logs
from workers.startup import wait_for_database
from workers.worker import STOP_SIGNALS, Options, Worker, end_process


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

    def handle(self, **options: Any) -> None:
        logs.configure()
        settings = conf().worker
        grace = options["shutdown_timeout"]
        chosen = Options(
            queues=options["queues"] or parse_queues(settings.queues),
            name=options["name"],
            shutdown_timeout=settings.shutdown_timeout if grace is None else grace,
        )
        stopped: list[int] = []

        def note_signal(number: int, frame: FrameType | None) -> None:
            stopped.append(number)

        for number in STOP_SIGNALS:
            signal.signal(number, note_signal)
        if not wait_for_database(settings.reconnect_max, stop=lambda: bool(stopped)):
            return
        asyncio.run(_work(chosen, lambda: bool(stopped)))


async def _work(options: Options, stopped: Callable[[], bool]) -> None:
    worker = Worker(options)
    end_process(worker.who.id, await worker.main(stopped))
