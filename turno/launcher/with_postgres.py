"""`python -m turno.launcher.with_postgres -- command …`: run a command beside a throw-away PostgreSQL.

The command finds its address in TURNO_TEST_POSTGRES (a superuser's). The server and its folder go away when
the command ends, however it ends; the exit code is the command's.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from turno.launcher.errors import LauncherError
from turno.launcher.postgres import QUICK, PrivatePostgres

VARIABLE = "TURNO_TEST_POSTGRES"


def main(arguments: Sequence[str]) -> int:
    """Run the command after `--` and return its exit code."""
    command = list(arguments)[1:] if arguments[:1] == ["--"] else list(arguments)
    folder = Path(tempfile.mkdtemp(prefix="turno-test-"))
    server = PrivatePostgres(folder / "postgres", options=QUICK)
    running: list[subprocess.Popen[bytes]] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        for process in running:
            process.send_signal(number)
        if not running:
            raise KeyboardInterrupt

    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, forward)
    try:
        folder.chmod(0o755)  # the server's user passes through it
        server.start()
        running.append(subprocess.Popen(command, env={**os.environ, VARIABLE: server.url_of("postgres")}))
        code = running[0].wait()
        return code if code >= 0 else 128 - code
    except (LauncherError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        server.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
