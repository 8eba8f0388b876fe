"""Importing handler modules, so that a broken one stops nothing but itself."""

import importlib
import logging
import traceback
from dataclasses import dataclass
from pathlib import Path

from jobs.conf import conf
from jobs.text import clean

# Named as text: `jobs` knows no module of `turno`.
SAMPLES = "turno.samples.handlers"
ERROR_LENGTH = 1000
TRACE_LENGTH = 20_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadProblem:
    """A handler module that can't be imported: why, in one line with the place, and the traceback or what was printed.

    The traceback is the whole one. A module that ended or hung the process in which it was tried has none: its
    `trace` is what the process printed last, the place in its code included where that could be told.
    """

    module: str
    error: str
    trace: str = ""


def configured_modules() -> tuple[str, ...]:
    """The modules to import: the samples, unless switched off, and the setting `handlers`; each once."""
    settings = conf()
    samples = (SAMPLES,) if settings.samples.enabled else ()
    return tuple(dict.fromkeys((*samples, *settings.handlers)))


def attempt(module: str) -> LoadProblem | None:
    """Import a module by its dotted name. Whatever it raises, an exit included, is returned."""
    try:
        importlib.import_module(module)
    except BaseException as error:  # noqa: BLE001  (SystemExit and KeyboardInterrupt of a module are its own)
        return LoadProblem(module, _error_line(error), clean(_trace(error), TRACE_LENGTH))
    return None


def tell(problem: LoadProblem) -> None:
    """Say a problem in the log."""
    logger.error("handler module %s can't be imported: %s", problem.module, problem.error)


def _error_line(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _is_machinery(f.filename)]
    if frames and not isinstance(error, SyntaxError):  # a SyntaxError names its place itself
        text += f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
    return clean(text, ERROR_LENGTH, one_line=True)


def _is_machinery(filename: str) -> bool:
    return filename in {__file__, importlib.__file__} or filename.startswith("<frozen importlib")


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
