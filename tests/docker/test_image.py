"""The Dockerfile and what goes into the image."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docker.composed import IGNORED, PROJECT, in_image

HADOLINT = Path(sys.executable).with_name("hadolint")
DOCKERFILE = PROJECT / "Dockerfile"
ASK = "import sys, turno.asgi, workers.worker, workers.alive; from turno.launcher import demo; print(sys.path[0])"


@pytest.fixture(scope="module")
def instructions():
    """(word, rest) of each instruction, lines that go on joined."""
    lines = [line for line in DOCKERFILE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    text = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


@pytest.fixture
def image(tmp_path):
    return in_image(tmp_path)


def _last_stage(instructions):
    start = max(number for number, (word, _rest) in enumerate(instructions) if word == "FROM")
    return instructions[start:]


def test_the_linter_finds_nothing():
    command = [HADOLINT, "--failure-threshold", "style", DOCKERFILE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_linter_would_find_something():
    text = DOCKERFILE.read_text(encoding="utf-8").replace("python:3.13-slim-bookworm", "python")
    done = subprocess.run([HADOLINT, "-"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode != 0


def test_both_stages_stand_on_the_same_small_image_of_a_fixed_version(instructions):
    bases = [rest.split()[0] for word, rest in instructions if word == "FROM"]
    assert len(bases) == 2
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:3\.\d+-slim-\w+", bases[0])
    assert (PROJECT / ".python-version").read_text().strip() in bases[0]


def test_it_runs_as_a_numbered_user_that_is_not_root(instructions):
    [user] = [rest for word, rest in _last_stage(instructions) if word == "USER"]
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)
    words = [word for word, _rest in _last_stage(instructions)]
    assert not {"COPY", "ADD", "RUN"} & set(words[words.index("USER") :])


def test_a_project_that_was_cloned_for_one_user_alone_is_readable_in_the_image(instructions, tmp_path):
    compiled = next(rest for word, rest in instructions if word == "RUN" and "compileall" in rest)
    command = compiled.partition("&&")[0].replace("/app", str(tmp_path))
    (tmp_path / "jobs").mkdir(mode=0o700)
    (tmp_path / "jobs/conf.py").touch(mode=0o600)
    subprocess.run(["sh", "-c", command], check=True)
    assert (tmp_path / "jobs").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "jobs/conf.py").stat().st_mode & 0o777 == 0o644


def test_it_starts_without_a_shell_in_between_and_says_everything_at_once(instructions):
    stage = dict(_last_stage(instructions))
    assert stage["ENTRYPOINT"] == '["python"]'
    assert stage["CMD"].startswith('["')
    assert "PYTHONUNBUFFERED=1" in stage["ENV"]
    assert stage["STOPSIGNAL"] == "SIGTERM"


def test_packages_come_as_wheels_with_hashes_and_leave_no_cache(instructions):
    [install] = [rest for word, rest in instructions if word == "RUN" and "pip" in rest]
    assert "--require-hashes" in install
    assert "--only-binary :all:" in install
    assert any("PIP_NO_CACHE_DIR=1" in rest for word, rest in instructions if word == "ENV")
    assert not any("apt-get" in rest for _word, rest in instructions)


def test_no_secret_and_no_test_gets_into_the_image(image):
    assert IGNORED.read_text(encoding="utf-8").split("\n")[1] == "*"
    there = {path.name for path in image.iterdir()}
    assert there == {
        "jobs", "workers", "dashboard", "turno", "templates", "static", "locale", "requirements", "manage.py",
        "LICENSE",
    }  # fmt: skip
    assert {path.name for path in (image / "requirements").iterdir()} == {"base.txt", "azure.txt"}
    assert not list(image.rglob(".env*"))
    assert not list(image.rglob("__pycache__"))


@pytest.mark.slow
def test_what_is_in_the_image_is_all_that_its_processes_import(image):
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(image), "TURNO_LANG": "en"}
    done = subprocess.run(
        [sys.executable, "-c", ASK], cwd=image, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
