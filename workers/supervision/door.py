"""How a `runworker` becomes a supervisor: before Django is imported where that is possible, else by exec."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

from workers import tree
from workers.protocol import EXIT_USAGE, FD_VARIABLE
from workers.supervision.arguments import ASK_DJANGO, of_process, split
from workers.supervision.init import Init
from workers.supervision.supervisor import Supervisor


def supervise_if_asked(argv: Sequence[str], start: Sequence[str]) -> None:
    """Become the supervisor, and end with it, when `argv` is that of a `runworker` that no supervisor has started.

    `start` is what comes before the command's name to start the same program again.
    """
    arguments = argv[2:]
    if list(argv[1:2]) == ["runworker"] and FD_VARIABLE not in os.environ and not set(arguments) & set(ASK_DJANGO):
        sys.exit(supervise([*interpreter(), *start], arguments))


def supervise(program: Sequence[str], arguments: Sequence[str]) -> int:
    """Supervise `runworker` with these arguments. `program` starts Django's commands. Returns the exit code."""
    try:
        count, others = split(arguments)
    except ValueError as error:
        sys.stderr.write(f"runworker: {error}\n")
        return EXIT_USAGE
    _open_standard_streams()
    release = [*program, "turno", "release", "--reaped"]
    workers = [[*program, "runworker", *(of_process(others, n) if count > 1 else others)] for n in range(1, count + 1)]
    # What a shell had started before it became this program (`agent & exec …`) is not ours to kill, nor what that
    # leaves, which falls to a subreaper: then the supervisor is a child that has nothing to do with it.
    if count == 1 and os.getpid() != 1 and not tree.has_children():
        return Supervisor(workers[0], release, os.environ).run()
    return Init([partial(_run, worker, release) for worker in workers]).run()


def _run(worker: Sequence[str], release: Sequence[str], tell_init: Callable[[], None]) -> int:
    return Supervisor(worker, release, os.environ, tell_init).run()


def _open_standard_streams() -> None:
    """Whoever closed one of them would have it opened again as a pipe of ours, and the log written into that."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)


def interpreter() -> list[str]:
    """This Python with the options that it was started with."""
    options = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv)]
    return [sys.executable, *(options[:-1] if options[-1:] in (["-m"], ["-c"]) else options)]


def become_supervisor(arguments: Sequence[str]) -> NoReturn:
    """Replace this program, which has imported Django already, by the supervisor."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [*interpreter(), "-m", "workers.supervision", *arguments]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command, environment)  # noqa: S606
