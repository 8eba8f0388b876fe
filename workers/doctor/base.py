"""What a look says: how it stands, of what, in a sentence, and what to do."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import pgettext_lazy


class Level(StrEnum):
    """From the best to the worst."""

    OK = "ok"
    ATTENTION = "attention"
    BROKEN = "broken"


WORDS: dict[Level, Promise] = {
    Level.OK: pgettext_lazy("check", "ok"),
    Level.ATTENTION: pgettext_lazy("check", "attention"),
    Level.BROKEN: pgettext_lazy("check", "broken"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was looked at. `about` names it for programs; `says` and `advice` are for people, in their
    language; `facts` are what a program may want besides."""

    level: Level
    about: str
    says: str
    advice: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """The line as a terminal has it, with what to do below it."""
        word = f"[{WORDS[self.level]}]"
        width = max(len(str(word)) for word in WORDS.values()) + 2
        told = f"{word:<{width}} {self.says}"
        return f"{told}\n{' ' * width} {self.advice}" if self.advice else told

    def plain(self) -> dict[str, Any]:
        """The line as JSON has it."""
        return {"level": str(self.level), "about": self.about, "says": self.says, "advice": self.advice, **self.facts}


def listed(names: Iterable[object]) -> str:
    """Names one after the other."""
    return ", ".join(str(name) for name in names)
