"""A worker that waits for its database."""

import threading

from workers import startup


def test_a_request_to_stop_ends_the_wait_for_the_database_however_long_its_pause_is(monkeypatch):
    asked, pausing, answers = threading.Event(), threading.Event(), []
    monkeypatch.setattr(startup, "_problem", lambda: "it is away")
    monkeypatch.setattr(startup.Backoff, "delay", lambda backoff: pausing.set() or 600.0)
    waiting = threading.Thread(
        target=lambda: answers.append(startup.wait_for_database(600.0, stop=asked.is_set)), daemon=True
    )
    waiting.start()
    assert pausing.wait(60)
    asked.set()
    waiting.join(60)
    assert answers == [False]
