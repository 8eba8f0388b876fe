"""`python -m turno.launcher`: what `./iniciar.sh` runs."""

import signal
import sys

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C before `main` can answer it: no stack of an import

from turno.launcher.cli import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
