"""What the launcher tells a person: two languages from the project's own catalogue, and lines of progress."""

import gettext
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from io import TextIOWrapper
from typing import TextIO

from turno.launcher.paths import ROOT

QUIET_INTERVAL = 5.0  # seconds between two progress lines where they can't be overwritten


def language(environ: Mapping[str, str]) -> str:
    """The catalogue: "en" when the first of TURNO_LANG, LC_ALL, LC_MESSAGES, LANG that is set says so."""
    for name in ("TURNO_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environ.get(name):
            return "en" if value.lower().startswith("en") else "pt_BR"
    return "pt_BR"


@cache
def _catalogue() -> gettext.NullTranslations:
    return gettext.translation("django", ROOT / "locale", [language(os.environ)], fallback=True)


def _(message: str) -> str:
    """The message in the person's language; the message itself where the catalogue has no translation."""
    return _catalogue().gettext(message)


def ngettext(one: str, many: str, count: int) -> str:
    """The message of the two that goes with the count, in the person's language."""
    return _catalogue().ngettext(one, many, count)


def decimal(value: float) -> str:
    """A number with one decimal place, as the person's language writes it."""
    text = f"{value:.1f}"
    return text if language(os.environ) == "en" else text.replace(".", ",")


class Console:
    """Steps with their outcome. On a terminal a running step is one changing line, else a line at times."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        if isinstance(self.stream, TextIOWrapper) and self.stream.errors == "strict":
            self.stream.reconfigure(errors="replace")  # an ASCII terminal shows less, but stops nothing
        self.live = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        fancy = (self.stream.encoding or "").lower().replace("-", "") == "utf8"
        self.tick, self.cross, self.dots = ("✓", "✗", "…") if fancy else ("ok", "!!", "..")
        self._open = False
        self._last = ("", 0.0)

    def progress(self, text: str) -> None:
        """Say what is going on now; the next line replaces it where that is possible."""
        if self.live:
            self._write(f"\r\x1b[2K  {self.dots} {text[: self._room()]}")
            self._open = True
        elif text != self._last[0] and time.monotonic() - self._last[1] >= QUIET_INTERVAL:
            self._write(f"  {self.dots} {text}\n")
            self._last = (text, time.monotonic())

    def done(self, text: str) -> None:
        """A step that ended well."""
        self._line(f"  {self.tick} {text}")

    def failed(self, text: str) -> None:
        """Something that went wrong."""
        self._line(f"  {self.cross} {text}")

    def line(self, text: str = "") -> None:
        """A line as it is."""
        self._line(text)

    def _room(self) -> int:
        """How many characters a changing line has beside its sign, so that it never wraps."""
        try:
            columns = os.get_terminal_size(self.stream.fileno()).columns
        except OSError:  # the terminal is gone
            columns = 0
        return max(1, (columns or 80) - 5)  # some terminals do not know their size and say 0

    def _line(self, text: str) -> None:
        self._write(("\r\x1b[2K" if self._open else "") + text + "\n")
        self._open = False
        self._last = ("", time.monotonic())

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except OSError:  # the terminal or the pipe is gone: the work goes on all the same
            self.live = False
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())
