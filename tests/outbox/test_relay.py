"""The relay: what it publishes, what it does when the broker refuses, hangs or goes, and what a crash leaves behind."""

import asyncio
import threading
import time

import pytest
from django.db import OperationalError, connections
from django.test.utils import CaptureQueriesContext

from jobs import transitions
from jobs.conf import conf
from jobs.states import State
from tests.outbox.rows import all_due, outbox, put, waiting, with_broker
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import CALLER, Fence, ending, make
from tests.transitions.rows import execute, make_job
from workers.relay import Relay
from workers.transports.base import Published
from workers.transports.messages import DeadLetter, Dispatch

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed")]


@pytest.fixture
def relay(broker, loop):
    """A relay of small batches."""
    with with_broker(outbox_batch_size=5, outbox_interval=0.4):
        yield Relay(broker, loop, conf().messaging)


def beside(work):
    """Run `work` as a routine does, in a thread; its answer or error comes by `join()`."""
    answers = []

    def run():
        try:
            answers.append(work())
        except Exception as error:  # noqa: BLE001  (raised again by join)
            answers.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def join():
        thread.join(60)
        assert answers, "it hangs"
        if isinstance(answers[0], Exception):
            raise answers[0]
        return answers[0]

    return join


def test_what_waits_is_published_as_it_stands_and_gone(relay, broker):
    made = make_job(queue="reports", priority=-4)
    put(made, priority=-4)
    assert relay.run_once() == 1
    assert broker.queues == {"reports": [Dispatch(made.id, made.token, "reports", -4)]}
    assert outbox() == []
    assert rows.job(made.id)["announced_at"] is not None


def test_a_letter_goes_to_those_who_listen_for_letters(relay, broker):
    case = make("processing", Fence.RIGHT)
    transitions.settle([ending(case, State.FAILED)], worker_id=CALLER)
    [letter] = rows.letters(case.made.id)
    assert relay.run_once() == 1
    [message] = broker.letters
    assert isinstance(message, DeadLetter)
    assert (message.job, message.id) == (case.made.id, str(letter["id"]))
    assert b'"cause-1"' in message.body()


def test_all_that_waits_goes_in_one_call_in_batches_and_in_order(relay, broker):
    made = waiting(23)
    assert relay.run_once() == 23
    assert broker.tokens == [m.token for m, _ in made]
    assert broker.batches == [5, 5, 5, 5, 3]
    assert outbox() == []


def test_several_batches_are_on_their_way_at_once(relay, broker):
    waiting(15)
    together = []

    async def until_all_are_here(_messages):
        together.append(len(broker.batches))
        async with asyncio.timeout(10):
            while len(broker.batches) < 3:
                await asyncio.sleep(0.001)

    broker.meanwhile = until_all_are_here
    assert relay.run_once() == 15
    assert len(broker.batches) == 3


def test_an_endless_backlog_does_not_keep_it_in_one_call(relay, broker, monkeypatch):
    monkeypatch.setattr("workers.relay.ROUND", 2)
    waiting(30)
    assert relay.run_once() == 10
    assert len(outbox()) == 20


def test_without_a_broker_nothing_is_even_leased(relay, broker):
    waiting(1)
    broker.there = False
    with CaptureQueriesContext(connections["engine"]) as asked:
        assert relay.run_once() == 0
    assert len(asked) == 0
    broker.there = True
    assert relay.run_once() == 1


def test_a_broker_that_goes_gets_everything_again_and_nothing_counts_as_a_failure(relay, broker):
    made = waiting(12)

    async def goes(_messages):
        broker.there = False

    broker.meanwhile = goes
    assert relay.run_once() == 0
    assert [(row["lock_id"], row["failures"]) for row in outbox()] == [(None, 0)] * 12
    broker.there, broker.meanwhile = True, None
    execute("SELECT pg_sleep(0.25)")  # it rests
    assert relay.run_once() == 12
    assert {m.token for m, _ in made} == set(broker.tokens)
    assert outbox() == []


def test_a_broker_that_does_not_answer_in_time_counts_as_away(broker, loop, monkeypatch):
    monkeypatch.setattr("workers.transports.across.SLACK", 0.1)
    waiting(2)

    async def hangs(_messages):
        await asyncio.Event().wait()

    broker.meanwhile = hangs
    with with_broker(publish_timeout=0.1):
        assert Relay(broker, loop, conf().messaging).run_once() == 0
    assert [(row["lock_id"], row["failures"]) for row in outbox()] == [(None, 0)] * 2


