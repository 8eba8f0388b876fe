# shellcheck shell=bash
# Sourced by iniciar.sh and testar.sh: finds a Python 3.12 or newer wherever one may stand on this machine.

# say PORTUGUESE ENGLISH: prints one of them, as TURNO_LANG, LC_ALL, LC_MESSAGES or LANG asks.
say() {
    local wanted="${TURNO_LANG:-${LC_ALL:-${LC_MESSAGES:-${LANG:-}}}}"
    case "$wanted" in
        [eE][nN]*) printf '%s\n' "$2" ;;
        *) printf '%s\n' "$1" ;;
    esac
}

# python_candidates VENV: one path or command a line, the preferred ones first (TURNO_TEST_PYTHON before all).
python_candidates() {
    local home version folder
    printf '%s\n' "${TURNO_TEST_PYTHON:-}" "$1/bin/python"
    if command -v uv >/dev/null 2>&1; then
        UV_PYTHON_DOWNLOADS=never uv python find --system '>=3.12' 2>/dev/null || true
    fi
    printf '%s\n' python3.14 python3.13 python3.12 python3 python
    home="$(getent passwd "$(id -u)" 2>/dev/null | cut -d: -f6 || true)"
    for folder in "${PYENV_ROOT:+$PYENV_ROOT/versions}" "${HOME:-}/.pyenv/versions" "$home/.pyenv/versions" \
        "${UV_PYTHON_INSTALL_DIR:-}" "${HOME:-}/.local/share/uv/python" "$home/.local/share/uv/python"; do
        [ -d "$folder" ] || continue
        for version in 3.14 3.13 3.12; do
            printf '%s\n' "$folder"/"$version"*/bin/python3 "$folder"/cpython-"$version"*/bin/python3
        done
    done
    for version in 3.14 3.13 3.12; do
        printf '%s\n' "/usr/local/bin/python$version" "/opt/homebrew/bin/python$version" "/usr/bin/python$version"
    done
}

# python_fits PYTHON: whether it is new enough and able to make virtual environments.
python_fits() {
    "$1" -c 'import sys; assert sys.version_info >= (3, 12); import ctypes, ensurepip, ssl, venv' >/dev/null 2>&1
}

# find_python VENV: prints the path of the first candidate that fits; fails when there is none.
find_python() {
    local candidate
    while IFS= read -r candidate; do
        if command -v "$candidate" >/dev/null 2>&1 && python_fits "$candidate"; then
            command -v "$candidate"
            return 0
        fi
    done < <(python_candidates "$1")
    return 1
}

# no_python: says in one sentence what was found and what is needed.
no_python() {
    local found
    found="$( (python3 --version || python --version) 2>/dev/null | head -n 1 || true)"
    say "O Turno precisa do Python 3.12 ou mais novo com venv, e nesta máquina só há: ${found:-nenhum Python}. Instale um (por exemplo com uv, pyenv ou o gerenciador de pacotes) e comece de novo." \
        "Turno needs Python 3.12 or newer with venv, and this machine only has: ${found:-no Python}. Install one (for example with uv, pyenv or the package manager) and start again." >&2
}
