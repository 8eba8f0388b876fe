"""The `.env` file: what stands in it stays, what is missing is added, and only its owner may read it."""

import os
import re
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from turno.launcher.errors import LauncherError
from turno.launcher.say import _

HEADER = "# Written by ./iniciar.sh; yours to edit. It holds secrets: never commit it.\n"


def read(path: Path) -> dict[str, str]:
    """The variables of the file, {} where there is none. Raises OSError, and LauncherError for what is no `.env`."""
    from dotenv import dotenv_values  # the launcher begins before it is installed
    from dotenv.parser import parse_stream

    if not path.exists():
        return {}
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise LauncherError(_("{path} is not UTF-8 text").format(path=path)) from error
    if broken := next((found for found in parse_stream(StringIO(text)) if found.error), None):
        # python-dotenv would pass over the line, and the setting in it would be lost without a word.
        raise LauncherError(
            _("{path}: line {line} is not NAME=value, or a quote is not closed.").format(
                path=path, line=broken.original.line
            )
        )
    return {name: value for name, value in dotenv_values(stream=StringIO(text)).items() if value is not None}


def as_written(path: Path) -> dict[str, str]:
    """The variables as they are written, quotes taken off: enough to see what is there. Raises OSError."""
    if not path.exists():
        return {}
    lines = re.findall(
        r"^[ \t]*(?:export[ \t]+)?(\w+)[ \t]*=[ \t]*(.*?)[ \t]*$", path.read_text(encoding="utf-8"), flags=re.M
    )
    return {name: value.strip("'\"") for name, value in lines}


def update(path: Path, values: Mapping[str, str]) -> None:
    """Set these variables and keep every other line as it is; the file gets mode 600. Raises OSError."""
    path = path.resolve()  # a link stays one
    old = path.stat() if path.exists() else None
    text = path.read_text(encoding="utf-8") if old else HEADER
    for name, value in values.items():
        line = f"{name}={value}"
        known = re.compile(rf"^[ \t]*(?:export[ \t]+)?{name}[ \t]*=.*$", re.M)
        if known.search(text):
            text = known.sub(line.replace("\\", r"\\"), text)
        else:
            text += ("" if not text or text.endswith("\n") else "\n") + line + "\n"
    fresh = path.with_name(f".{path.name.lstrip('.')}.new")
    fresh.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        if old and os.geteuid() == 0:
            os.chown(fresh, old.st_uid, old.st_gid)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def protect(path: Path) -> None:
    """Take everybody else's rights on the file away. Raises OSError."""
    if path.exists() and path.stat().st_mode & 0o077:
        path.chmod(0o600)
