"""Messages for people: what a `.po` holds, and what the code and the templates ask gettext for."""

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

from django.utils.translation.template import templatize

from tests.architecture.tree import files, sources, text

# What each function's text arguments are: the context, the message, the plural.
CALLS = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop"), ("id",)),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), ("id", "plural")),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), ("context", "id")),
    **dict.fromkeys(("npgettext", "npgettext_lazy"), ("context", "id", "plural")),
}
IN_TEMPLATES = re.compile(r"""\bn?p?gettext\((?:u(['"]).*?\1,?\s*)+(?:count)?\)""", re.DOTALL)
LINE = re.compile(r'(msgctxt|msgid|msgid_plural|msgstr(?:\[[0-9]+\])?)? ?(".*")')


@dataclass
class Entry:
    """One message of a `.po`: its parts by keyword (msgid, msgstr[0], …), its flags, whether it is obsolete."""

    parts: dict[str, str] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    obsolete: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """Its context and its text."""
        return self.parts.get("msgctxt", ""), self.parts.get("msgid", "")

    @property
    def translations(self) -> list[str]:
        """One, or as many as the language has plural forms."""
        return [value for name, value in self.parts.items() if name.startswith("msgstr")]


def entries(po: Path) -> list[Entry]:
    """The messages of a `.po`; the first one is its header."""
    return [_entry(block) for block in po.read_text("utf-8").split("\n\n") if block.strip()]


def _entry(block: str) -> Entry:
    entry, keyword = Entry(), ""
    for line in block.splitlines():
        if line.startswith("#,"):
            entry.flags |= {flag.strip() for flag in line[2:].split(",")}
        elif line.startswith("#~"):
            entry.obsolete = True
        elif found := LINE.fullmatch(line):
            keyword = found[1] or keyword
            entry.parts[keyword] = entry.parts.get(keyword, "") + ast.literal_eval(found[2])
    return entry


def asked_for() -> set[tuple[str, str]]:
    """Context and text of every message in the rooms' code and in the templates."""
    trees = list(sources().values())
    for path in files():
        if path.parts[0] == "templates" and path.suffix == ".html":
            calls = [found[0] for found in IN_TEMPLATES.finditer(templatize(text(path) or ""))]
            trees += [ast.parse(call) for call in calls]
    found = (_message(node) for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {message for message in found if message}


def _message(call: ast.Call) -> tuple[str, str] | None:
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    values = {
        what: argument.value
        for what, argument in zip(CALLS.get(name, ()), call.args, strict=False)
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }
    return (values.get("context", ""), values["id"]) if "id" in values else None
