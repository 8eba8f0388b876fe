"""What may stand in the tree: files of a readable size, no address of a registry, no path of one machine."""

import re
from pathlib import Path

import pytest

from tests.architecture.tree import PROJECT, files, text

LINES = 300
CODE = {".py", ".sh", ".ps1", ".html", ".css", ".js", ".cmd"}
LONG_ONES = ("jobs/migrations/", "static/vendor/")
# Written apart, so that this file is not one that it looks for.
HOSTS = ["pypi" + ".org", "python" + "hosted.org", "npm" + "js.org", "npm" + "js.com", "ana" + "conda.org"]
MACHINE_PATH = re.compile(r"(?<![\w.:/$}~*-])/(?:" + "work|home|root|Users" + r")/[\w.-]+")
ENTRY = re.compile(r"^[a-z0-9][a-z0-9._-]*(\[[a-z0-9,_-]+\])?==[^\s;]+( ; [^\\]+)?\s*\\?$", re.IGNORECASE)
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")
LOCKED = ["azure.txt", "base.txt", "local.txt", "peer.txt", "test.txt"]


def test_no_file_of_code_is_longer_than_can_be_read_at_a_sitting():
    long = {
        str(path): lines
        for path in files()
        if path.suffix in CODE and not str(path).startswith(LONG_ONES)
        if (lines := len((text(path) or "").splitlines())) > LINES
    }

    assert long == {}


def test_no_registry_of_packages_is_named_anywhere():
    named = [f"{path}: {host}" for path in files() for host in HOSTS if host in (text(path) or "").lower()]

    assert named == []


def test_no_path_of_one_machine_stands_anywhere():
    found = [f"{path}: {hit.group(0)}" for path in files() if (hit := MACHINE_PATH.search(text(path) or ""))]

    assert found == []


@pytest.mark.parametrize("line", ["cd " + "/work" + "/main", "x='" + "/home" + "/ana/x'", "(" + "/Users" + "/ana)"])
def test_a_path_of_one_machine_would_be_seen(line):
    assert MACHINE_PATH.search(line)


@pytest.mark.parametrize(
    "line", ["$HOME/.local", "https://example.org/home/page", "~/Users/x", "/api/Users/1", "a/home/b"]
)
def test_other_paths_are_none_of_one_machine(line):
    assert not MACHINE_PATH.search(line)


@pytest.mark.parametrize("name", LOCKED)
def test_each_locked_requirement_has_an_exact_version_and_hashes_and_no_address(name):
    lines = (PROJECT / "requirements" / name).read_text().splitlines()
    content = [line for line in lines if line and not line.startswith("#")]
    entries = [line for line in content if not line.startswith(" ")]

    assert entries
    assert [line for line in entries if not ENTRY.match(line)] == []
    assert [line for line in content if line.startswith(" ") and not HASH.match(line)] == []
    for entry, after in zip(content, [*content[1:], ""], strict=True):
        if not entry.startswith(" "):
            assert HASH.match(after), f"{entry} has no hash"
    assert not [line for line in lines if "://" in line or "index" in line or "@" in line]


def test_every_file_of_wishes_is_locked():
    wishes = {path.stem for path in Path(PROJECT / "requirements").glob("*.in")}

    assert {f"{wish}.txt" for wish in wishes} == set(LOCKED)
