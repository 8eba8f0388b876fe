"""Gettext without Django: for what is said before Django's settings exist, the configuration's errors above all.

The catalogue is the project's own; the language that of the environment: TURNO_LANG, LC_ALL, LC_MESSAGES, LANG.
"""

import gettext
import os
from functools import cache
from pathlib import Path

LOCALE_DIR = Path(__file__).resolve().parent.parent / "locale"


def language() -> str:
    """The catalogue: "en" when the first of the four variables that is set says so, else "pt_BR"."""
    for name in ("TURNO_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return "en" if value.lower().startswith("en") else "pt_BR"
    return "pt_BR"


@cache
def _catalogue(name: str) -> gettext.NullTranslations:
    return gettext.translation("django", LOCALE_DIR, [name], fallback=True)


def gettext_noop(message: str) -> str:
    """The message as it is, marked for the catalogue (Django's own function of this name asks for the settings)."""
    return message


def _(message: str) -> str:
    """The message in the language of the process; the message itself where it has no translation."""
    return _catalogue(language()).gettext(message)


def ngettext(one: str, many: str, count: int) -> str:
    """The message of the two that goes with the count, in the language of the process."""
    return _catalogue(language()).ngettext(one, many, count)
