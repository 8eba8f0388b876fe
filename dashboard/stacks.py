"""A Python traceback as people read it: the newest call first, own frames marked, those of libraries folded.

The text was written by the interpreter, but what an exception says stands in it too, and it may have been cut. What
does not read as a traceback from end to end is shown as it is.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath, PureWindowsPath

from django.conf import settings

MOST_FRAMES = 400
HEADER = "Traceback (most recent call last):"
FRAME = re.compile(r'  File "(?P<path>[^\n]{1,4096}?)", line (?P<line>\d{1,9}), in (?P<name>[^\n]{1,500})')
REPEATED = re.compile(r"  \[Previous line repeated (?P<times>\d{1,9}) more times?\]")
CARETS = re.compile(r"[\s~^]+")
CAUSE = "The above exception was the direct cause of the following exception:"
CONTEXT = "During handling of the above exception, another exception occurred:"
# What stands above one exception was raised while the next one was handled, or by its `from`.
LINKS = {CAUSE: "cause", CONTEXT: "context"}
LIBRARIES = re.compile(r"[/\\](site-packages|dist-packages|lib[/\\]python\d[\d.]*)[/\\]|^<frozen |[/\\]Lib[/\\]")
ENGINE = ("workers", "jobs", "turno", "dashboard")


@dataclass(frozen=True, slots=True)
class Frame:
    """One call: where, in which function, the line of code; `repeated` is how many equal frames follow it."""

    path: str
    line: int
    name: str
    code: str
    own: bool
    repeated: int = 0

    @property
    def short(self) -> str:
        """The file and its folder: what tells frames apart on a narrow screen."""
        windows = "\\" in self.path and "/" not in self.path
        parts = (PureWindowsPath if windows else PurePosixPath)(self.path).parts
        return "/".join(part for part in parts[-2:] if part not in {"/", "\\"})


@dataclass(frozen=True, slots=True)
class Run:
    """Frames that follow each other and are all own, or all of libraries."""

    own: bool
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """One exception with its frames. `link` says what it is to the block above: "", "cause" or "context"."""

    error: str
    runs: tuple[Run, ...]
    link: str = ""


@dataclass(frozen=True, slots=True)
class Stack:
    """The blocks, the exception that ended the job first; or `plain`, where the text is no whole traceback."""

    blocks: tuple[Block, ...] = ()
    plain: str = ""

    def __bool__(self) -> bool:
        return bool(self.blocks or self.plain)


def is_own(path: str) -> bool:
    """Whether a file is the operator's code: neither of the interpreter, nor of a package, nor of Turno's engine."""
    if LIBRARIES.search(path) or path.startswith("<"):
        return False
    base = str(settings.BASE_DIR).rstrip("/") + "/"
    return not (path.startswith(base) and path[len(base) :].split("/", 1)[0] in ENGINE)


def parse(text: str | None) -> Stack:
    """The stack of a traceback's text; never raises."""
    said = (text or "").rstrip()
    if not said:
        return Stack()
    blocks = _blocks(said.split("\n"))
    return Stack(plain=said) if blocks is None else Stack(blocks=blocks)


def _blocks(lines: Sequence[str]) -> tuple[Block, ...] | None:
    """Every block, the last of the text first; None when a line is out of place."""
    found: list[tuple[list[Frame], str]] = []
    links: list[str] = []
    count = 0
    for part, link in _parts(lines):
        read = _block(part)
        if read is None:
            return None
        count += len(read[0])
        if count > MOST_FRAMES:
            return None
        found.append(read)
        links.append(link)
    # A sentence stands between two blocks and tells what the upper one is to the lower; shown, the lower comes first.
    return tuple(
        Block(error, _runs(frames), "" if place == len(found) - 1 else links[place + 1])
        for place, (frames, error) in reversed(list(enumerate(found)))
    )


def _parts(lines: Sequence[str]) -> Iterator[tuple[list[str], str]]:
    """The lines of each exception, with its link to the one before it."""
    part: list[str] = []
    link = ""
    for line in lines:
        if line in LINKS and part and not part[-1]:
            yield part[:-1], link
            part, link = [], LINKS[line]
        elif line or part:
            part.append(line)
    yield part, link


def _block(lines: Sequence[str]) -> tuple[list[Frame], str] | None:
    frames: list[Frame] = []
    at = 1 if lines and lines[0] == HEADER else 0
    while at < len(lines) and lines[at].startswith("  "):
        read, at = _frame(lines, at)
        if read is None:
            return None
        frames.append(read)
    error = "\n".join(lines[at:]).strip()
    return (frames, error) if frames and error and not error.startswith("…") else None


def _frame(lines: Sequence[str], at: int) -> tuple[Frame | None, int]:
    head = FRAME.fullmatch(lines[at])
    if head is None:
        return None, at
    at += 1
    code = []
    while at < len(lines) and lines[at].startswith("    "):
        if not CARETS.fullmatch(lines[at]):
            code.append(lines[at][4:])
        at += 1
    repeated = REPEATED.fullmatch(lines[at]) if at < len(lines) else None
    made = Frame(
        path=head["path"],
        line=int(head["line"]),
        name=head["name"],
        code="\n".join(code),
        own=is_own(head["path"]),
        repeated=int(repeated["times"]) if repeated else 0,
    )
    return made, at + (repeated is not None)


def _runs(frames: Sequence[Frame]) -> tuple[Run, ...]:
    return tuple(Run(own, tuple(group)) for own, group in groupby(reversed(frames), key=lambda frame: frame.own))
