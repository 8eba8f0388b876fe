"""Structured logs: one line an event, JSON when not on a terminal, the event's name as the message."""

import json
import logging
import select
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from typing import Any

import orjson

# What each record has; the rest was given by whoever logs.
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in record.__dict__.items() if key not in _STANDARD and not key.startswith("_")}


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, type(None))) else str(value)


class JsonLines(logging.Formatter):
    """A JSON object a line: at, level, event, logger, then the event's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
            **_extras(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        try:
            return orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        except TypeError:  # half of a surrogate pair, a number over 64 bits: no value may cost the line
            return json.dumps({key: _plain(value) for key, value in line.items()})


class TextLines(logging.Formatter):
    """For a terminal: time, level, event, then key=value."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        fields = " ".join(f"{key}={value}" for key, value in _extras(record).items())
        line = f"{at} {record.levelname.lower():7} {record.getMessage()} {fields}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _pieces(lines: Iterable[str]) -> Iterator[str]:
    """Whole lines in as few pieces as go into a pipe undivided: several workers may write into the same."""
    piece, size = "", 0
    for line in lines:
        length = len(line.encode("utf-8", "replace"))
        if piece and size + length > select.PIPE_BUF:
            yield piece
            piece, size = "", 0
        piece, size = piece + line, size + length
    if piece:
        yield piece


class Lines(logging.StreamHandler[Any]):
    """Writes each line at once, but for those of a thread that says that more follow (`together`).

    To write one is a system call, in which a thread gives up the interpreter to others: one for each job that ends
    costs more than the rest of its end.
    """

    _more = threading.local()

    @classmethod
    @contextmanager
    def together(cls) -> Iterator[None]:
        """What this thread logs until the end of the block is written there, in few pieces."""
        waiting: dict[Lines, list[str]] = {}
        before, cls._more.waiting = getattr(cls._more, "waiting", None), waiting
        try:
            yield
        finally:
            cls._more.waiting = before
            for handler, lines in waiting.items():
                for piece in _pieces(lines):
                    handler.write(piece)

    def emit(self, record: logging.LogRecord) -> None:
        waiting = getattr(self._more, "waiting", None)
        try:
            line = self.format(record) + self.terminator
        except Exception:  # noqa: BLE001  (as logging's own handlers do)
            self.handleError(record)
            return
        if waiting is None:
            self.write(line)
        else:
            waiting.setdefault(self, []).append(line)

    def write(self, text: str) -> None:
        """Write text of whole lines. Never raises: who logs can't do anything about it."""
        with self.lock or nullcontext(), suppress(OSError, ValueError):
            self.stream.write(text)
            self.stream.flush()


def configure(level: int = logging.INFO) -> None:
    """Send every log of this process to standard error in the form that fits it."""
    handler = Lines(sys.stderr)
    handler.setFormatter(TextLines() if sys.stderr.isatty() else JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    django = logging.getLogger("django")
    django.handlers.clear()
    django.propagate = True
