"""The throw-away process in which handler modules are imported first (`jobs.tryout` is the other side of its pipes).

It tells in JSON lines what it is at: {"trying": module} before an import, {"module", "error", "trace", "threads"} after
it. Started as a program: `python -m jobs.tryout_child RESULTS LIFELINE MODULE…`, with the numbers of two pipes.
"""

import faulthandler
import fcntl
import gc
import json
import os
import resource
import select
import signal
import stat
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from jobs.loading import LoadProblem, attempt
from jobs.speech import _

# Written between the modules' outputs, so that the reader knows where the last one's begins.
NEXT = b"\x00turno:next\x00"
EXIT_CLOSED = 117  # an import closed the pipe over which this could be told


def run(modules: Sequence[str], results: int, lifeline: int) -> NoReturn:
    """Import the modules up to the first that fails, tell of each, and end the process.

    No exit handler runs, and nothing of the parent's is flushed.

    The process must lead a session of its own: it is killed with its whole group when `lifeline` is closed.
    """
    code = 1
    try:
        gc.freeze()  # what came with a fork is the parent's: no finalizer of it may run here
        _plain_signals()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        faulthandler.enable(2)  # a crash, or the SIGABRT of a parent that waited in vain, shows the place in the code
        _die_with_parent(lifeline)
        _try_each(modules, results)
        code = 0
    except BaseException:  # noqa: BLE001  (the process ends here in any case)
        sys.excepthook(*sys.exc_info())
    finally:
        _flush()
        os._exit(code)


def _try_each(modules: Sequence[str], results: int) -> None:
    process, at_first = os.getpid(), _descriptors()
    own = at_first.get(results) or _identity(results)
    for module in modules:
        os.write(2, NEXT)
        _tell(results, {"trying": module})
        threads = set(threading.enumerate())
        problem = attempt(module)
        _flush()
        if os.getpid() != process:
            problem = LoadProblem(module, _("the import goes on in a copy of the process that it forked"))
        if _identity(results) != own:
            os._exit(EXIT_CLOSED)
        closed = [number for number, identity in at_first.items() if _identity(number) != identity]
        if closed and problem is None:
            problem = LoadProblem(module, closed_descriptors())
        left = [thread.name for thread in threading.enumerate() if thread not in threads]
        said = {"error": problem.error, "trace": problem.trace} if problem else {"error": None}
        _tell(results, {"module": module, **said, "threads": left})
        if problem:
            return  # what it did until it failed must not be laid at the door of the next one


def closed_descriptors() -> str:
    """What is said of a module that closed what is not its own."""
    return _("the import closed file descriptors that are not its own")


def _tell(results: int, said: dict[str, Any]) -> None:
    line = memoryview(json.dumps(said).encode("ascii") + b"\n")
    while line:
        line = line[os.write(results, line) :]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the module may have closed or replaced it
            stream.flush()


def _plain_signals() -> None:
    """No signal handler of the parent's may run here."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)


def _die_with_parent(lifeline: int) -> None:
    """From now on the closing of the lifeline's other end, such as by the parent's death, kills this process group.

    Where the kernel can do it by itself it does: no import can hold it up, and this process keeps its single thread.
    """
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
        if select.select([lifeline], [], [], 0)[0]:  # closed before the kernel knew
            os.killpg(0, signal.SIGKILL)
    else:
        threading.Thread(target=_watch, args=(lifeline,), daemon=True, name="turno-lifeline").start()


def _watch(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.killpg(0, signal.SIGKILL)


def _descriptors() -> dict[int, tuple[int, int]]:
    """What is open: pipes, sockets and the like. Files may be closed by their owners, such as the handler of a log."""
    found = {}
    with suppress(OSError):
        for name in os.listdir("/dev/fd"):  # noqa: PTH208  (numbers, no paths)
            number = int(name)
            identity = _identity(number)
            if identity is not None and not stat.S_ISREG(os.fstat(number).st_mode):
                found[number] = identity
    return found


def _identity(number: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def main() -> NoReturn:
    """The program: Django is set up as in the process that started this one."""
    results, lifeline, *modules = sys.argv[1:]
    import django

    django.setup(set_prefix=False)
    run(modules, int(results), int(lifeline))


if __name__ == "__main__":
    main()
