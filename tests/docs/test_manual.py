"""The manual: both languages say the same, and its settings are those of the code."""

import ast
import re

import pytest

from jobs.conf import Settings
from tests.docs.blocks import PROJECT, blocks, headings, links, prose, settings_table

MANUAL = PROJECT / "docs" / "manual"
CHAPTERS = [
    (MANUAL / "en" / "promises.md", MANUAL / "pt-BR" / "promessas.md"),
    (MANUAL / "en" / "transports.md", MANUAL / "pt-BR" / "transportes.md"),
    (MANUAL / "en" / "handlers.md", MANUAL / "pt-BR" / "handlers.md"),
    (MANUAL / "en" / "resilience.md", MANUAL / "pt-BR" / "resiliencia.md"),
    (MANUAL / "en" / "scheduling.md", MANUAL / "pt-BR" / "agendamento.md"),
    (MANUAL / "en" / "flow-control.md", MANUAL / "pt-BR" / "controle-de-fluxo.md"),
    (MANUAL / "en" / "installation.md", MANUAL / "pt-BR" / "instalacao.md"),
    (MANUAL / "en" / "dashboard.md", MANUAL / "pt-BR" / "painel.md"),
    (MANUAL / "en" / "scaling.md", MANUAL / "pt-BR" / "escalar.md"),
    (MANUAL / "en" / "performance.md", MANUAL / "pt-BR" / "desempenho.md"),
    (MANUAL / "en" / "troubleshooting.md", MANUAL / "pt-BR" / "solucao-de-problemas.md"),
]
both = pytest.mark.parametrize("pages", CHAPTERS, ids=lambda pages: pages[0].stem)


def test_every_chapter_is_in_the_index_and_has_both_languages():
    there = {path.relative_to(MANUAL).as_posix() for path in MANUAL.glob("*/*.md")}
    assert there == {link for link in links(MANUAL / "README.md") if not link.startswith("../")}
    assert there == {page.relative_to(MANUAL).as_posix() for pages in CHAPTERS for page in pages}


@both
def test_both_languages_have_the_same_parts_tables_and_blocks(pages):
    first, second = pages
    assert [level for level, _text in headings(first)] == [level for level, _text in headings(second)]
    rows = [re.findall(r"^\|", prose(page), re.MULTILINE) for page in pages]
    assert len(rows[0]) == len(rows[1])
    shown = [[(block.language, block.text) for block in blocks(page)] for page in pages]
    assert [language for language, _text in shown[0]] == [language for language, _text in shown[1]]
    for (language, text), (_language, other) in zip(*shown, strict=True):
        if language == "python":
            assert ast.dump(_undocumented(text)) == ast.dump(_undocumented(other))
        elif language != "text":  # drawings have words
            assert text == other


def _undocumented(code):
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node):
            node.body = node.body[1:]
    return tree


@pytest.mark.parametrize("pages", CHAPTERS[:5], ids=lambda pages: pages[0].stem)  # the others have no table of settings
def test_every_setting_exists_and_has_the_default_that_is_said(pages):
    said = [settings_table(page) for page in pages]
    assert said[0] == said[1]
    assert said[0]
    for key, default in said[0].items():
        section, _dot, name = key.rpartition(".")
        model = Settings.model_fields[section].annotation
        value = getattr(model(), name)
        assert value == getattr(model(**{name: default}), name) if default else not value, key


@pytest.mark.parametrize(
    ("chapter", "sections"),
    [
        ("transports.md", ("messaging", "redis")),
        ("resilience.md", ("resilience",)),
        ("scheduling.md", ("scheduler",)),
    ],
)
def test_every_setting_of_these_sections_is_explained(chapter, sections):
    said = settings_table(MANUAL / "en" / chapter)
    known = {f"{section}.{key}" for section in sections for key in _keys(section)}
    assert known - set(said) == set()


def _keys(section):
    return Settings.model_fields[section].annotation.model_fields
