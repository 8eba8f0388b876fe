"""The READMEs: their blocks are run in order against a real Turno, and what they say of files and keys is true."""

import json
import re
import shutil
import signal
from urllib.parse import unquote

import pytest

import jobs.version
from jobs.conf import Settings
from jobs.models import Job, Worker
from tests.docs.blocks import PAGES, PROJECT, READMES, anchor, blocks, headings, links, settings_table
from tests.docs.house import House
from tests.kit.look import wait_state

ENGLISH, PORTUGUESE = READMES
# Blocks that are not run as they stand, by what they begin with: the launcher and the tests are tested elsewhere, and a
# test installs nothing.
LAUNCHER, TESTS, INSTALL = "./iniciar.sh", "./testar.sh", "python3 -m venv .venv"


@pytest.fixture
def house(fleet, tmp_path):
    """A web process and a worker on the test database, ended with the test."""
    built = House(fleet, tmp_path)
    yield built
    built.close()


@pytest.mark.crash
def test_every_block_of_the_readme_does_what_it_says(house):
    assert shutil.which("curl"), "the README's blocks use curl: install it"
    ran = []
    for block in blocks(ENGLISH):
        first = block.text.split("\n", 1)[0]
        if block.language == "toml":
            house.configure(block.text)
        elif block.file_name is not None:
            (house.handlers / block.file_name).write_text(block.text)
        elif block.language == "python":
            _refused_when_sent(house)
            _enqueued_in_a_transaction(house, block.text)
        elif first.startswith(LAUNCHER):
            house.launcher(block.text)
        elif "runworker" in first:
            _one_more_worker(house, block.text)
        elif not first.startswith((TESTS, INSTALL)):
            ran.append(house.shell(block.text))
    _key, enqueued, followed, tested = ran
    job = Job.objects.get(id=enqueued.strip())
    assert (job.state, job.type) == ("Succeeded", "report.generate")
    assert followed.splitlines()[-1].startswith("Succeeded 100")
    assert "Found 2 test(s)." in tested
    assert Job.objects.count() == 2


def _enqueued_in_a_transaction(house, code):
    id_ = house.python(code).split()[-2]
    done = wait_state(id_, "Succeeded")
    assert (done.type, done.result, done.unique_key) == ("billing.send", {"number": 7}, "invoice-7")
    assert done.max_attempts == 8  # turno.toml wins over the declaration
    assert [line.message for line in done.logs.all()] == ["Invoice 7 for Ana"]


def _one_more_worker(house, block):
    worker = house.background(block).wait_ready()
    try:
        ready = worker.events("worker.ready")[0]
        assert ready["queues"] == {"default": 4, "critical": 2}
        assert Worker.objects.get(id=ready["id"]).state == "Online"
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
        assert Worker.objects.get(id=ready["id"]).state == "Offline"
    finally:
        worker.close()


def _refused_when_sent(house):
    """What the README promises of it: the web process loads the handler's module too."""
    told = house.shell(
        'curl -sS "$URL/api/jobs" -H "X-Turno-Key: $KEY" -H "Content-Type: application/json"'
        """ -d '{"type": "billing.send", "payload": {"number": "seven"}}'"""
    )
    problem = json.loads(told)
    assert problem["status"] == 400
    assert set(problem["errors"]) == {"payload.number", "payload.customer"}


def test_both_languages_have_the_same_code():
    first, second = blocks(ENGLISH), blocks(PORTUGUESE)
    assert [(block.language, block.code) for block in first] == [(block.language, block.code) for block in second]
    assert all(block.language in {"bash", "python", "toml"} for block in first)


def test_both_languages_have_the_same_parts():
    assert [level for level, _text in headings(ENGLISH)] == [level for level, _text in headings(PORTUGUESE)]
    tables = [re.findall(r"^\| .*$", page.read_text(encoding="utf-8"), re.MULTILINE) for page in READMES]
    assert len(tables[0]) == len(tables[1])


@pytest.mark.parametrize("page", READMES, ids=lambda page: page.name)
def test_every_setting_of_the_table_exists_and_has_the_default_that_the_table_says(page):
    table = settings_table(page)
    assert len(table) > 20
    for key, said in table.items():
        section, _dot, name = key.rpartition(".")
        model = Settings.model_fields[section].annotation if section else Settings
        default = getattr(model(), name)
        assert default == getattr(model(**{name: said}), name) if said else not default, key


def test_the_installing_block_names_a_file_of_pinned_hashes():
    [block] = [b.text for b in blocks(ENGLISH) if b.text.startswith(INSTALL)]
    [path] = re.findall(r"--require-hashes -r (\S+)", block)
    assert "--hash=sha256:" in (PROJECT / path).read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    for link in links(page):
        if link.startswith("https://"):
            continue
        path, _hash, fragment = unquote(link).partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if fragment:
            assert fragment in {anchor(text) for _level, text in headings(target)}, link


def test_every_decision_is_listed_once_in_the_index():
    index = links(PROJECT / "docs" / "README.md")
    decisions = sorted(f"decisions/{path.name}" for path in (PROJECT / "docs/decisions").glob("*.md"))
    assert sorted(link for link in index if link.startswith("decisions/")) == decisions
    assert decisions


def test_the_changelog_begins_with_this_version():
    [first, *_rest] = re.findall(
        r"^## \[(\d+\.\d+\.\d+)\]", (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert first == jobs.version.VERSION
