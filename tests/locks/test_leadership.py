"""Who leads: Redis first, the lease row without a quorum, or nobody; and what a leader does that lost it.

BR-091, BR-093, BR-094, BR-097 of the faults met in the field.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from uuid import uuid4

import pytest

from jobs import leadership
from tests.kit.processes import PROJECT, database_url, eventually
from tests.kit.proxy import Proxy
from tests.locks.house import LEASE as TTL
from tests.locks.house import PREFIX
from tests.transitions import COMMITTED
from workers.clock import boottime
from workers.leadership import Leadership
from workers.locks.made import leader_key
from workers.locks.redlock import Standing

pytestmark = [COMMITTED]
KEY = leader_key(PREFIX)


def holders(servers):
    return {value for server in servers if (value := server.ask("GET", KEY)) is not None}


def comes_to_lead(leader):
    eventually(leader.leads, "it leads")


def test_one_leads_by_redis_and_when_it_resigns_another_need_not_wait(three, candidate):
    first, second = candidate(three), candidate(three)
    assert first.leads()
    assert not second.leads()
    assert first.leads()
    assert all(0 < server.ttls()[KEY] <= TTL * 1000 for server in three)
    second.resign()
    assert not second.leads()
    first.resign()
    assert second.leads()
    assert not first.leads()


def test_where_no_locks_are_taken_in_redis_the_lease_row_elects(transactional_db):
    first, second = Leadership(uuid4(), lease=TTL), Leadership(uuid4(), lease=TTL)
    assert first.leads()
    assert not second.leads()
    first.resign()
    assert second.leads()
    second.resign()


@pytest.mark.parametrize("on_failure", ["defer", "fence"])
def test_a_leader_cut_off_from_redis_steps_down_and_its_successor_keeps_the_key(three, candidate, on_failure):  # BR-091
    with ExitStack() as stack:
        proxies = [stack.enter_context(Proxy(server.url)) for server in three]
        cut, other = candidate([proxy.url for proxy in proxies], on_failure), candidate(three, on_failure)
        assert cut.leads()
        for proxy in proxies:
            proxy.blackhole()
        # By Redis it leads no more from this moment; the row, where it counts, may elect it beside the other.
        assert cut.leads() is (on_failure == "fence")
        comes_to_lead(other)
        assert holders(three) == {str(other._worker_id)}
        time.sleep(0.5)
        for proxy in proxies:
            proxy.open()
        until = time.monotonic() + TTL + 1
        while time.monotonic() < until:
            assert other.leads()
            if cut.leads():  # before it reaches Redis again it may be the row's
                assert on_failure == "fence"
            assert holders(three) == {str(other._worker_id)}
            time.sleep(0.1)
        assert not cut.leads()
        for proxy in proxies:
            proxy.cut()


def test_an_answer_that_is_too_old_when_it_is_read_elects_nobody(loop, monkeypatch):
    class Late:
        away = False
        until = boottime() - 0.001

        async def take(self, value):
            return Standing.MINE

    leader = Leadership(uuid4(), Late(), lease=TTL, on_failure="fence")
    loop.call_soon_threadsafe(lambda: None)
    monkeypatch.setattr(leader, "_loop", loop)
    assert not leader.leads()


def test_with_one_of_three_gone_the_leader_stays(three, candidate):  # BR-094
    first, second = candidate(three), candidate(three)
    assert first.leads()
    three[0].kill()
    until = time.monotonic() + TTL + 0.5
    while time.monotonic() < until:
        assert first.leads()
        assert not second.leads()
        time.sleep(0.1)
    first.resign()
    comes_to_lead(second)


def test_with_two_of_three_gone_nobody_leads_until_one_is_back(three, candidate):  # BR-094
    first, second = candidate(three), candidate(three)
    assert first.leads()
    three[1].kill()
    three[2].kill()
    began = time.monotonic()
    for _ in range(20):
        assert not first.leads()
        assert not second.leads()
    assert time.monotonic() - began < 20  # nothing hangs
    three[1].start()
    eventually(lambda: first.leads() or second.leads(), "somebody leads")
    time.sleep(0.1)
    assert [first.leads(), second.leads()].count(True) == 1


def test_with_two_of_three_gone_the_lease_row_elects_one_and_redis_again_when_it_is_back(three, candidate):
    first, second = candidate(three, "fence"), candidate(three, "fence")
    assert first.leads()
    three[1].kill()
    three[2].kill()
    assert [first.leads(), second.leads()] == [True, False]
    assert [second.leads(), first.leads()] == [False, True]
    assert not leadership.lead(leadership.HOUSEKEEPING, uuid4(), lease=TTL)
    three[1].start()
    three[2].start()
    eventually(lambda: [first.leads(), second.leads()].count(True) == 1 and holders(three), "Redis elects")


def test_a_loop_that_does_not_answer_is_not_waited_for(three, candidate, loop):
    leader = candidate(three, "defer")
    assert leader.leads()
    loop.call_soon_threadsafe(time.sleep, 5)
    began = time.monotonic()
    assert not leader.leads()
    assert time.monotonic() - began < 4.5
    comes_to_lead(leader)


class Candidates:
    """Processes that would lead, and the instants at which each found that it does."""

    ttl = 3.0  # (a busy machine must not make one lose it by itself)

    def __init__(self, folder, servers):
        self.log = folder / "leads.log"
        self.log.touch()
        self._urls = [server.url for server in servers]
        self._processes = {}

    def start(self, name):
        command = [sys.executable, "-m", "tests.locks.candidate", name, str(self.log), str(self.ttl), *self._urls]
        env = os.environ | {"TURNO_DATABASE__URL": database_url()}
        self._processes[name] = subprocess.Popen(command, cwd=PROJECT, env=env)

    def led(self, name, since=0.0):
        lines = [line.split() for line in self.log.read_text().splitlines()]
        return [float(at) for who, at in lines if who == name and float(at) > since]

    def leader(self):
        """Who leads now, and the other one."""
        last, first = sorted("ab", key=lambda name: max(self.led(name), default=0.0))
        return first, last

    def signal(self, name, number):
        at = boottime()
        self._processes[name].send_signal(number)
        return at

    def close(self):
        for process in self._processes.values():
            process.kill()
            process.wait(60)


@pytest.fixture
def candidates(tmp_path, three, clean_tables):
    made = Candidates(tmp_path, three)
    for name in "ab":
        made.start(name)
    try:
        eventually(lambda: made.led("ready-a") and made.led("ready-b"), "both stand")
        eventually(lambda: made.led("a") or made.led("b"), "one leads")
        yield made
    finally:
        made.close()


@pytest.mark.slow
def test_a_frozen_leader_does_nothing_when_it_wakes_before_it_is_elected_again(candidates):  # BR-093
    time.sleep(1)
    first, second = candidates.leader()
    frozen = candidates.signal(first, signal.SIGSTOP)
    eventually(lambda: candidates.led(second, frozen), "the other leads")
    time.sleep(0.5)
    awake = candidates.signal(first, signal.SIGCONT)
    time.sleep(1.5)
    assert candidates.led(first, awake) == []
    assert candidates.led(second, awake)
    candidates.signal(second, signal.SIGKILL)
    eventually(lambda: candidates.led(first, awake), "it leads again")
    assert candidates.led(second)[-1] < candidates.led(first, awake)[0]


@pytest.mark.slow
def test_after_a_kill_another_leads_within_the_ttl_and_an_election_and_no_key_stays_for_ever(candidates, three):
    # BR-097
    def sampled():
        assert [name for server in three for name, left in server.ttls().items() if left < 0] == []

    for _ in range(20):
        sampled()
        time.sleep(0.05)
    first, second = candidates.leader()
    killed = candidates.signal(first, signal.SIGKILL)
    eventually(lambda: sampled() or candidates.led(second, killed), "the other leads")
    assert candidates.led(second, killed)[0] - killed < candidates.ttl + 10  # (an election every 50 ms)
