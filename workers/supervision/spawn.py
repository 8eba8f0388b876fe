"""Forks: one that goes on in this program, and one that becomes another; both die with the process that forked them."""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from workers import tree
from workers.protocol import ASKED, STOP
from workers.supervision.signals import heeded

EXIT_NO_PROGRAM = 127  # as a shell says it: the program could not be started


def fork(body: Callable[[], int]) -> int:
    """Run `body` in a child, which ends with the code that it returns. Returns the child's pid. Raises OSError.

    Requests to stop are held back until the child lets them through (`release_signals`).
    """
    parent = os.getpid()
    tree.load()
    held = signal.pthread_sigmask(signal.SIG_BLOCK, [*ASKED, STOP])
    try:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                tree.die_with_parent(parent)
                code = body()
            except BaseException:  # noqa: BLE001  (nothing may leave this branch but the end of the process)
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(code)
        return pid
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def shell_code(code: int) -> int:
    """An exit code, or minus a signal, as a shell says it."""
    return code if code >= 0 else 128 - code


def release_signals() -> None:
    """Let through what was held back."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def program(command: Sequence[str], environment: Mapping[str, str], line: int | None = None) -> int:
    """Start a program in a session of its own, without input and terminal. Returns its pid. Raises OSError.

    `line`: the one pipe that it inherits. Until it says otherwise the program ignores ASKED, which terminals and
    service managers send to it besides this process; STOP ends it.
    """

    def become() -> NoReturn:
        signal.set_wakeup_fd(-1)
        os.setsid()  # Ctrl-C at a terminal is for this process alone, and so is what a terminal asks a background group
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        if line is not None:
            os.set_inheritable(line, True)
        for number in heeded():
            signal.signal(number, signal.SIG_DFL if number == STOP else signal.SIG_IGN)
        for number in (signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        release_signals()
        try:
            os.execve(command[0], list(command), dict(environment))  # noqa: S606
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode(errors="replace"))
            os._exit(EXIT_NO_PROGRAM)

    return fork(become)