def test_a_message_that_is_refused_waits_longer_each_time_and_keeps_no_other_back(relay, broker):
    bad = waiting(7, queue="nowhere")
    good = waiting(100)
    broker.refused["nowhere"] = "312 NO_ROUTE"
    started = time.monotonic()
    relay.run_once()
    relay.run_once()
    assert {m.token for m, _ in good} == set(broker.tokens)
    assert time.monotonic() - started < 5
    left = outbox()
    assert [row["id"] for row in left] == [id_ for _, id_ in bad]
    assert {(row["failures"], row["last_error"], row["lock_id"]) for row in left} == {(1, "312 NO_ROUTE", None)}
    first = [row["due_in"] for row in left]
    tried = len(broker.batches)
    assert relay.run_once() == 0  # no hot loop
    assert len(broker.batches) == tried
    all_due()
    relay.run_once()
    relay.run_once()
    for before, row in zip(first, outbox(), strict=True):
        assert row["failures"] == 2
        assert row["due_in"] > 1.8 * before
    broker.refused.clear()
    all_due()
    relay.run_once()
    relay.run_once()
    assert outbox() == []
    assert len(broker.queues["nowhere"]) == 7


def test_one_message_that_nobody_can_publish_costs_no_other_its_place(relay, broker, monkeypatch):
    made = waiting(4)
    broken = made[2][0].token
    put_in = broker._put

    def choke(message):
        if message.token == broken:
            raise TypeError("no such thing")
        return put_in(message)

    monkeypatch.setattr(broker, "_put", choke)
    assert relay.run_once() == 4
    assert set(broker.tokens) == {m.token for m, _ in made} - {broken}
    [row] = outbox()
    assert (row["dispatch_id"], row["failures"], row["last_error"]) == (broken, 1, "TypeError: no such thing")


def test_an_answer_too_few_confirms_nothing_it_was_not_told(relay, broker, monkeypatch):
    waiting(3)

    async def forgetful(messages):
        return [Published()] * (len(messages) - 1)

    monkeypatch.setattr(broker, "publish", forgetful)
    relay.run_once()
    assert [row["failures"] for row in outbox()] == [1, 1, 1]


def test_what_names_its_job_no_more_is_not_published(relay, broker):
    (cancelled, _), (made, _) = waiting(2)
    transitions.cancel([cancelled.id])
    assert relay.run_once() == 2
    assert broker.tokens == [made.token]


CRASHES = {
    "after the lease": "lease_outbox",
    "after the publishing": "confirm_outbox",
}


@pytest.mark.parametrize("when", CRASHES)
def test_a_relay_that_dies_leaves_its_messages_to_the_next_and_none_is_lost(when, relay, broker, loop, monkeypatch):
    made = waiting(3)
    verb = getattr(transitions, CRASHES[when])

    def dies(*arguments, **options):
        if when == "after the lease":
            verb(*arguments, **options)
        raise OperationalError("the connection is gone")

    with monkeypatch.context() as patch:
        patch.setattr(transitions, CRASHES[when], dies)
        with pytest.raises(OperationalError):
            relay.run_once()
    other = Relay(broker, loop, conf().messaging)
    assert other.run_once() == 0  # the lease stands
    all_due()
    assert other.run_once() == 3
    assert outbox() == []
    assert set(broker.tokens) == {m.token for m, _ in made}
    assert len(broker.tokens) == (3 if when == "after the lease" else 6)  # duplicates, that their token drops


def test_a_relay_that_froze_beyond_its_lease_publishes_twice_and_loses_nothing(relay, broker, loop):
    [(made, _)] = waiting(1)
    published, thaw = threading.Event(), asyncio.Event()

    async def freezes(_messages):
        if len(broker.batches) == 1:
            published.set()
            await thaw.wait()

    broker.meanwhile = freezes
    frozen = beside(relay.run_once)
    assert published.wait(60)
    all_due()
    assert Relay(broker, loop, conf().messaging).run_once() == 1
    loop.call_soon_threadsafe(thaw.set)
    assert frozen() == 1
    assert broker.tokens == [made.token] * 2
    assert outbox() == []


def test_closing_waits_for_what_is_on_its_way_and_takes_nothing_more(relay, broker):
    waiting(30)
    on_its_way, go_on = threading.Event(), threading.Event()

    async def slow(_messages):
        on_its_way.set()
        await asyncio.get_running_loop().run_in_executor(None, go_on.wait)

    broker.meanwhile = slow
    running = beside(relay.run_once)
    assert on_its_way.wait(60)
    assert not relay.close(0.05)
    go_on.set()
    assert relay.close(10)
    assert running() < 30
    assert all(row["lock_id"] is None for row in outbox())
    assert relay.run_once() == 0


def test_where_the_engine_has_ended_nothing_is_published_and_the_lease_is_given_back(broker):
    ended = asyncio.new_event_loop()
    ended.close()
    waiting(1)
    with with_broker():
        assert Relay(broker, ended, conf().messaging).run_once() == 0
    assert [row["lock_id"] for row in outbox()] == [None]
