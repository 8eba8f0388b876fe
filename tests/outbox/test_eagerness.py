"""Of many relays that a notification wakes, those that find nothing come later next time, and never too late."""

import pytest

from jobs.conf import conf
from tests.kit.clocks import Clock
from tests.outbox.rows import waiting, with_broker
from tests.transitions import COMMITTED
from workers.relay import Relay

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]
INTERVAL = 0.4


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def relay(broker, loop, clock):
    with with_broker(outbox_interval=INTERVAL):
        yield Relay(broker, loop, conf().messaging, clock=clock)


def woken_in_vain(relay, clock, times):
    """Another relay was faster, so many times in a row."""
    relay.run_once()
    for _ in range(times):
        clock.now += INTERVAL * 0.7
        assert relay.run_once() == 0


def test_a_relay_that_is_polled_and_finds_nothing_stays_ready(relay, clock):
    for _ in range(20):
        clock.now += INTERVAL
        relay.run_once()
    waiting(1)
    assert relay.run_once() == 1


def test_one_that_is_woken_in_vain_again_and_again_rests_and_then_comes(relay, clock):
    woken_in_vain(relay, clock, 20)
    waiting(1)
    assert relay.run_once() == 0
    pause = relay.pause()
    assert 0 < pause < INTERVAL * 0.51
    clock.now += pause
    assert relay.run_once() == 1
    waiting(1)
    assert relay.run_once() == 1  # it found something: ready at once


def test_woken_in_vain_once_it_is_ready(relay, clock):
    woken_in_vain(relay, clock, 1)
    waiting(1)
    assert relay.run_once() == 1


def test_a_quiet_time_ends_it(relay, clock):
    woken_in_vain(relay, clock, 20)
    clock.now += INTERVAL * 2
    assert relay.run_once() == 0
    waiting(1)
    assert relay.run_once() == 1


def test_the_pause_is_the_interval_otherwise(relay):
    assert INTERVAL * 0.9 <= relay.pause() <= INTERVAL * 1.1
