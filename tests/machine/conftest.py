"""The sessions of the machines, and what they have committed is deleted."""

import sys

import pytest

from tests.machine.machine import ALIASES, Machine, clean
from tests.machine.sessions import Crew
from tests.transitions.ear import Ear


@pytest.fixture
def machine(transactional_db, monkeypatch):
    """The class of machines, each with the same three sessions, used one after the other."""
    # Who waits for a rival of its unique key waits for as long as that is not stepped.
    monkeypatch.setattr(sys.modules["jobs.transitions.insert"], "LOCK_TIMEOUT", 600.0)
    with Ear() as ear:
        Machine.crew, Machine.ear = Crew(ALIASES), ear
        yield Machine
        Machine.crew.close()
    clean()
