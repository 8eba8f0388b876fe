"""The stack of an exception as bounded text, and whose code it came from, whatever the exception holds.

An exception is the handler's code: its text, its class and its attributes may raise, or be anything. What is read here
is read past what a class may have put over it. What a handler made is not told in full when that would be without
bounds: a chain of thousands, or groups within groups that hold each other many times.
"""

import sysconfig
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType, TracebackType

from jobs.text import CUT, clean

FRAMES = 60
MOST_ERRORS = 200  # told in full; of more than these the outermost and the first cause are told
SHOWN = 10  # members of a group
MOST_MEMBERS = 10_000  # of a group that are looked at
LINE_LENGTH = 1_000
PART_LENGTH = 8_000
LONGEST_CHAIN = 100_000
_ENGINE = tuple(f"{Path(__file__).parent.parent / name}/" for name in ("workers", "jobs"))
_NOT_OWN = (*_ENGINE, *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")), "<frozen")
_TRACEBACK, _CAUSE, _CONTEXT = (BaseException.__dict__[name] for name in ("__traceback__", "__cause__", "__context__"))
_QUIET = BaseException.__dict__["__suppress_context__"]
_NAME = type.__dict__["__name__"]


def class_name(error: BaseException) -> str:
    """The name of an exception's class, as text that can be stored; never raises."""
    return clean(_NAME.__get__(type(error)), 200, one_line=True) or "Error"


def members(error: BaseException) -> list[BaseException]:
    """The errors of which a group, and the groups in it, are made: each once, in order, about MOST_MEMBERS at most. An
    error that is no group is the only one of its own."""
    found: list[BaseException] = []
    waiting, seen = [error], {id(error)}
    while waiting and len(seen) <= MOST_MEMBERS:
        one = waiting.pop()
        if not issubclass(type(one), BaseExceptionGroup):
            found.append(one)
        for member in reversed(_members(one)):
            if id(member) not in seen:
                seen.add(id(member))
                waiting.append(member)
    return found + waiting


def stack_of(error: BaseException, limit: int) -> str:
    """The stack of an exception and of what caused it, at most `limit` characters; never raises."""
    try:
        text = _both_ends(_whole(error) if _is_small(error) else _outline(error), limit)
    except BaseException as second:  # noqa: BLE001  (whatever the handler made of it: it is still one error)
        frames = "".join(_bare(frame) for frame in _frames(_traceback(error)))
        text = f"{frames}{class_name(error)} (the whole chain can't be shown: {class_name(second)})"
    return clean(text, limit)


def own_frame(error: BaseException) -> str:
    """Where an exception came from, as module and function: the last frame of a handler's own code. Where there is
    none, it is the last one outside of the worker; empty for an exception that was raised by nobody."""
    frames = [frame for frame in _frames(_traceback(error)) if not frame.f_code.co_filename.startswith(_ENGINE[0])]
    own = [frame for frame in frames if not frame.f_code.co_filename.startswith(_NOT_OWN)]
    for frame in reversed(own or frames):
        return f"{Path(frame.f_code.co_filename).stem}:{frame.f_code.co_name}"
    return ""


def _frames(tb: TracebackType | None) -> Iterator[FrameType]:
    """The outermost frames: what recursed without end is told apart by where it began."""
    for _ in range(FRAMES):
        if tb is None:
            return
        yield tb.tb_frame
        tb = tb.tb_next


def _bare(frame: FrameType) -> str:
    """A frame without its line of code, which a module's own loader would have to give."""
    return f'  File "{frame.f_code.co_filename}", line {frame.f_lineno}, in {frame.f_code.co_name}\n'


def _traceback(error: BaseException) -> TracebackType | None:
    found = _TRACEBACK.__get__(error)
    return found if isinstance(found, TracebackType) else None


def _members(error: BaseException) -> tuple[BaseException, ...]:
    return BaseExceptionGroup.exceptions.__get__(error) if issubclass(type(error), BaseExceptionGroup) else ()


def _before(error: BaseException) -> BaseException | None:
    """What an exception says that it came from."""
    cause: BaseException | None = _CAUSE.__get__(error)
    if cause is not None or _QUIET.__get__(error):
        return cause
    context: BaseException | None = _CONTEXT.__get__(error)
    return context


def _is_small(error: BaseException) -> bool:
    """Whether the exceptions of a chain and its groups are few; one that stands in two groups is told twice."""
    waiting, chained = [error], {id(error)}
    for _ in range(MOST_ERRORS):
        if not waiting:
            return True
        one = waiting.pop()
        waiting += _members(one)[:MOST_ERRORS]
        before = _before(one)
        if before is not None and id(before) not in chained:
            chained.add(id(before))
            waiting.append(before)
    return not waiting


def _whole(error: BaseException) -> Iterable[str]:
    told = traceback.TracebackException(
        type(error),
        error,
        _traceback(error),
        limit=FRAMES,
        compact=True,
        max_group_width=SHOWN,
        max_group_depth=4,
    )
    return told.format()


def _outline(error: BaseException) -> Iterator[str]:
    """An exception alone, the first members of its group, and the first of its causes."""
    yield from _alone(error)
    members = _members(error)
    for member in members[:SHOWN]:
        yield f"  | {_line(member)}\n"
    if len(members) > SHOWN:
        yield f"  | and {len(members) - SHOWN} more exceptions\n"
    first, between, seen = error, -1, {id(error)}
    while (before := _before(first)) is not None and id(before) not in seen and len(seen) < LONGEST_CHAIN:
        first, between = before, between + 1
        seen.add(id(before))
    if first is not error:
        yield f"\nIt goes back, by {between} exceptions that are not shown, to:\n\n"
        yield from _alone(first)


def _alone(error: BaseException) -> Iterator[str]:
    yield "Traceback (most recent call last):\n"
    yield from traceback.format_tb(_traceback(error), limit=FRAMES)
    yield f"{_line(error)}\n"


def _line(error: BaseException) -> str:
    try:
        return f"{class_name(error)}: {clean(error, LINE_LENGTH)}"
    except BaseException as second:  # noqa: BLE001  (an exception whose text fails has no text)
        return f"{class_name(error)}: <{class_name(second)} in its text>"


def _both_ends(parts: Iterable[str], limit: int) -> str:
    """All of a text, or its beginning and its end, which tell the most; never more than a bounded part is kept."""
    half = limit // 2 - len(CUT) - 1
    head: list[str] = []
    tail: deque[str] = deque()
    kept = ended = 0
    cut = False
    for part in parts:
        piece = part if len(part) <= PART_LENGTH else f"{part[:PART_LENGTH]}{CUT}\n"
        if not ended and kept + len(piece) <= half:
            head.append(piece)
            kept += len(piece)
            continue
        tail.append(piece)
        ended += len(piece)
        while ended > half:
            ended -= len(tail.popleft())
            cut = True
    return "".join([*head, f"{CUT}\n" if cut else "", *tail])
