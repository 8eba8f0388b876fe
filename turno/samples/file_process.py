"""`file.process`: writes or takes a text, reads it line by line, counts, digests and transforms it."""

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from django.utils.translation import gettext, gettext_noop
from pydantic import Field

from turno.handlers import JobContext, PermanentJobError, job_type
from turno.samples.pace import Demonstration, Pace

WORDS = ("fila", "turno", "tarefa", "lote", "nota", "pedido", "cliente", "estoque", "remessa", "prazo", "conta")
Transform = Literal["none", "upper", "lower", "title", "reverse", "number"]
COMMON = 5


class FilePayload(Demonstration):
    """Which text to process, and how."""

    content: str | None = Field(
        None,
        max_length=100_000,
        description=gettext_noop("The text to process; without it one is made up."),
        examples=["uma linha\noutra linha"],
    )
    lines: int = Field(500, ge=1, le=50_000, description=gettext_noop("How many lines to make up."), examples=[500])
    transform: Transform = Field("upper", description=gettext_noop("What is done to each line."), examples=["upper"])
    name: str = Field(
        "input.txt",
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,79}$",
        description=gettext_noop("The file's name."),
        examples=["pedidos.txt"],
    )


@dataclass(slots=True)
class Counts:
    """What was found while reading."""

    lines: int = 0
    words: Counter[str] = field(default_factory=Counter)
    size: int = 0
    digest: Any = field(default_factory=hashlib.sha256)

    def add(self, line: str) -> None:
        """Count one line, its end included."""
        raw = line.encode()
        self.lines += 1
        self.size += len(raw)
        self.words.update(word.lower() for word in line.split())
        self.digest.update(raw)


def _number(line: str, index: int) -> str:
    return f"{index:06} {line}"


TRANSFORMS: dict[Transform, Callable[[str, int], str]] = {
    "none": lambda line, _: line,
    "upper": lambda line, _: line.upper(),
    "lower": lambda line, _: line.lower(),
    "title": lambda line, _: line.title(),
    "reverse": lambda line, _: line[::-1],
    "number": _number,
}


@job_type("file.process", timeout="10 min")
class FileProcess:
    """Counts, digests and transforms a text file."""

    def run(self, ctx: JobContext, payload: FilePayload) -> dict[str, Any]:
        """Run one execution."""
        source = ctx.folder / payload.name
        target = ctx.folder / f"{source.stem}.{payload.transform}{source.suffix}"
        pace = Pace(ctx, payload, steps=4)
        pace.step(gettext("Receiving the file"))
        write(source, [payload.content] if payload.content is not None else made_up(payload.lines, payload.seed))
        pace.step(gettext("Reading"))
        counts = read(source)
        ctx.log(gettext("Lines: %(lines)d, bytes: %(bytes)d") % {"lines": counts.lines, "bytes": counts.size})
        pace.step(gettext("Transforming"))
        digest = transform(source, target, TRANSFORMS[payload.transform])
        pace.step(gettext("Checking"))
        check(target, digest)
        pace.done()
        return {
            "file": payload.name,
            "lines": counts.lines,
            "words": counts.words.total(),
            "bytes": counts.size,
            "sha256": counts.digest.hexdigest(),
            "common": dict(sorted(counts.words.most_common(COMMON), key=lambda pair: (-pair[1], pair[0]))),
            "output": {"file": target.name, "bytes": target.stat().st_size, "sha256": digest},
        }


def made_up(lines: int, seed: int) -> Iterable[str]:
    """`lines` lines of words that are the same for the same seed."""
    rng = random.Random(seed)  # noqa: S311  (made-up data)
    return (" ".join(rng.choices(WORDS, k=rng.randint(3, 12))) + "\n" for _ in range(lines))


def write(path: Path, parts: Iterable[str]) -> None:
    """Write the text as UTF-8, its line ends as they are."""
    with path.open("w", encoding="utf-8", newline="") as out:
        out.writelines(parts)


def read(path: Path) -> Counts:
    """Count and digest a text file without holding it whole."""
    counts = Counts()
    with path.open(encoding="utf-8", newline="") as source:
        for line in source:
            counts.add(line)
    return counts


def transform(source: Path, target: Path, change: Callable[[str, int], str]) -> str:
    """Write each line of `source` changed into `target`; the SHA-256 (hex) of what was written."""
    digest = hashlib.sha256()
    with source.open(encoding="utf-8", newline="") as lines, target.open("wb") as out:
        for index, line in enumerate(lines, start=1):
            body = line.rstrip("\r\n")
            raw = (change(body, index) + line[len(body) :]).encode()
            digest.update(raw)
            out.write(raw)
    return digest.hexdigest()


def check(path: Path, digest: str) -> None:
    """Raises PermanentJobError when the file is not what was written."""
    with path.open("rb") as written:
        if hashlib.file_digest(written, "sha256").hexdigest() != digest:
            raise PermanentJobError(gettext("The file is not what was written."))
