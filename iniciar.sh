#!/usr/bin/env bash
# Installs Turno where needed, starts it and keeps it up: ./iniciar.sh --ajuda
set -euo pipefail
cd -P -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")"
# shellcheck source=scripts/python.sh
. scripts/python.sh

if ! python="$(find_python .venv)"; then
    no_python
    exit 1
fi
exec "$python" -m turno.launcher "$@"
