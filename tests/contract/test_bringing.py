"""Jobs come to free slots: each once, as many as there are slots, and nothing is held that nobody has claimed."""

from dataclasses import replace

import pytest

from jobs import transitions
from tests.kit.processes import eventually
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import execute, make_job
from workers.transports.base import Broker

pytestmark = [COMMITTED]


def made(count, **columns):
    """So many jobs, Enqueued."""
    return [make_job(**columns) for _ in range(count)]


def states(jobs):
    """The states of these jobs, without repetition."""
    return {rows.job(job.id)["state"] for job in jobs}


def pause(queue):
    execute("INSERT INTO turno.pauses (scope, value) VALUES ('queue', %s)", queue)


def test_a_job_is_brought_once_and_belongs_to_who_got_it(transport, posts):
    post = posts(transport)
    [job] = made(1)
    transport.announce(job)
    assert post.has(1) == [job.id]
    row = rows.job(job.id)
    assert (row["state"], row["worker_id"], row["executions"]) == ("Processing", post.id, 1)
    assert row["slot"] == post.held[0].claim.slot
    assert post.book.get(job.token) is post.held[0]


def test_what_waited_before_anybody_came_is_brought(transport, posts):
    jobs = made(3)
    transport.announce(*jobs)
    assert set(posts(transport).has(3)) == {job.id for job in jobs}


def test_never_more_comes_than_slots_are_free(transport, posts):
    jobs = made(8)
    post = posts(transport, {"default": 3})
    transport.announce(*jobs)
    post.has(3)
    assert sorted(held.claim.slot for held in post.held) == [1, 2, 3]
    for _ in range(5):
        post.finish(1)
        post.has(3)
    assert states(jobs) == {"Processing"}
    assert all(rows.job(job.id)["executions"] == 1 for job in jobs)


def test_each_queue_has_slots_of_its_own(transport, posts):
    busy, free = made(4, queue="default"), made(2, queue="critical")
    post = posts(transport, {"default": 1, "critical": 2})
    transport.announce(*busy, *free)
    post.has(3)
    queues = [held.claim.queue for held in post.held]
    assert sorted(queues) == ["critical", "critical", "default"]


@pytest.mark.needs("priorities")
def test_what_waits_is_brought_by_priority(transport, posts):
    jobs = {}
    for priority in (0, -10, 10, 3, -1):
        jobs[priority] = make_job(priority=priority)
        transport.announce(jobs[priority], priority=priority)
    post = posts(transport, {"default": 1})
    order = []
    for _ in jobs:
        order += post.has(1)
        post.finish()
    assert order == [jobs[priority].id for priority in sorted(jobs, reverse=True)]


def test_two_posts_share_the_work_and_no_job_comes_twice(transport, posts):
    first, second = posts(transport, {"default": 5}), posts(transport, {"default": 5})
    jobs = made(10)
    transport.announce(*jobs)
    first.has(5)
    second.has(5)
    assert {*first.jobs(), *second.jobs()} == {job.id for job in jobs}


def test_a_post_whose_slots_are_full_holds_nothing_back_from_another(transport, posts):
    full = posts(transport, {"default": 2})
    jobs = made(12)
    transport.announce(*jobs)
    full.has(2)
    idle = posts(transport, {"default": 10})
    idle.has(10, 5)
    assert len(full.held) == 2


def test_a_job_comes_as_soon_as_a_slot_is_free_again(transport, posts):
    post = posts(transport, {"default": 1})
    first, second = made(2)
    transport.announce(first)
    post.has(1)
    transport.announce(second)
    post.finish()
    eventually(lambda: post.jobs() == [second.id], "the next one comes")


def test_types_that_the_worker_does_not_know_are_left_or_parked_and_stop_nothing(transport, posts):
    unknown, known = make_job(type="other.type", priority=5), make_job()
    post = posts(transport, {"default": 1})
    transport.announce(unknown, priority=5)
    transport.announce(known)
    assert post.has(1) == [known.id]
    row = rows.job(unknown.id)
    if not isinstance(post.transport, Broker):
        assert row["state"] == "Enqueued"
    else:
        eventually(lambda: rows.job(unknown.id)["state"] == "Scheduled", "it is parked")
        row = rows.job(unknown.id)
        assert (row["waiting_for"], row["gate"], row["executions"]) == ("unknown_type", "other.type", 0)


