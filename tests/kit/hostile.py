"""Exceptions that no error report should break at, by name, and handlers that raise them in each isolation."""

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from typing import Any

from tests.kit.handlers import write
from turno.handlers import JobContext, Snooze, job_type

LONG = 50_000_000  # characters


class TwoArguments(Exception):
    """Can't be made from its arguments, so not unpickled."""

    def __init__(self, a: object, b: object) -> None:
        super().__init__(f"{a} and {b}")


class Socket(socket.socket):
    def __del__(self) -> None:
        self.close()


class Holds(Exception):
    """Holds what can't be copied to another process."""

    def __init__(self) -> None:
        super().__init__("holds a lock, a generator and a socket")
        self.held = threading.Lock(), (n for n in range(3)), Socket()


class TextRaises(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


class TextOfItself(Exception):
    def __str__(self) -> str:
        return str(self)


class TextIsNone(Exception):
    __str__: Any = lambda self: None


class LongText(Exception):
    def __str__(self) -> str:
        return "x" * LONG


class Odd(str):
    """Text with methods of its own."""

    def replace(self, *_: object, **__: object) -> Any:
        raise SystemExit

    def isascii(self) -> Any:
        raise SystemExit


class OddText(Exception):
    def __str__(self) -> str:
        return Odd("odd")


class NoTraceback(Exception):
    @property
    def __traceback__(self) -> Any:
        raise ZeroDivisionError


class NoCause(Exception):
    @property
    def __cause__(self) -> Any:
        raise ZeroDivisionError


class NoClass(Exception):
    @property
    def __class__(self) -> Any:
        raise ZeroDivisionError


class Nameless(type):
    @property
    def __name__(cls) -> Any:
        raise ZeroDivisionError


class NoName(Exception, metaclass=Nameless):
    """Its class has no name that can be read."""


class NoDelay(Snooze):
    """A Snooze that forgets to say for how long."""

    def __init__(self) -> None:
        """Nothing."""


class Bare(BaseException):
    """No Exception."""


def chain() -> BaseException:
    """The last of 2001 errors that were raised from each other."""
    error: Exception = ValueError("the first")
    for number in range(2000):
        following = KeyError(number)
        following.__cause__ = error
        error = following
    return error


def ring() -> BaseException:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def doubled() -> BaseException:
    """A group that holds a group twice, and so on: 2 to the power of 60 errors when each is told."""
    error: Exception = ValueError("the only one")
    for _ in range(60):
        error = ExceptionGroup("twice", [error, error])
    return error


def nested() -> BaseException:
    error: Exception = ValueError("innermost")
    for _ in range(5000):
        error = ExceptionGroup("one", [error])
    return error


# What is raised, by name; the class that is stored, and what its message begins with.
ZOO: dict[str, tuple[Callable[[], BaseException], str, str]] = {
    "two arguments": (lambda: TwoArguments(1, 2), "TwoArguments", "1 and 2"),
    "holds": (Holds, "Holds", "holds a lock"),
    "group": (
        lambda: ExceptionGroup("many", [ValueError(n) for n in range(1000)]),
        "ExceptionGroup",
        "many (1000 sub-exceptions)",
    ),
    "chain": (chain, "KeyError", "1999"),
    "ring": (ring, "ValueError", "first"),
    "doubled": (doubled, "ExceptionGroup", "twice"),
    "nested": (nested, "ExceptionGroup", "one"),
    "text raises": (TextRaises, "TextRaises", "(its message can't be shown: KeyboardInterrupt)"),
    "text of itself": (TextOfItself, "TextOfItself", "(its message can't be shown: RecursionError)"),
    "text is none": (TextIsNone, "TextIsNone", "(its message can't be shown: TypeError)"),
    "long text": (LongText, "LongText", "x" * 1000),
    "odd text": (OddText, "OddText", "odd"),
    "characters": (lambda: ValueError("a\x00b \ud800 \x1b[2J"), "ValueError", "ab ? \x1b[2J"),
    "bytes": (lambda: ValueError(b"\x94\xff\x00"), "ValueError", "b'\\x94\\xff\\x00'"),
    "no traceback": (NoTraceback, "NoTraceback", ""),
    "no cause": (NoCause, "NoCause", ""),
    "no class": (NoClass, "TypeError", "The handler raised NoClass, which can't be read: ZeroDivisionError."),
    "no name": (NoName, "NoName", ""),
    "no delay": (NoDelay, "TypeError", "The handler raised NoDelay, which can't be read: AttributeError."),
    "interrupt": (KeyboardInterrupt, "KeyboardInterrupt", ""),
    "exit 0": (lambda: SystemExit(0), "SystemExit", "0"),
    "exit 3": (lambda: SystemExit(3), "SystemExit", "3"),
    "generator exit": (GeneratorExit, "GeneratorExit", ""),
    "cancelled": (asyncio.CancelledError, "CancelledError", ""),
    "bare": (Bare, "Bare", ""),
    "memory": (MemoryError, "MemoryError", ""),
    "recursion": (lambda: RecursionError("too deep"), "RecursionError", "too deep"),
    "stop": (lambda: StopIteration("no more"), "StopIteration", "no more"),
    "async stop": (lambda: StopAsyncIteration("no more"), "StopAsyncIteration", "no more"),
}


def throw(what: str) -> None:
    """Raise what is called so, in a frame that a fingerprint can name."""
    raise ZOO[what][0]()


@job_type("hostile.async", max_attempts=1)
async def hostile_async(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Raises what `what` names, on an event loop."""
    write("start", payload["what"].replace(" ", "_"), ctx)
    throw(payload["what"])


@job_type("hostile.thread", max_attempts=1, isolation="thread")
def hostile_thread(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """The same in a thread."""
    write("start", payload["what"].replace(" ", "_"), ctx)
    throw(payload["what"])


@job_type("hostile.process", max_attempts=1)
def hostile_process(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """The same in a child process."""
    write("start", payload["what"].replace(" ", "_"), ctx)
    throw(payload["what"])


class EndlessText(Exception):
    def __str__(self) -> str:
        while self.args is not None:
            continue
        return ""


@job_type("hostile.endless", max_attempts=1)
def endless(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Raises what never ends to say what it is."""
    raise EndlessText


@job_type("hostile.where")
def where(ctx: JobContext, payload: dict[str, Any]) -> Any:
    """Says which process it ran in."""
    return {"pid": os.getpid()}
