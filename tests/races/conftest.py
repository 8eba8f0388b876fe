"""Committed rows, emptied after each test."""

import pytest

from tests.kit.gatecheck import wrong_slots
from tests.transitions.ear import Ear
from tests.transitions.flow import room_and_waiting
from tests.transitions.rows import empty_tables


@pytest.fixture
def committed(transactional_db):
    """Rows are committed and visible to every connection; deleted afterwards."""
    yield
    empty_tables()


@pytest.fixture
def ear(committed):
    """What is announced from here on."""
    with Ear() as ear:
        yield ear


@pytest.fixture
def gates_agree(committed):
    """After the test all slots belong to somebody, and nobody waits at a key where there is room."""
    yield
    assert wrong_slots() == []
    assert room_and_waiting() == []
