"""`manage.py turno check`: is everything as it has to be, and if not, what is to be done? In sentences, or as JSON."""

import json
from collections.abc import Callable, Iterator

from django.utils import translation

from jobs.speech import language
from workers.doctor.base import Level, Line
from workers.doctor.looks import BESIDE, FIRST
from workers.doctor.promises import promises

__all__ = ["Level", "Line", "check", "examined", "exit_code"]


def examined(margin: float | None = None) -> Iterator[Line]:
    """What is found, in the order in which it is looked at; never raises. Without a database that answers and has its
    tables nothing else is asked. `margin`: as `jobs.invariants.check` has it."""
    for look in FIRST:
        lines = list(look())
        yield from lines
        if any(line.level is Level.BROKEN for line in lines):
            return
    for look in (*BESIDE, lambda: promises(margin)):
        yield from look()


def exit_code(lines: list[Line]) -> int:
    """1 when something is broken, else 0."""
    return int(any(line.level is Level.BROKEN for line in lines))


def check(write: Callable[[str], object], *, as_json: bool = False, margin: float | None = None) -> int:
    """Write what is found, a line each as it is known, or one JSON document; returns the exit code."""
    lines = []
    with translation.override("en" if language() == "en" else "pt-br"):
        for line in examined(margin):
            lines.append(line)
            if not as_json:
                write(line.text())
    if as_json:
        worst = max(lines, key=lambda line: list(Level).index(line.level)).level
        found = {"level": str(worst), "checks": [line.plain() for line in lines]}
        write(json.dumps(found, ensure_ascii=False, indent=2, default=str))
    return exit_code(lines)
