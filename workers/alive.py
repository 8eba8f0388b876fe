"""`manage.py turno alive`: whether the workers of this machine live, for health checks that ask every few seconds.

A worker lives when its process does and its sign of life, by the database's clock, is younger than
`worker.silent_after`. Asked without Django, and answered in bounded time when the database hangs. A machine is a boot
and a pid namespace: inside a container only that container's workers count.
"""

import sys
import threading
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from typing import NamedTuple

import psycopg

from jobs.conf import conf
from jobs.databaseurl import parse_database_url
from jobs.durations import parse_duration
from jobs.speech import _
from jobs.text import first_line
from workers import identity

TIMEOUT = 5.0  # seconds for the whole look
HERE = """
SELECT name, pid, pid_started, EXTRACT(EPOCH FROM now() - seen_at)::float8
FROM turno.workers
WHERE state <> 'Offline' AND boot_id = %(boot_id)s AND pid_namespace = %(pid_namespace)s
ORDER BY name, seen_at
"""


class Sign(NamedTuple):
    """A worker of this machine and the seconds since its last sign of life."""

    name: str
    pid: int
    pid_started: str
    age: float


class Answer(NamedTuple):
    """Whether all is well, and the sentence that says it."""

    well: bool
    words: str


def ask(name: str | None = None, timeout: float = TIMEOUT) -> Answer:
    """Whether at least one worker runs on this machine (or one of this name), and each that runs gives signs of life.

    Answers within `timeout` seconds, whatever the database does.
    """
    found: list[Sign | Exception] = []

    def look() -> None:
        try:
            found.extend(_signs(timeout))
        except Exception as error:  # noqa: BLE001  (told by the other thread)
            found.append(error)

    # Nothing interrupts a driver that waits for a frozen server, or a name that is being looked up.
    thread = threading.Thread(target=look, name="turno-alive", daemon=True)
    thread.start()
    thread.join(timeout)
    if thread.is_alive():
        return Answer(False, _("The database did not answer within {seconds:g} s.").format(seconds=timeout))
    for one in found:
        if isinstance(one, Exception):
            return Answer(False, _("The database does not answer: {reason}").format(reason=first_line(one)))
    return judge([one for one in found if isinstance(one, Sign)], name, conf().worker.silent_after)


def judge(signs: Sequence[Sign], name: str | None, silent_after: float) -> Answer:
    """The answer for what stands in the table; rows whose process has certainly ended are left to others."""
    running = [
        sign for sign in signs if name in (None, sign.name) and not identity.has_ended(sign.pid, sign.pid_started)
    ]
    if not running:
        missing = _("No worker runs here.") if name is None else _("No worker {name} runs here.").format(name=name)
        return Answer(False, missing)
    silent = max(running, key=lambda sign: sign.age)
    if silent.age >= silent_after:
        words = _("{name} runs, and its last sign of life was {seconds:.0f} s ago.")
        return Answer(False, words.format(name=silent.name, seconds=silent.age))
    return Answer(True, _("Alive: {names}").format(names=", ".join(sign.name for sign in running)))


def _signs(timeout: float) -> list[Sign]:
    """What the table says of this machine's workers. Raises the driver's errors."""
    parameters = {"connect_timeout": str(max(2, round(timeout))), **parse_database_url(conf().database.url)}
    with psycopg.connect("", **parameters, prepare_threshold=None, autocommit=True) as connection:  # type: ignore[arg-type]
        rows = connection.execute(
            HERE, {"boot_id": identity.boot_id(), "pid_namespace": identity.pid_namespace()}
        ).fetchall()
    return [Sign(*row) for row in rows]


def _duration(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    if not 0 < seconds <= 3600:
        raise ArgumentTypeError(_("expected more than 0 s and at most 1 h"))
    return seconds


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--name", help=_("ask for the worker of this name alone"))
    parser.add_argument(
        "--timeout", type=_duration, default=TIMEOUT, help=_('how long the answer may take, such as "5s"')
    )


def report(name: str | None, timeout: float) -> int:
    """Print the sentence; the exit code: 0 alive, 1 not."""
    answer = ask(name, timeout)
    print(answer.words, file=sys.stdout if answer.well else sys.stderr, flush=True)
    return 0 if answer.well else 1


def main(arguments: Sequence[str]) -> int:
    """The command without Django: `arguments` is what follows `turno alive`. Ends with 2 on wrong ones."""
    parser = ArgumentParser(prog="manage.py turno alive", description=_("say whether the workers here are alive"))
    add_arguments(parser)
    options = parser.parse_args(arguments)
    return report(options.name, options.timeout)
