"""Busy loops far longer than the lease: it is kept all the while, and the job starts once."""

import pytest

import tests.kit.handlers  # noqa: F401
from jobs.enqueue import enqueue
from tests.kit.look import attempts, wait_state

pytestmark = pytest.mark.crash
TYPES = ["probe.async", "probe.thread", "probe.process"]


def keeps_its_lease(fleet, seconds):
    """Each kind of handler spins for so many seconds, all at once, with an idle rival beside."""
    for name in ("a", "b"):
        fleet.start(name).wait_ready()
    ids = [enqueue(type_, {"key": type_, "spin": seconds}).id for type_ in TYPES]
    for id_ in ids:
        wait_state(id_, "Succeeded", 30 + 3 * seconds)
        assert attempts(id_) == [(1, "Succeeded", True)]
    assert sorted(start[1] for start in fleet.starts()) == sorted(TYPES)


def test_a_busy_loop_longer_than_the_lease_keeps_its_lease_and_starts_once(fleet):
    keeps_its_lease(fleet, 6)  # the lease is 3 s, the grace 1 s


@pytest.mark.longo
def test_a_busy_loop_of_40_s_keeps_a_lease_of_10_s_and_starts_once(fleet):
    fleet.env |= {"TURNO_WORKER__LEASE_DURATION": "10s", "TURNO_WORKER__LEASE_RENEWAL_INTERVAL": "3s"}
    keeps_its_lease(fleet, 40)
