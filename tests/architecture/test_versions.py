"""The major versions that matter: some packages silently downgrade others."""

import re
import tomllib
from importlib.metadata import version

import pytest

from tests.architecture.tree import PROJECT

MAJORS = {"django": "6.1", "redis": "8", "psycopg": "3", "channels": "4", "pydantic": "2"}
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)")


def pins(name: str) -> dict[str, str]:
    """The versions that a requirements file pins."""
    lines = (PROJECT / "requirements" / name).read_text().splitlines()
    return {found["name"].lower(): found["version"] for line in lines if (found := PIN.match(line))}


def begins(found: str, wanted: str) -> bool:
    return f"{found}.".startswith(f"{wanted}.")


@pytest.mark.parametrize(("package", "major"), MAJORS.items())
def test_what_is_installed_has_the_major_version_that_was_chosen(package, major):
    assert begins(version(package), major)


@pytest.mark.parametrize("file", ["base.txt", "test.txt"])
@pytest.mark.parametrize(("package", "major"), MAJORS.items())
def test_what_is_pinned_has_the_major_version_that_was_chosen(package, major, file):
    assert begins(pins(file)[package], major)


@pytest.mark.parametrize("file", ["base.txt", "azure.txt"])
def test_the_tests_run_on_the_versions_that_are_shipped(file):
    shipped, tested = pins(file), pins("test.txt")

    assert shipped
    assert {name: tested.get(name) for name in shipped} == shipped


def test_the_extra_asks_for_what_its_locked_file_was_made_of():
    extra = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["azure"]
    lines = (PROJECT / "requirements" / "azure.in").read_text().splitlines()

    assert [line for line in lines if not line.startswith(("#", "-"))] == extra
