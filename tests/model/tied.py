"""What the steps of the models stand for: their names as they are written, and what in the code is so named."""

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import jobs.transitions

MODELS = Path(__file__).parent
VERBS = Path(jobs.transitions.__file__).parent
NAME = re.compile(r"[a-z_]+(\.[A-Za-z_]+)+")


@cache
def named() -> frozenset[str]:
    """Every name of that kind that stands in a model."""
    files = [path for path in MODELS.glob("*.py") if not path.stem.startswith(("test_", "catalogue", "tied"))]
    found = (node.value for path in files for node in ast.walk(ast.parse(path.read_text()))
             if isinstance(node, ast.Constant) and isinstance(node.value, str))  # fmt: skip
    return frozenset(text for text in found if NAME.fullmatch(text))


def verbs_file(name: str) -> str | None:
    """The file of the verbs that the name begins with."""
    stem, *rest = name.split(".")
    return stem if len(rest) == 1 and (VERBS / f"{stem}.py").exists() else None


def resolved(name: str) -> object:
    """What it stands for: in the verbs, or by its whole dotted name. Raises LookupError."""
    path = f"jobs.transitions.{name}" if verbs_file(name) else name
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if not hasattr(found, part):
                raise LookupError(f"{path} is gone")
            found = getattr(found, part)
        return found
    raise LookupError(f"{path} is gone")
