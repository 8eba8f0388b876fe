"""The shell part: finding a Python that is new enough, wherever it stands, or saying that there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from turno.launcher.paths import ROOT

TOOLS = ("bash", "readlink", "dirname", "id", "cut", "head", "env")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A PATH with a few tools and no Python."""
    for name in TOOLS:
        for folder in ("/usr/bin", "/bin"):
            if (Path(folder) / name).exists():
                (tmp_path / name).symlink_to(Path(folder) / name)
                break
    return tmp_path


def _python(path: Path, *, old: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if old:
        path.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.11.7 && exit 0\nexit 1\n')
    else:
        path.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    path.chmod(0o755)


def _run(machine: Path, script: str, **changes: str) -> subprocess.CompletedProcess[str]:
    home = machine / "home"
    home.mkdir(exist_ok=True)
    environ = {"PATH": str(machine), "HOME": str(home), "TURNO_LANG": "en", **changes}
    command = ["bash", "-c", f"set -euo pipefail; . scripts/python.sh; {script}"]
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)


def _found(machine: Path, **changes: str) -> str:
    # Only what stands on this machine's PATH and in this home: the other places are the real machine's.
    script = f"""
        python_candidates /nowhere | while read -r python; do
            case "$python" in {machine}/* | python*) ;; *) continue ;; esac
            if command -v "$python" >/dev/null && python_fits "$python"; then command -v "$python"; break; fi
        done"""
    return _run(machine, script, **changes).stdout.strip()


def test_the_newest_named_python_on_the_path_is_taken(machine):
    _python(machine / "python3", old=True)
    _python(machine / "python3.12", old=False)
    _python(machine / "python3.13", old=False)
    assert _found(machine) == str(machine / "python3.13")


def test_a_name_on_the_path_that_does_not_work_is_passed_over(machine):
    _python(machine / "python3.14", old=True)  # as a version manager's shim does
    _python(machine / "python3", old=False)
    assert _found(machine) == str(machine / "python3")


def test_the_versions_of_pyenv_are_found_when_the_path_has_only_an_old_one(machine):
    _python(machine / "python3", old=True)
    _python(machine / "home/.pyenv/versions/3.12.1/bin/python3", old=False)
    assert _found(machine) == str(machine / "home/.pyenv/versions/3.12.1/bin/python3")
    _python(machine / "elsewhere/versions/3.13.0/bin/python3", old=False)
    found = _found(machine, PYENV_ROOT=str(machine / "elsewhere"))
    assert found == str(machine / "elsewhere/versions/3.13.0/bin/python3")


def test_what_uv_knows_comes_first(machine):
    _python(machine / "python3.13", old=False)
    _python(machine / "uvs/python3", old=False)
    (machine / "uv").write_text(f"#!/bin/sh\necho {machine}/uvs/python3\n")
    (machine / "uv").chmod(0o755)
    assert _found(machine) == str(machine / "uvs/python3")


@pytest.mark.parametrize(("language", "words"), [("en", "needs Python 3.12"), ("pt_BR", "precisa do Python 3.12")])
def test_a_machine_with_an_old_python_only_gets_one_sentence(machine, language, words):
    _python(machine / "python3", old=True)
    told = _run(machine, "no_python", TURNO_LANG=language).stderr
    assert words in told
    assert "Python 3.11.7" in told
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize("script", ["iniciar.sh", "testar.sh", ".ci/run", "scripts/demo.sh"])
def test_the_scripts_are_executable_and_parse(script):
    assert os.access(ROOT / script, os.X_OK)
    subprocess.run(["bash", "-n", ROOT / script], check=True)


@pytest.mark.parametrize("arguments", [("--ajuda",), ("--estado",)])
def test_the_launcher_begins_with_nothing_installed(arguments, tmp_path):
    """It is what installs: until then there is the standard library (`-S`: no site-packages) and nothing else."""
    command = [sys.executable, "-S", "-m", "turno.launcher", *arguments]
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TURNO_LANG": "en"}
    began = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert "Traceback" not in began.stderr + began.stdout
    assert "ModuleNotFoundError" not in began.stderr
