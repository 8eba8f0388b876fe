"""`python -m turno.launcher.with_postgres -- command …`: run a command beside a throw-away PostgreSQL.

The command finds its address in TURNO_TEST_POSTGRES (a superuser's). The server and its folder go away when
the command ends, however it ends; the exit code is the command's.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from turno.launcher.errors import LauncherError
from turno.launcher.postgres import QUICK, PrivatePostgres
from turno.launcher.signals import Interrupted, Signals

VARIABLE = "TURNO_TEST_POSTGRES"
LOOK = 60.0  # seconds between two looks when nothing is due: a signal, or the command's end, ends the wait


def main(arguments: Sequence[str]) -> int:
    """Run the command after `--` and return its exit code."""
    command = list(arguments)[1:] if arguments[:1] == ["--"] else list(arguments)
    folder = Path(tempfile.mkdtemp(prefix="turno-test-"))
    server = PrivatePostgres(folder / "postgres", options=QUICK)
    signals = Signals()
    signals.install()
    signals.raising = True
    try:
        folder.chmod(0o755)  # the server's user passes through it
        server.start()
        signals.raising = False  # from here on the command hears what comes, and ends in its own way
        return _run(command, {**os.environ, VARIABLE: server.url_of("postgres")}, signals)
    except (LauncherError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except Interrupted:
        return 130
    finally:
        signals.raising = False
        server.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: Sequence[str], environment: Mapping[str, str], signals: Signals) -> int:
    """Run it to its end, passing on each signal that asks to stop, once. Returns its exit code, as a shell says it."""
    process, passed = subprocess.Popen(command, env=dict(environment)), 0
    while (code := process.poll()) is None:
        while passed < signals.count:
            process.send_signal(signals.asked[passed])
            passed += 1
        signals.wait(LOOK)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
