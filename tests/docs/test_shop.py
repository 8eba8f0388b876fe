"""The manual's chapters with code: it runs as it stands, and their figures are the engine's."""

import importlib
import re
import sys
from random import Random

import pytest
from django.db import transaction

from jobs import results
from jobs.durations import parse_duration
from jobs.retry import RetryPolicy, backoff
from tests.docs.blocks import PROJECT, blocks, prose
from turno.testing import temporary_types

MANUAL = PROJECT / "docs" / "manual"
CHAPTERS = [MANUAL / folder / "handlers.md" for folder in ("en", "pt-BR")]
# Pages with modules of code, and how many tests of their own each has.
MODULES = {
    "en/handlers.md": 5,
    "pt-BR/handlers.md": 5,
    "en/scheduling.md": 1,
    "pt-BR/agendamento.md": 1,
    "en/flow-control.md": 5,
    "pt-BR/controle-de-fluxo.md": 5,
}


@pytest.fixture(params=MODULES)
def shop(request, tmp_path, monkeypatch):
    """The modules of the page, importable; answers those of tests, and how many tests there should be."""
    named = {block.file_name: block.text for block in blocks(MANUAL / request.param) if block.file_name}
    for name, text in named.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    modules = [name.removesuffix(".py") for name in named]
    with temporary_types():
        yield [importlib.import_module(name) for name in modules if name.startswith("test_")], MODULES[request.param]
    for module in modules:
        sys.modules.pop(module, None)


@pytest.mark.django_db
def test_the_code_of_the_chapter_passes_its_own_tests(shop):
    (modules, expected), ran = shop, 0
    for module in modules:
        for name, function in vars(module).items():
            if name.startswith("test_"):
                with transaction.atomic():
                    function(*[None] * function.__code__.co_argcount)  # (the fixture db)
                    transaction.set_rollback(True)
                ran += 1
    assert ran == expected


def test_the_table_of_results_is_that_of_the_code():
    rows = re.findall(r"^\| .+ \|$", results.__doc__, re.MULTILINE)
    assert len(rows) > 8
    assert set(rows) <= set(prose(CHAPTERS[0]).splitlines())


def test_the_waits_of_the_table_are_those_of_the_default_policy():
    rows = re.findall(r"^\| (\d+)[^|]* \| (\d+ \w+) \| (\d+ \w+) to (\d+ \w+) \|$", _resilience(), re.MULTILINE)
    assert [int(row[0]) for row in rows] == list(range(1, 8))
    plain = RetryPolicy(jitter=0)
    for failures, wait, least, most in rows:
        seconds = backoff(plain, int(failures), Random())
        assert (parse_duration(wait), parse_duration(least), parse_duration(most)) == pytest.approx(
            (seconds, seconds * (1 - RetryPolicy().jitter), seconds * (1 + RetryPolicy().jitter))
        )
    assert backoff(plain, 10_000, Random()) == parse_duration(rows[-1][1])


def _resilience():
    return prose(PROJECT / "docs" / "manual" / "en" / "resilience.md")
