"""A worker whose engine turns no more ends, instead of renewing leases that nobody guards."""

import threading

from jobs.sections import Worker as Settings
from tests.workers.test_service import who
from workers import heartbeat, protocol
from workers.heartbeat import Heartbeat
from workers.leases import LeaseBook
from workers.pulse import Pulse


def test_silence_is_counted_in_what_was_waited_since_the_last_beat_and_not_before_the_first():
    pulse = Pulse()
    assert pulse.silent(100.0) == 0.0
    pulse.beat()
    assert [pulse.silent(1.0), pulse.silent(1.0), pulse.silent(1.5)] == [0.0, 1.0, 2.5]
    pulse.beat()
    assert pulse.silent(1.0) == 0.0


def test_a_silent_engine_ends_the_process_so_that_its_supervisor_starts_another(monkeypatch):
    pulse, ended = Pulse(), threading.Event()
    beating = Heartbeat(who(), LeaseBook(), Settings(lease_duration=1, lease_renewal_interval=0.2), list, pulse=pulse)
    monkeypatch.setattr(beating, "_turn", lambda: None)
    monkeypatch.setattr(beating, "_pause", lambda: 0.01)

    def over(code):
        assert code == protocol.EXIT_FAILED
        ended.set()
        beating._closing = True

    monkeypatch.setattr(heartbeat.os, "_exit", over)
    pulse.beat()
    beating.start()
    assert ended.wait(60)
    beating.close(5.0)
