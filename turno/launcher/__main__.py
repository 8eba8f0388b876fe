"""`python -m turno.launcher`: what `./iniciar.sh` runs."""

import sys

from turno.launcher.cli import main

sys.exit(main(sys.argv[1:]))
