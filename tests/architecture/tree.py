"""The files of the project and their syntax trees."""

import ast
import subprocess
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
ROOMS = ("jobs", "workers", "dashboard", "turno")
LEFT_OUT = {
    ".git",
    ".venv",
    ".venv-test",
    ".venv-peers",
    ".turno",
    "__pycache__",
    "node_modules",
    "staticfiles",
    "artifacts",
}


@cache
def files() -> tuple[Path, ...]:
    """Every file that is tracked, or would be: relative to the project. Without git, all but what is left out."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0 and listed.stdout:
        found = [Path(name) for name in listed.stdout.split("\0") if name]
    else:
        found = [path.relative_to(PROJECT) for path in PROJECT.rglob("*") if path.is_file()]
        found = [path for path in found if not LEFT_OUT & set(path.parts) and ".egg-info" not in str(path)]
    return tuple(sorted(path for path in found if (PROJECT / path).is_file()))


def text(path: Path) -> str | None:
    """What stands in the file; None for one that is no text."""
    try:
        return (PROJECT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def sources(*rooms: str) -> dict[str, ast.Module]:
    """The syntax tree of each Python file of these rooms, by its path."""
    wanted = rooms or ROOMS
    return {str(path): _tree(path) for path in files() if path.suffix == ".py" and path.parts[0] in wanted}


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse((PROJECT / path).read_text(encoding="utf-8"), str(path))
