"""Both languages are complete: every message is translated, with its placeholders, and compiled as it stands."""

import gettext
import re
from pathlib import Path

import pytest
from django.test import Client
from django.utils import translation

from tests.api.client import Api
from tests.architecture.messages import asked_for, entries
from tests.architecture.tree import PROJECT
from turno.samples import DEMO_TYPES

LANGUAGES = ("pt_BR", "en")
# %(name)s and %d; {name}, {name:.1f} and {{ name }}; tags.
PLACEHOLDER = re.compile(r"%(?:\([a-z_]+\))?[a-z]|\{\{.*?\}\}|\{[a-z_]+(?::[^}]*)?\}|</?[a-z]+>")
SAME_IN_BOTH = {
    "Cron",
    "API", "Id", "Logs", "Online", "Total", "Worker", "Workers",
    "%(n)s worker online", "%(n)s workers online", "Page %(number)d: %(error)s",
    "%(n)s worker", "%(n)s workers", "%(online)s online", "Auto", "Bytes", "Host", "Log", "Login", "Payload",
    "debug", "info", "lease", "leases", "worker", "workers",
}  # fmt: skip


def _po(language: str) -> Path:
    return PROJECT / "locale" / language / "LC_MESSAGES" / "django.po"


def _told(value: object, where: str = "") -> dict[str, str]:
    """The descriptions and summaries in an OpenAPI document, by their place; HTTP's own phrases are left out."""
    found: dict[str, str] = {}
    if isinstance(value, dict):
        for key, item in value.items():
            if key in ("description", "summary") and isinstance(item, str):
                found[f"{where}/{key}"] = item
            elif key != "responses":
                found |= _told(item, f"{where}/{key}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            found |= _told(item, f"{where}/{number}")
    return found


def _document(language: str) -> dict[str, str]:
    """What the API's document tells, without the payloads of types that other tests have loaded."""
    document = Api().get("/openapi/v1.json", Accept_Language=language).json
    schemas = document["components"]["schemas"]
    for name in [name for name in schemas if "." in name and not name.startswith(DEMO_TYPES)]:
        del schemas[name]
    return _told(document)


def _placeholders(text: str) -> list[str]:
    return sorted({"{{}}" if found.startswith("{{") else found for found in PLACEHOLDER.findall(text)})


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_catalogue_has_every_message_of_code_and_templates_and_no_other(language):
    _header, *messages = entries(_po(language))
    has = {entry.key for entry in messages}
    asked = asked_for()

    assert len(asked) > 400
    assert asked - has == set()
    assert has - asked == set()
    assert len(has) == len(messages)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_message_is_translated_and_none_is_fuzzy_or_obsolete(language):
    _header, *messages = entries(_po(language))

    assert [entry.key for entry in messages if not all(entry.translations)] == []
    assert [entry.key for entry in messages if "fuzzy" in entry.flags or entry.obsolete] == []
    assert [entry.key for entry in messages if "msgid_plural" in entry.parts and len(entry.translations) != 2] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_translation_keeps_the_placeholders_of_its_message(language):
    wrong = {
        said: _placeholders(entry.key[1])
        for entry in entries(_po(language))[1:]
        for said in entry.translations
        # A sentence for one may leave the number out.
        if _placeholders(said)
        not in (_placeholders(entry.key[1]), _placeholders(entry.parts.get("msgid_plural", entry.key[1])))
    }

    assert wrong == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_compiled_catalogue_is_what_its_source_gives(language):
    with _po(language).with_suffix(".mo").open("rb") as stream:
        compiled = dict(gettext.GNUTranslations(stream)._catalog)
    expected = {}
    for entry in entries(_po(language)):
        context, message = entry.key
        key = f"{context}\x04{message}" if context else message
        if "msgid_plural" in entry.parts:
            expected |= {(key, number): said for number, said in enumerate(entry.translations)}
        else:
            expected[key] = entry.translations[0]

    assert compiled == expected


def test_an_english_message_is_its_own_text():
    for entry in entries(_po("en"))[1:]:
        one, many = entry.key[1], entry.parts.get("msgid_plural")
        assert entry.translations == ([one, many] if many else [one])


def test_no_english_is_left_in_portuguese():
    same = {
        said
        for entry in entries(_po("pt_BR"))[1:]
        for said in entry.translations
        if said in (entry.key[1], entry.parts.get("msgid_plural"))
    }

    assert same - SAME_IN_BOTH == set()


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 tarefa"), (1, "1 tarefa"), (2, "2 tarefas"), (1000, "1000 tarefas")]
)
def test_portuguese_counts_from_two_on_in_the_plural(count, said):
    with translation.override("pt-br"):
        told = translation.ngettext("%(count)d job returned.", "%(count)d jobs returned.", count) % {"count": count}

    assert told.startswith(f"{said} ")


@pytest.mark.parametrize(
    ("asked", "language", "title"),
    [
        (None, "pt-br", "Não encontrado"),
        ("pt-BR,pt;q=0.9", "pt-br", "Não encontrado"),
        ("fr", "pt-br", "Não encontrado"),
        ("en-GB,en;q=0.8,pt;q=0.5", "en", "Not found"),
    ],
)
def test_portuguese_is_spoken_unless_english_is_asked_for(asked, language, title):
    headers = {} if asked is None else {"Accept-Language": asked}
    for accept in ("application/json", "text/html"):
        answer = Client().get("/nothing-is-here", headers={"Accept": accept, **headers})

        assert answer.status_code == 404
        assert title in answer.content.decode()
        if accept == "text/html":
            assert f'<html lang="{language}"' in answer.content.decode()
        else:
            assert answer.headers["Content-Language"] == language


def test_the_document_of_the_api_is_told_in_both_languages():
    portuguese, english = (_document(language) for language in ("pt-BR", "en"))

    assert len(portuguese) > 100
    assert portuguese.keys() == english.keys()
    assert {place: said for place, said in portuguese.items() if said == english[place]} == {}
