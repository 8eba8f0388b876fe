"""The Compose file as Compose itself reads it, and the tree that the image holds."""

import json
import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
FILE, EXAMPLE, IGNORED = PROJECT / "docker-compose.yml", PROJECT / ".env.example", PROJECT / ".dockerignore"
COMPOSE = Path(sys.executable).with_name("docker-compose")  # a package ships Compose's own program
SECRETS = {
    "TURNO_API__KEY": "key-of-the-containers-0123456789",
    "TURNO_WEB__SECRET_KEY": "s" * 48,
    "DJANGO_SUPERUSER_PASSWORD": "first-user-9182",
    "POSTGRES_PASSWORD": "postgres-password",
    "REDIS_PASSWORD": "redis-password",
    "RABBITMQ_PASSWORD": "rabbitmq-password",
}


def compose(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Compose in a folder, with nothing in its environment but these variables."""
    return subprocess.run(
        [COMPOSE, *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def laid(folder: Path, values: dict[str, str], text: str | None = None) -> Path:
    """The folder with the Compose file (or this text) and an `.env` of these values."""
    (folder / FILE.name).write_text(FILE.read_text(encoding="utf-8") if text is None else text, encoding="utf-8")
    (folder / ".env").write_text("".join(f"{name}={value}\n" for name, value in values.items()), encoding="utf-8")
    return folder


def model(folder: Path, **variables: str) -> dict[str, Any]:
    """The file with all variables filled in."""
    done = compose(laid(folder, {**SECRETS, **variables}), "config", "--format", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def variables() -> set[str]:
    """The variables that the file asks for."""
    code = (line.partition(" #")[0] for line in FILE.read_text(encoding="utf-8").splitlines())
    return set(re.findall(r"\$\{(\w+)", "\n".join(line for line in code if not line.lstrip().startswith("#"))))


def explained() -> dict[str, str]:
    """The variables of `.env.example`, those in comments too, with their values."""
    found = re.findall(r"^#?([A-Z][A-Z0-9_]+)=(.*)$", EXAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(found)


def in_image(folder: Path) -> Path:
    """A copy of what the image would hold below /app, as `.dockerignore` chooses it."""
    lines = [line.strip() for line in IGNORED.read_text(encoding="utf-8").splitlines()]
    rules = [line for line in lines if line and not line.startswith("#")]
    kept = [rule[1:] for rule in rules if rule.startswith("!")]
    dropped = [rule.removeprefix("**/") for rule in rules if not rule.startswith("!") and rule != "*"]
    for name in kept:
        source = PROJECT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=_dropping(dropped))
        else:
            shutil.copy2(source, folder / name)
    return folder


def _dropping(patterns: list[str]) -> Any:
    def ignore(folder: str, names: list[str]) -> set[str]:
        below = Path(folder).relative_to(PROJECT)
        return {
            name
            for name in names
            if any(fnmatch(name, pattern) or fnmatch(str(below / name), pattern) for pattern in patterns)
        }

    return ignore
