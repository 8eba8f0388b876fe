"""When the pool's loop sleeps before it waits, and that it misses nothing for that."""

import os

import pytest

from workers.isolation import nap

MANY = 100 * nap.NAP


@pytest.fixture
def slept(monkeypatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(nap.time, "sleep", found.append)
    return found


@pytest.mark.parametrize(
    ("allowed", "timeout", "naps"),
    [(True, MANY, 1), (False, MANY, 0), (True, 0, 0), (True, nap.NAP / 2, 0)],
    ids=["allowed", "not allowed", "something is to be done", "a timer is nearly due"],
)
def test_it_sleeps_where_nobody_minds_and_nothing_is_due(slept, allowed, timeout, naps):
    with nap.Drowsy(lambda: allowed) as selector:
        assert selector.select(timeout) == []
    assert slept == [nap.NAP] * naps


def test_what_comes_meanwhile_is_found_in_one_go(monkeypatch):
    ways = [os.pipe() for _ in range(3)]

    def speak(_: float) -> None:
        for _, entry in ways:
            os.write(entry, b"x")

    monkeypatch.setattr(nap.time, "sleep", speak)
    with nap.Drowsy(lambda: True) as selector:
        for end, _ in ways:
            selector.register(end, nap.selectors.EVENT_READ)
        found = selector.select(None)
    assert {key.fd for key, _ in found} == {end for end, _ in ways}
    for way in ways:
        for descriptor in way:
            os.close(descriptor)
