"""What messages may say, and what becomes of them: the claim decides, and a message is acknowledged once it has."""

import json
from uuid import uuid4

from jobs import transitions
from tests.contract.test_bringing import made, states
from tests.kit.processes import eventually
from tests.transitions import COMMITTED, rows
from tests.transitions.rows import Made, execute, make_job
from workers.locks.base import JobLocks, LocksAway, Taken
from workers.transports.messages import DeadLetter, Dispatch

pytestmark = [COMMITTED]
IDS = {"job": str(uuid4()), "token": str(uuid4())}
GARBAGE = {
    "nothing": (b"", "the body is no JSON"),
    "a megabyte": (b"x" * 2**20, "the body has 1048576 bytes"),
    "text": (b"hello", "the body is no JSON"),
    "an open brace": (b'{"v": 1', "the body is no JSON"),
    "deep": (b"[" * 4000, "the body is no JSON"),
    "invalid UTF-8": (b'{"v": 1, "job": "\xff\xfe"}', "the body is no JSON"),
    "a NUL": (b'{"v": 1}\0', "the body is no JSON"),
    "a huge number": (b'{"v": ' + b"9" * 4000 + b"}", "version"),
    "a list": (json.dumps([1, IDS]).encode(), "the body is no JSON object"),
    "null": (b"null", "the body is no JSON object"),
    "a number": (b"1", "the body is no JSON object"),
    "no version": (json.dumps(IDS).encode(), "the version of the message is not 1"),
    "another version": (json.dumps(IDS | {"v": 2}).encode(), "the version of the message is not 1"),
    "no token": (json.dumps({"v": 1, "job": IDS["job"]}).encode(), "'token' is no UUID"),
    "no UUID": (json.dumps(IDS | {"v": 1, "job": "17"}).encode(), "'job' is no UUID"),
    "other types": (json.dumps({"v": 1, "job": [1], "token": {}}).encode(), "'job' is no UUID"),
}


def done_with(broker, queue="default"):
    """Waits until the queue holds nothing that is not acknowledged: nothing comes back when its consumers are gone."""
    eventually(lambda: broker.ready(queue) == 0, f"nothing waits in {queue}")


def nothing_left(broker, post, queue="default"):
    """The post ends, and of what it was brought nothing is in the queue again, nor among what was put aside."""
    post.close()
    assert broker.ready(queue) == 0
    assert broker.poisoned(queue) == []


def test_messages_that_name_nothing_any_more_are_dropped(broker, posts):
    gone, cancelled, old, double, current = made(5)
    broker.announce(gone, cancelled, old, double, double, current)
    execute("DELETE FROM turno.jobs WHERE id = %s", gone.id)
    transitions.cancel([cancelled.id])
    execute("UPDATE turno.jobs SET dispatch_id = gen_random_uuid() WHERE id = %s", old.id)
    post = posts(broker, {"default": 10})
    assert set(post.has(2)) == {double.id, current.id}
    done_with(broker)
    assert states([old]) == {"Enqueued"}
    assert rows.job(double.id)["executions"] == 1
    nothing_left(broker, post)


def test_a_message_that_comes_again_while_its_job_runs_is_dropped(broker, posts):
    post = posts(broker)
    [job] = made(1)
    broker.announce(job)
    post.has(1)
    for _ in range(3):
        broker.announce(job)
    other = make_job()
    broker.announce(other)
    assert post.has(2) == [job.id, other.id]
    done_with(broker)
    assert rows.job(job.id)["executions"] == 1
    nothing_left(broker, post)


def test_a_message_in_another_queue_than_its_jobs_starts_nothing_and_takes_no_slot(broker, posts):
    job = make_job(queue="critical")
    post = posts(broker, {"default": 1, "critical": 1})
    astray = Dispatch(job.id, job.token, "default")
    broker.publish(astray)
    done_with(broker)
    other = make_job()
    broker.announce(other)
    assert post.has(1) == [other.id]
    assert states([job]) == {"Enqueued"}
    broker.announce(job)
    assert post.has(2) == [other.id, job.id]


def test_what_is_no_message_is_put_aside_with_the_reason_and_is_in_nobodys_way(broker, posts):
    post = posts(broker, {"default": len(GARBAGE) + 2})  # one stays free: a busy worker would leave it to others
    [first] = made(1)
    broker.announce(first)
    ran = [first.id]
    post.has(1)  # the queue exists
    for kind, (body, reason) in GARBAGE.items():
        broker.put("default", body)
        broker.put("default", body)
        [job] = made(1)
        broker.announce(job)
        ran.append(job.id)
        assert post.has(len(ran)) == ran, kind
        aside = []
        eventually(lambda: aside.extend(broker.poisoned("default")) or len(aside) == 2, f"{kind}: both are put aside")  # noqa: B023  (asked at once)
        assert [found for found, _ in aside] == [body, body], kind
        assert all(reason in why for _, why in aside), kind
    done_with(broker)
    nothing_left(broker, post)


