"""What others made is what its list says: version, licence, digest."""

import hashlib
import re

import pytest

from tests.architecture.tree import PROJECT

VENDOR = PROJECT / "static" / "vendor"
ROW = re.compile(r"^\| `([^`]+)` \| [^|]+ \| ([^|]+) \| ([^|]+) \| `([0-9a-f]{64})` \|$", re.MULTILINE)
LISTED = {
    path: (version.strip(), licence, digest)
    for path, version, licence, digest in ROW.findall((VENDOR / "README.md").read_text(encoding="utf-8"))
}


def test_every_file_is_listed_and_only_those_that_exist():
    there = {str(path.relative_to(VENDOR)) for path in VENDOR.rglob("*") if path.is_file()}
    licences = {named for _version, licence, _digest in LISTED.values() for named in re.findall(r"`([^`]+)`", licence)}

    assert set(LISTED) | licences | {"README.md"} == there


@pytest.mark.parametrize("path", LISTED)
def test_each_file_has_the_digest_of_its_list(path):
    assert hashlib.sha256((VENDOR / path).read_bytes()).hexdigest() == LISTED[path][2]


def test_the_version_of_htmx_is_the_one_it_says_itself():
    assert f'version="{LISTED["htmx/htmx.min.js"][0]}"' in (VENDOR / "htmx" / "htmx.min.js").read_text(encoding="utf-8")
