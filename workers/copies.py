"""Copies of a process of ours that a handler makes with `os.fork`: none of them may go on as what it is a copy of.

A copy has everything the process had: the handler's caller, which would try the handler again, write the end of its
job, or run the other handlers of an event loop. So it ends where the handler has ended in it, or gives up the thread.
"""

import os
import sys
import traceback
from collections.abc import Awaitable, Generator
from typing import Any, NoReturn

from workers.streams import flush_streams

NO_LOOP = "A copy of a worker's process can't go on in its event loop: it was ended.\n"


def leave(error: BaseException | None) -> NoReturn:
    """End this process as Python ends a program in which `error` was raised: with its traceback, what was printed, and
    SystemExit's code or 1; without an error 0. Nothing that was to be done at the exit is done: it is the original's.
    """
    code = 0 if error is None else 1
    try:
        if isinstance(error, SystemExit):
            code = _code(error)
        elif error is not None:
            traceback.print_exception(error)
    finally:
        _end(code)


class Steps[T]:
    """Awaits something, and ends the process when it finds itself in a copy of that where this began."""

    def __init__(self, awaited: Awaitable[T]) -> None:
        self._awaited = awaited
        self._pid = os.getpid()

    def __await__(self) -> Generator[Any, Any, T]:
        coroutine = self._whole()
        step, given = coroutine.send, None
        while True:
            self._look()
            try:
                wanted = step(given)  # what it raises goes to the caller, who looks too
            except StopIteration as end:
                return end.value
            self._look()
            try:
                step, given = coroutine.send, (yield wanted)
            except BaseException as error:  # noqa: BLE001  (a cancel: it is the coroutine's)
                step, given = coroutine.throw, error

    async def _whole(self) -> T:
        return await self._awaited

    def _look(self) -> None:
        if os.getpid() != self._pid:
            leave_loop()


def leave_loop() -> NoReturn:
    """End this process, a copy, that has come back to an event loop of the original's."""
    try:
        sys.stderr.write(NO_LOOP)
    finally:
        _end(1)


def _code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    sys.stderr.write(f"{error.code}\n")
    return 1


def _end(code: int) -> NoReturn:
    try:
        flush_streams()
    finally:
        os._exit(code)