def test_more_garbage_than_slots_blocks_nothing(broker, posts):
    post = posts(broker, {"default": 3})
    [first] = made(1)
    broker.announce(first)
    post.has(1)
    for n in range(20):
        broker.put("default", b"garbage %d" % n)
    [job] = made(1)
    broker.announce(job)
    post.has(2)
    aside = []
    eventually(lambda: aside.extend(broker.poisoned("default")) or len(aside) == 20, "all are put aside")


class Locks(JobLocks):
    """Locks as the test has them."""

    def __init__(self):
        self.busy = set()
        self.away = False
        self.mine = set()

    async def acquire(self, pairs):
        if self.away:
            raise LocksAway("a test")
        tokens = frozenset(token for _, token in pairs)
        self.mine |= tokens - self.busy
        return Taken(tokens - self.busy, tokens & self.busy)

    def release(self, pairs):
        self.mine -= {token for _, token in pairs}


def test_a_job_whose_lock_is_held_elsewhere_comes_again_in_a_moment(broker, posts):
    locks = Locks()
    busy, free = made(2)
    locks.busy.add(busy.token)
    post = posts(broker, locks=locks)
    broker.announce(busy, free)
    assert post.has(1) == [free.id]
    eventually(lambda: rows.job(busy.id)["state"] == "Scheduled", "it is put off")
    row = rows.job(busy.id)
    assert (row["waiting_for"], row["executions"], row["dispatch_id"]) == ("lock", 0, None)
    assert (row["run_at"] - row["created_at"]).total_seconds() > 0.2
    assert locks.mine == {free.token}
    done_with(broker)
    nothing_left(broker, post)


def test_locks_of_what_was_not_started_are_given_back(broker, posts):
    locks = Locks()
    gone, unknown, current = make_job(), make_job(type="other.type"), make_job()
    execute("DELETE FROM turno.jobs WHERE id = %s", gone.id)
    post = posts(broker, locks=locks)
    broker.announce(gone, unknown, current)
    post.has(1)
    done_with(broker)
    eventually(lambda: locks.mine == {current.token}, "the other locks are free")


def test_while_there_is_no_quorum_of_locks_nothing_is_taken_or_lost_and_people_are_told(broker, posts):
    locks = Locks()
    locks.away = True
    post = posts(broker, locks=locks)
    jobs = made(3)
    broker.announce(*jobs)
    eventually(lambda: "no quorum" in post.problems(), "it says so")
    assert states(jobs) == {"Enqueued"}
    locks.away = False
    post.has(3)
    assert "no quorum" not in post.problems()


def test_what_is_published_to_a_queue_that_does_not_exist_waits_in_it(broker, posts):
    jobs = [make_job(queue="new") for _ in range(3)]
    broker.announce(*jobs)
    assert broker.ready("new") == 3
    assert set(posts(broker, {"new": 3}).has(3)) == {job.id for job in jobs}


def test_dead_letters_are_published_to_a_queue_of_their_own(broker):
    letter = DeadLetter(uuid4(), {"letter": str(uuid4()), "error": "it failed: ç", "stack": "x" * 100_000})
    broker.publish(letter)
    assert broker.ready("dead-letter") == 1


def test_a_batch_of_thousands_is_published_in_order_of_its_answers(broker, posts):
    messages = [Dispatch(uuid4(), uuid4(), ("default", "new")[n % 2]) for n in range(2000)]
    broker.publish(*messages)
    assert (broker.ready("default"), broker.ready("new")) == (1000, 1000)
    post = posts(broker)  # of jobs that are not there
    eventually(lambda: broker.ready("default") == 0, "all are dropped")
    assert post.held == []


def test_the_depth_of_a_queue_is_what_waits_in_it(broker, posts):
    post = posts(broker, {"critical": 1})
    job = Made(uuid4(), uuid4(), uuid4(), "default", "test.echo")
    broker.announce(job, job)

    def depth(queue):
        return post.call(post.broker.depth(queue)).result(60)

    eventually(lambda: post.broker.connected, "it is connected")
    assert depth("default") in (2, None)
    assert depth("never-was") in (0, None)
