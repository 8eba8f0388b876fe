#!/usr/bin/env bash
# Demonstration load: scripts/demo.sh 60 sends 60 jobs of the four samples and follows them to their end.
set -euo pipefail
cd -P -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/python.sh
. scripts/python.sh

if ! [ -x .venv/bin/python ]; then
    say "O Turno ainda não foi iniciado aqui: comece com ./iniciar.sh." "Turno was not started here yet: begin with ./iniciar.sh." >&2
    exit 1
fi
exec .venv/bin/python -m turno.launcher.demo "$@"
