"""Markdown as the tests of the documents see it: fenced blocks, links, headings, tables."""

import io
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
READMES = (PROJECT / "README.md", PROJECT / "README.pt-BR.md")
PAGES = (
    *READMES,
    PROJECT / "CHANGELOG.md",
    PROJECT / "CONTRIBUTING.md",
    *sorted((PROJECT / "docs").rglob("*.md")),
)

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language and its text."""

    language: str
    text: str

    @property
    def file_name(self) -> str | None:
        """The file that a Python block says it is, in a comment on its first line."""
        found = re.match(r"# (\w+\.py)\n", self.text)
        return found[1] if found else None

    @property
    def code(self) -> str:
        """The text without its comments, in which the two languages differ."""
        if self.language == "python":
            return _python_without_comments(self.text)
        lines = (line for line in self.text.splitlines() if not line.lstrip().startswith("#"))
        return "\n".join(lines)


def _python_without_comments(text: str) -> str:
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
    return "\n".join(line for line in lines if line)


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [Block(*found) for found in _FENCE.findall(page.read_text(encoding="utf-8"))]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    """The targets of the page's links."""
    return _LINK.findall(prose(page))


def headings(page: Path) -> list[tuple[int, str]]:
    """(level, text) of each heading, in order."""
    return [(len(level), text) for level, text in _HEADING.findall(prose(page))]


def anchor(heading: str) -> str:
    """The name by which a link reaches a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def settings_table(page: Path) -> dict[str, str]:
    """Key and default, as the page's table of settings has them; "" where the default is a word of the language."""
    rows = re.findall(r"^\| `([a-z_.]+)` \| (.+?) \| .+ \|$", prose(page), re.MULTILINE)
    return {key: default[1:-1] if default.startswith("`") else "" for key, default in rows}
