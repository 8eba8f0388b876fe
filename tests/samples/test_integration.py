"""integration.sync walks the pages of a source and brings its copy up to date."""

import json

import pytest

from jobs.errors import Invalid
from turno.handlers import TransientJobError
from turno.samples.integration_sync import synchronize
from turno.samples.reserved import is_reserved
from turno.samples.source import SimulatedSource, known_copy
from turno.testing import FakeContext, run_job


def test_every_record_is_seen_once_whatever_the_size_of_a_page():
    runs = [
        run_job(synchronize, {"records": 95, "page_size": size, "known": 0.7, "seed": 5}).result
        for size in (1, 10, 95, 500)
    ]
    assert [run["pages"] for run in runs] == [95, 10, 1, 1]
    assert all(run["created"] + run["updated"] + run["unchanged"] == 95 for run in runs)
    assert len({run["sha256"] for run in runs}) == 1
    assert {run["copy"] for run in runs} == {95}


def test_the_changes_are_those_between_the_copy_and_the_source():
    run = run_job(synchronize, {"records": 200, "known": 0.8, "seed": 2})
    before = known_copy(200, 2, 0.8)
    lines = [json.loads(line) for line in run.files["changes.jsonl"].decode().splitlines()]
    kinds = [line["change"] for line in lines]
    assert kinds.count("created") == run.result["created"] == len(set(range(1, 201)) - set(before))
    assert kinds.count("updated") == run.result["updated"] == list(before.values()).count("changed")
    assert kinds.count("removed") == run.result["removed"] == list(before.values()).count("gone") == 8
    assert all(kind > 0 for kind in (run.result["created"], run.result["updated"]))


def test_a_first_run_creates_everything():
    result = run_job(synchronize, {"records": 30, "known": 0}).result
    assert (result["created"], result["updated"], result["unchanged"], result["removed"]) == (30, 0, 0, 0)


def test_a_page_that_does_not_answer_is_asked_for_again(monkeypatch):
    monkeypatch.setattr("turno.samples.integration_sync.WAIT", 0)
    run = run_job(synchronize, {"records": 100, "page_size": 5, "transient_rate": 0.2, "seed": 1})
    assert any(level == "warning" for level, _ in run.logs)
    assert run.result["sha256"] == run_job(synchronize, {"records": 100, "seed": 1}).result["sha256"]


def test_a_source_that_never_answers_is_a_transient_failure_after_three_tries(monkeypatch):
    monkeypatch.setattr("turno.samples.integration_sync.WAIT", 0)
    ctx = FakeContext()
    with pytest.raises(TransientJobError):
        run_job(synchronize, {"records": 10, "transient_rate": 1}, ctx=ctx)
    assert [level for level, _ in ctx.logs] == ["warning", "warning"]


def test_a_cursor_of_no_page_is_refused():
    source = SimulatedSource(10, 5, seed=1)
    assert source.page(None).cursor == "after-5"
    assert source.page("after-5").cursor is None
    for cursor in ("after-10", "after-x", "before-5", ""):
        with pytest.raises(ValueError, match="there is no page at"):
            source.page(cursor)


@pytest.mark.parametrize(
    "source",
    ["https://api.real-company.com/x", "ftp://example.com", "example.com", "https://example.com.evil.io", "https://["],
)
def test_an_address_that_could_be_somebodys_is_refused(source):
    with pytest.raises(Invalid) as refusal:
        run_job(synchronize, {"source": source})
    assert list(refusal.value.errors) == ["payload.source"]


def test_reserved_names_are_those_of_the_rfcs():
    assert all(is_reserved(host) for host in ("example.com", "API.Example.ORG.", "a.b.test", "x.invalid"))
    assert not any(is_reserved(host) for host in ("example.com.br", "notexample.com", "test", ""))
