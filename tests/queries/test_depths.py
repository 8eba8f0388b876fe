"""The queues: what waits, how old it is, where there is room, who serves, what is paused."""

import sys
from uuid import uuid4

import pytest

from jobs.queries import Depth, depths
from tests.queries.house import pause, running, worker
from tests.transitions import rows

pytestmark = pytest.mark.django_db


def by_name() -> dict[str, Depth]:
    return {depth.queue: depth for depth in depths()}


def test_a_house_without_anything_has_no_queues():
    assert depths() == []


def test_queues_come_from_jobs_workers_pauses_and_settings_by_name():
    rows.make_job(queue="waits")
    rows.make_job("Scheduled", waiting_for="pause", gate="x", queue="parked")
    rows.make_job("Scheduled", queue="timed")
    rows.make_job("Succeeded", queue="over")
    worker("a", {"served": 2})
    running(uuid4(), queue="orphans")
    pause("queue", "paused")
    pause("type", "no-queue")
    rows.execute("INSERT INTO turno.queues (name) VALUES ('named')")
    found = depths()
    assert [depth.queue for depth in found] == ["named", "orphans", "parked", "paused", "served", "waits"]


def test_a_queue_says_how_many_wait_and_since_when():
    rows.make_jobs(3, queue="x", enqueued_at=rows.ago(50))
    rows.make_job(queue="x", priority=-10, enqueued_at=rows.ago(700))
    rows.make_job(queue="x", priority=10, enqueued_at=rows.ago(5))
    rows.make_job("Scheduled", queue="x", waiting_for="concurrency_key", gate="k")
    rows.make_job("Succeeded", queue="x", enqueued_at=rows.ago(9999))
    found = by_name()["x"]
    assert (found.waiting, found.estimated, found.parked, found.parked_at_least) == (5, False, 1, False)
    assert 700 <= found.oldest_for < 720


def test_a_queue_without_waiting_jobs_has_no_oldest_one():
    worker("a", {"x": 2})
    found = by_name()["x"]
    assert (found.waiting, found.oldest_for, found.unserved) == (0, None, False)


def test_room_and_workers_are_those_of_the_board():
    running(worker("a", {"x": 4}), queue="x")
    worker("b", {"x": 4}, state="Draining")
    worker("c", {"x": 4}, seen=20)
    worker("d", {"y": 1})
    found = by_name()["x"]
    assert (found.busy, found.capacity, found.free, found.workers) == (1, 4, 3, 2)


def test_a_queue_whose_workers_are_all_lost_is_not_served():
    rows.make_job(queue="x")
    worker("a", {"x": 4}, seen=20)
    worker("b", {"x": 0})
    assert by_name()["x"].unserved


def test_a_pause_says_why_since_when_and_by_whom():
    pause("queue", "x", reason="late <b>", paused_by="ana", created_at=rows.ago(720), until=rows.ahead(60))
    pause("queue", "over", until=rows.ago(1))
    found = by_name()
    assert list(found) == ["x"]
    paused = found["x"].paused
    assert (paused.reason, paused.who) == ("late <b>", "ana")
    assert 720 <= paused.since_for < 740
    assert 40 < paused.until_in <= 60


def test_a_deep_queue_is_estimated_and_the_others_are_counted(monkeypatch):
    monkeypatch.setattr(sys.modules["jobs.queries.depths"], "COUNTED", 10)
    rows.make_jobs(40, queue="deep")
    rows.make_jobs(3, queue="flat")
    rows.execute("ANALYZE turno.jobs")
    found = by_name()
    assert (found["flat"].waiting, found["flat"].estimated) == (3, False)
    assert (found["deep"].waiting, found["deep"].estimated) == (40, True)


def test_two_deep_queues_share_what_the_index_holds_by_how_often_they_occur(monkeypatch):
    monkeypatch.setattr(sys.modules["jobs.queries.depths"], "COUNTED", 10)
    rows.make_jobs(90, queue="deep")
    rows.make_jobs(30, queue="deeper", type="x")
    rows.execute("ANALYZE turno.jobs")
    found = by_name()
    assert [found[queue].waiting for queue in ("deep", "deeper")] == [90, 30]
    assert found["deep"].estimated
    assert found["deeper"].estimated


def test_without_statistics_a_deep_queue_has_at_least_what_was_counted(monkeypatch):
    monkeypatch.setattr(sys.modules["jobs.queries.depths"], "COUNTED", 10)
    monkeypatch.setattr(sys.modules["jobs.queries.depths"], "index_entries", lambda name: 0)
    rows.make_jobs(40, queue="one")
    rows.make_jobs(40, queue="two")
    assert {depth.waiting for depth in depths()} == {11}


def test_more_parked_jobs_than_are_counted_are_said_to_be_more(monkeypatch):
    monkeypatch.setattr(sys.modules["jobs.queries.depths"], "COUNTED", 10)
    rows.make_jobs(40, "Scheduled", queue="x", waiting_for="rate", gate="k")
    found = by_name()["x"]
    assert (found.parked, found.parked_at_least) == (11, True)
