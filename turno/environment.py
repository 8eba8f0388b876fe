"""The door of each process: the `.env` file, then the configuration, or one clear message and the end.

`.env` is read once and never over the environment. Django would show a traceback for a configuration that can't be
used; here a person sees what is wrong, a line a problem, and the process ends with status 1.
"""

import os
import sys
from pathlib import Path

from dotenv import load_dotenv

from jobs.conf import ConfigurationError, conf
from jobs.speech import _

PROJECT_DIR = Path(__file__).resolve().parent.parent
ENV_FILE = PROJECT_DIR / ".env"


def load_env_file() -> None:
    """Load `.env` from the project's folder where it exists; a variable that is set already wins.

    Ends the process with one sentence when the file can't be read.
    """
    try:
        load_dotenv(ENV_FILE, override=False)
    except OSError as error:
        sys.exit(_("{path} can't be read: {reason}").format(path=ENV_FILE, reason=error.strerror))
    except ValueError:  # not UTF-8, or a NUL in a value
        sys.exit(_("{path} is not UTF-8 text").format(path=ENV_FILE))


def prepare() -> None:
    """What comes before Django: variables, a configuration that is valid, the name of the settings module."""
    load_env_file()
    try:
        conf()
    except ConfigurationError as error:
        sys.exit(_("Turno's configuration can't be used:") + f"\n{error}")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "turno.settings")
