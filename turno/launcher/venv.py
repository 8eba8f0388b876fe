"""`python -m turno.launcher.venv [--exact] FOLDER REQUIREMENTS…`: make and fill a virtual environment.

`--exact` makes it anew when the requirements changed.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from turno.launcher import install
from turno.launcher.errors import LauncherError, sentence
from turno.launcher.say import Console


def main(arguments: Sequence[str]) -> int:
    """Make and fill it. Exit code 1 with one sentence when that fails."""
    exact = arguments[0] == "--exact"
    folder, *names = arguments[exact:]
    venv = Path(folder).resolve()
    try:
        install.check_python()
        paths, log = [Path(name) for name in names], venv.with_name(f"{venv.name}.log")
        install.ensure(venv, paths, log, Console(), exact=exact)
    except LauncherError as error:
        Console(sys.stderr).failed(str(error))
    except OSError as error:
        Console(sys.stderr).failed(sentence(error))
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