def test_of_a_paused_queue_nothing_comes_until_it_is_resumed(transport, posts):
    pause("default")
    post = posts(transport, {"default": 2, "critical": 1})
    jobs, other = made(2), make_job(queue="critical")
    transport.announce(*jobs, other)
    assert post.has(1) == [other.id]
    assert states(jobs) == {"Enqueued"}
    execute("DELETE FROM turno.pauses")
    post.has(3)


def test_a_pause_stops_a_queue_at_once_and_returns_what_is_not_claimed(transport, posts):
    post = posts(transport, {"default": 1})
    jobs = made(4)
    transport.announce(jobs[0])
    post.has(1)
    pause("default")  # tested inside the claim, whether or not the post has looked since
    transport.announce(*jobs[1:])
    post.finish()
    eventually(lambda: not post.held, "the first one has ended")
    assert states(jobs[1:]) == {"Enqueued"}
    execute("DELETE FROM turno.pauses")
    eventually(lambda: len(post.held) == 1, "it goes on")


def test_of_a_paused_type_nothing_comes_and_the_rest_of_its_queue_does(transport, posts):
    transitions.pause("type", "other.type")
    post = posts(transport, {"default": 4}, types=("test.echo", "other.type"))
    held, free = [make_job(type="other.type") for _ in range(3)], make_job()
    transport.announce(*held, free)
    assert post.has(1) == [free.id]
    if isinstance(post.transport, Broker):  # their messages are gone: they are parked, and will be announced anew
        eventually(lambda: states(held) == {"Scheduled"}, "they are parked")
        assert {rows.job(job.id)["gate"] for job in held} == {"type:other.type"}
    transitions.resume("type", "other.type")
    assert states(held) == {"Enqueued"}
    transport.announce(*(replace(job, token=rows.job(job.id)["dispatch_id"]) for job in held))
    assert {*post.has(4)} == {free.id, *(job.id for job in held)}


def test_a_post_that_is_told_looks_at_once_what_is_paused(broker, posts, monkeypatch):
    """Else it would hold messages of a paused queue, or leave those of a resumed one, until its next look."""
    monkeypatch.setattr("tests.contract.post.POLL", 600.0)
    transitions.pause("queue", "default")
    post = posts(broker)
    [job] = made(1)
    broker.announce(job)
    eventually(lambda: post.claims.paused(["default"]).result(60) == {"default"}, "it is paused")
    transitions.resume("queue", "default")
    assert post.held == []
    eventually(lambda: post.looks_again() or post.held, "it comes")
    assert post.has(1) == [job.id]


def test_a_post_that_is_told_to_stop_takes_nothing_more_and_another_gets_it(transport, posts):
    post = posts(transport)
    [first] = made(1)
    transport.announce(first)
    post.has(1)
    post.pause()
    jobs = made(4)
    transport.announce(*jobs)
    other = posts(transport)
    assert set(other.has(4)) == {job.id for job in jobs}
    assert post.jobs() == [first.id]
    post.close()


def test_a_post_that_ends_gives_back_what_it_has_not_claimed(transport, posts):
    post = posts(transport, {"default": 1})
    jobs = made(6)
    transport.announce(*jobs)
    post.has(1)
    post.close()
    assert len(posts(transport, {"default": 6}).has(5)) == 5


def test_without_a_database_nothing_is_lost_and_work_goes_on_when_it_is_back(transport, posts, cable):
    post = posts(transport, {"default": 10})
    [before] = made(1)
    transport.announce(before)
    post.has(1)
    cable.cut(refuse=True)
    jobs = made(8)
    transport.announce(*jobs)
    eventually(lambda: not post.claims.connected, "the ledger has seen it")
    assert states(jobs) == {"Enqueued"}
    cable.open()
    assert set(post.has(9)) == {before.id, *(job.id for job in jobs)}
    assert all(rows.job(job.id)["executions"] == 1 for job in jobs)


def test_of_a_claim_whose_answer_was_lost_nothing_is_started(transport, posts, cable):
    trap = cable.swallow_commit("turno.jobs")
    post = posts(transport)
    [job] = made(1)
    transport.announce(job)
    trap.wait()
    eventually(lambda: rows.job(job.id)["state"] == "Processing", "it is committed")
    [other] = made(1)
    transport.announce(other)
    assert post.has(1) == [other.id]  # the first is a stray, which a worker's heartbeat gives back
    assert rows.job(job.id)["executions"] == 1
