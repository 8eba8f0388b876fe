"""A service manager's signals reach every process of the service: handlers are stopped by their worker, in order."""

import os
import signal

import pytest

import tests.isolation.handlers
import tests.isolation.handlers_state  # noqa: F401
from jobs.states import State
from tests.isolation.house import told

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_of_the_service_manager_ends_no_handler(house, tmp_path, number):
    tell = tmp_path / "pid"
    held = house.start("iso.hold", {"how": "busy", "seconds": 1, "tell": str(tell)})
    [pid] = told(tell)
    os.kill(int(pid), number)
    ending = house.end(held)
    assert ending.to == State.SUCCEEDED
    assert house.result("iso.hold", {"seconds": 0}) == {"pid": int(pid)}


def test_what_a_handler_forks_ends_by_sigterm_as_everywhere(house):
    assert house.result("iso.pool") == {"exit": -signal.SIGTERM}
