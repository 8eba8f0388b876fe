#!/usr/bin/env bash
# Writes requirements/*.txt, and the benchmarks' peers' benchmarks/peers/requirements.txt, anew from their *.in (needs
# uv). The files hold versions and hashes and no address.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../requirements"
for name in base azure local test peer ../benchmarks/peers/requirements; do
    uv pip compile --quiet --universal --python-version 3.12 --generate-hashes --no-header --no-annotate "$@" \
        --output-file "$name.txt" "$name.in"
done
