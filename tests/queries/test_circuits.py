"""Breakers among what needs a person: why each opened, who waits, and what comes next."""

import pytest

from jobs.queries import Kind, attention, board, depths
from tests.queries.house import worker
from tests.transitions import rows

pytestmark = pytest.mark.django_db


def look():
    """The breakers that need a person, while nothing else does."""
    seen = board({})
    found = attention(seen, depths(seen))
    assert {concern.kind for concern in found} <= {Kind.CIRCUIT_OPEN}
    return found


def test_a_breaker_that_is_open_for_want_of_a_job_needs_nobody():
    rows.execute(
        "INSERT INTO turno.circuits (type, state, opened_at, retry_at) VALUES"
        " ('old.one', 'open', now() - interval '9 days', now() - interval '9 days')"
    )
    worker("a", {"default": 2})
    assert look() == []
    rows.make_jobs(1, "Scheduled", waiting_for="circuit", gate="old.one")
    [found] = look()
    assert found.facts["waiting"] == 1


def test_an_open_circuit_says_when_it_tries_again():
    rows.execute(
        "INSERT INTO turno.circuits (type, state, opened_at, retry_at, executions, failures) VALUES"
        " ('integration.sync', 'open', now() - interval '12 s', now() + interval '18 s', 20, 12)"
    )
    probe = rows.make_job("Processing", type="other")
    rows.execute(
        "INSERT INTO turno.circuits (type, state, opened_at, probe_job_id, probe_deadline) VALUES"
        f" ('other', 'half_open', now(), '{probe.id}', now())"
    )
    rows.make_jobs(3, "Scheduled", waiting_for="circuit", gate="integration.sync")
    worker("a", {"default": 2}, id=probe.worker)
    first, second = look()
    assert first.facts["type"] == "integration.sync"
    assert first.facts["open_for"] >= 12
    assert 0 < first.facts["retry_in"] <= 18
    assert (first.facts["failures"], first.facts["executions"], first.facts["span"]) == (12, 20, 30)
    assert (first.facts["waiting"], first.facts["at_least"]) == (3, False)
    assert (second.facts["state"], second.facts["retry_in"]) == ("half_open", None)
    assert second.facts["probe"] == str(probe.id)
