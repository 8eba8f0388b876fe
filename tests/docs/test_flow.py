"""The chapters on scheduling and flow control: their requests are sent, their tables of times are worked out."""

import importlib
import json
import re
import shlex
import sys
import tomllib
from datetime import datetime
from urllib.parse import urlencode

import pytest
from django.core.cache import cache
from django.utils import translation

from jobs.api.schemas_waiting import OtherJobOut, ReasonOut
from jobs.conf import overridden
from jobs.cron import describe, parse
from jobs.models import RecurringJob
from jobs.policy import limits
from jobs.ratelimit import Limits, RateLimit
from jobs.schedules.declared import synchronise
from jobs.states import Waiting
from tests.api.client import Api
from tests.docs.blocks import PROJECT, blocks, prose
from turno.testing import temporary_types

MANUAL = PROJECT / "docs" / "manual"
SCHEDULING = {"en": MANUAL / "en" / "scheduling.md", "pt-br": MANUAL / "pt-BR" / "agendamento.md"}
FLOW = MANUAL / "en" / "flow-control.md"
PAGES = {"shops": SCHEDULING["en"], "traffic": FLOW}
CALL = re.compile(
    r"(?:(\w+)=\$\()?(curl .+?)"
    r"(?:\s*(?:\\\n)?\s*\| python3 -c '[^']*json\.load\(sys\.stdin\)((?:\[[^]]+\])+)\)'\))?",
    re.S,
)


@pytest.fixture(params=PAGES)
def page(request, db, tmp_path, monkeypatch):
    """A chapter in English, whose types are known."""
    cache.clear()
    [code] = [block.text for block in blocks(PAGES[request.param]) if block.file_name == f"{request.param}.py"]
    (tmp_path / f"{request.param}.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with temporary_types():
        importlib.import_module(request.param)
        yield PAGES[request.param]
    sys.modules.pop(request.param)
    cache.clear()


def test_every_request_of_the_chapter_is_answered_well(page):
    known = {"URL": "", "KEY": "key"}
    calls = [call for block in blocks(page) if block.language == "bash" for call in _calls(block.text)]
    answers = [_send(Api(), call, known) for call in calls]
    [shown] = [json.loads(block.text) for block in blocks(page) if block.language == "json"]
    if page == FLOW:
        assert len(answers) == 8
        assert set(shown) == set(ReasonOut.model_fields)
        assert set(shown["jobs"][0]) == set(OtherJobOut.model_fields)
    else:
        assert len(answers) == 8
        assert shown == answers[1]


def _calls(text):
    return re.split(r"\n(?=curl |\w+=\$\()", text.strip())


def _send(api, call, known):
    """Do what a call of curl does; what it answered. A variable that it sets is known to the calls after it."""
    found = CALL.fullmatch(call)
    assert found is not None, call
    variable, command, path = found.groups()
    command = re.sub(r"\$(\w+)", lambda name: known[name[1]], command.replace("\\\n", " "))
    words = iter(shlex.split(command)[1:])
    method, address, body, query, headers = None, "", b"", [], {}
    for word in words:
        if word == "-X":
            method = next(words)
        elif word == "-d":
            body = next(words).encode()
        elif word == "-H":
            name, value = next(words).split(": ", 1)
            headers[name] = value
        elif word == "--data-urlencode":
            query.append(tuple(next(words).split("=", 1)))
        elif not word.startswith("-"):
            address = word
    assert headers.pop("X-Turno-Key") == "key"
    kind = headers.pop("Content-Type", "")
    assert kind == ("application/json" if body else "")
    address += f"?{urlencode(query)}" if query else ""
    answer = api.ask(method or ("POST" if body else "GET"), address, body, kind, Accept_Language="en", **headers)
    assert answer.status < 300, (call, answer.json)
    if variable:
        told = answer.json
        for key, number in re.findall(r'\[(?:"(\w+)"|(\d+))\]', path):
            told = told[key or int(number)]
        known[variable] = told
    return answer.json


@pytest.mark.parametrize("language", SCHEDULING)
def test_the_words_of_the_expressions_are_those_of_the_code(language):
    rows = re.findall(r"^\| `([^`]+)` \| ([A-ZÀ][^|]+) \|$", prose(SCHEDULING[language]), re.MULTILINE)
    assert len(rows) == 13
    with translation.override(language):
        for expression, words in rows:
            assert describe(parse(expression, "UTC")) == words


@pytest.mark.parametrize("language", SCHEDULING)
def test_the_instants_around_a_change_of_the_clock_are_those_of_the_code(language):
    row = r"^\| `([^`]+)` \| (\d\S+Z) \| (\d[^|]+Z) \|$"
    rows = re.findall(row, prose(SCHEDULING[language]), re.MULTILINE)
    assert len(rows) == 4
    for expression, after, runs in rows:
        told = [datetime.fromisoformat(text) for text in runs.split(", ")]
        assert parse(expression, "America/New_York").upcoming(datetime.fromisoformat(after), len(told)) == told


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["shops"], indirect=True)
def test_what_the_chapter_declares_can_be_declared(page):
    [text] = [block.text for block in blocks(page) if block.language == "toml"]
    with overridden(**tomllib.loads(text)):
        assert synchronise() == []
    assert RecurringJob.objects.get(name="south-daily").overlap == "queue"


def test_the_limits_of_the_chapter_can_be_configured():
    [text] = [block.text for block in blocks(FLOW) if block.language == "toml"]
    with overridden(**tomllib.loads(text)):
        assert limits("traffic.sync") == Limits(5, RateLimit(200, 60.0))


def test_every_reason_to_wait_is_in_the_table():
    rows = re.findall(r"^\| ([a-z_, ]+) \| .+ \| .+ \|$", prose(FLOW), re.MULTILINE)
    told = {kind for row in rows for kind in row.split(", ")}
    assert {*Waiting, "queue_unserved", "type_unserved", "gives_up", "message", "place"} <= told
