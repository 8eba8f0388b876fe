"""Somebody leads, whoever is cut off from what: never nobody for long, and never two by Redis."""

import time
from contextlib import ExitStack, contextmanager
from uuid import uuid4

import pytest
from django.db import OperationalError

from jobs import leadership
from tests.kit.processes import database_url, eventually
from tests.kit.proxy import Proxy, through
from tests.transitions import COMMITTED
from tests.transitions.rows import execute

pytestmark = [COMMITTED, pytest.mark.slow]
ENOUGH = 30.0  # seconds
LEASE = 4.0  # (a busy machine must not make a leader lose it by itself)


@pytest.fixture
def stand(candidate):
    """Makes a candidate over these servers."""
    return lambda servers, on_failure="defer": candidate(servers, on_failure, lease=LEASE)


@contextmanager
def cables(servers):
    """A proxy before each server; what they hold is cut at the end."""
    with ExitStack() as stack:
        proxies = [stack.enter_context(Proxy(server.url)) for server in servers]
        yield proxies
        for proxy in proxies:
            proxy.cut()


def alone(leader, *others):
    """All are asked, in turn, as their routines do: only this one leads."""
    led = [one.leads() for one in (*others, leader, *others)]
    return led == [False] * len(others) + [True] + [False] * len(others)


def never_two(*leaders):
    assert [leader.leads() for leader in leaders].count(True) < 2
    return False


def test_who_is_cut_off_from_redis_and_goes_on_asking_leaves_the_lead_to_others(three, stand):
    """It has the lease row at first; without Redis it may not lead (defer), and must not keep the row either."""
    with cables(three) as proxies:
        cut, other = stand([proxy.url for proxy in proxies]), stand(three)
        assert cut.leads()
        for proxy in proxies:
            proxy.blackhole()

        eventually(lambda: alone(other, cut) or never_two(cut, other), "the other leads", ENOUGH)
        for proxy in proxies:
            proxy.open()
        for _ in range(20):
            assert alone(other, cut)
            time.sleep(0.05)


def test_who_loses_the_lock_leaves_the_row_to_whom_redis_elected(three, stand):
    first, second = stand(three, "fence"), stand(three, "fence")
    assert second.leads()
    execute("DELETE FROM turno.leases")
    assert not first.leads()  # it has got the row, and Redis names the second
    assert second.leads()


def test_without_redis_nobody_takes_the_row_where_nobody_may_lead(three, stand):
    leader = stand(three)
    assert leader.leads()
    for server in three:
        server.kill()
    assert not leader.leads()
    assert not leader.leads()
    assert leadership.lead(leadership.HOUSEKEEPING, uuid4(), lease=LEASE)  # nobody has it


def test_where_the_row_elects_a_leader_without_redis_keeps_it_and_stays_the_only_one(three, stand):
    with cables(three) as proxies:
        cut, other = stand([proxy.url for proxy in proxies], "fence"), stand(three, "fence")
        assert cut.leads()
        for proxy in proxies:
            proxy.blackhole()
        until = time.monotonic() + 1.25 * LEASE
        while time.monotonic() < until:
            assert alone(cut, other)


@pytest.mark.parametrize("on_failure", ["defer", "fence"])
def test_who_is_cut_off_from_postgresql_leads_no_more_and_another_does(three, stand, on_failure):
    cut, other = stand(three, on_failure), stand(three, on_failure)
    with Proxy(database_url()) as proxy:
        with through(proxy, "engine"):
            assert cut.leads()
            proxy.cut(refuse=True)
            for _ in range(3):
                with pytest.raises(OperationalError):
                    cut.leads()
        eventually(other.leads, "the other leads", ENOUGH)
        with through(proxy, "engine"), pytest.raises(OperationalError):
            cut.leads()
        proxy.open()
        for _ in range(10):
            assert alone(other, cut)
