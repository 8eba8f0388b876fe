"""Reconciliation: jobs whose message is gone are found by comparing, and never announced in a loop."""

import asyncio

import pytest
from django.db import OperationalError

from jobs import transitions
from jobs.conf import conf
from jobs.sections import Recovery
from tests.outbox.rows import outbox
from tests.transitions import COMMITTED, rows
from tests.transitions.edges import claimant
from tests.transitions.rows import ago, execute, make_job
from workers.reconcile import INTERVAL, RAREST, UNTOLD, Reconcile
from workers.relay import Relay
from workers.transports.messages import Dispatch

pytestmark = [COMMITTED, pytest.mark.usefixtures("committed", "configured")]
TIMEOUT = 10.0


class House:
    """A reconciliation with a clock of its own, and a relay to take on what it writes."""

    def __init__(self, broker, loop, **settings):
        self.now = 1000.0
        self.broker, self.loop = broker, loop
        self.reconcile = self.another(**settings)
        self.relay = Relay(broker, loop, conf().messaging)

    def another(self, **settings):
        """Another leader."""
        settings = Recovery(**({"batch_size": 100} | settings))
        return Reconcile(self.broker, self.loop, settings, timeout=TIMEOUT, clock=lambda: self.now)

    def looks(self, *, after=INTERVAL):
        """The next look, some seconds later."""
        self.now += after
        return self.reconcile.run_once()


@pytest.fixture
def house(broker, loop):
    return House(broker, loop)


def announced(count=1, **columns):
    """Jobs whose message was confirmed a minute ago."""
    return [make_job(**{"enqueued_at": ago(70), "announced_at": ago(60)} | columns) for _ in range(count)]


def bring(broker, mades):
    """Their messages wait in the broker."""
    for made in mades:
        broker.queues[made.queue].append(Dispatch(made.id, made.token, made.queue))


def tokens():
    return {row["dispatch_id"] for row in outbox()}


def test_what_two_looks_miss_is_announced_again_and_comes(house, broker):
    kept, lost = announced(3), announced(2, enqueued_at=ago(90))
    bring(broker, kept)
    assert house.looks() == 0
    assert outbox() == []
    assert house.looks() == 2
    assert tokens() == {made.token for made in lost}
    house.relay.run_once()
    assert {made.token for made in kept + lost} == set(broker.tokens)
    assert [house.looks() for _ in range(3)] == [0, 0, 0]


def test_a_healthy_house_is_left_alone(house, broker):
    bring(broker, announced(5))
    announced(2, announced_at=ago(3))
    make_job("Scheduled")
    assert [house.looks() for _ in range(4)] == [0] * 4
    assert outbox() == []


def test_messages_too_many_are_no_concern(house, broker):
    bring(broker, announced(2) * 3)
    assert [house.looks() for _ in range(3)] == [0] * 3


def test_a_message_that_was_only_on_its_way_is_not_missed_twice(house, broker):
    [made] = announced()
    assert house.looks() == 0
    bring(broker, [made])
    assert house.looks() == 0
    broker.queues.clear()
    assert house.looks() == 0  # the first of two again
    assert house.looks() == 1


def test_looks_that_follow_at_once_are_one(house, broker):
    announced()
    assert house.looks() == 0
    assert [house.looks(after=0.1) for _ in range(5)] == [0] * 5
    assert house.looks() == 1


def test_another_leader_begins_with_looking(house):
    announced()
    assert house.looks() == 0
    house.reconcile = house.another()
    assert house.looks() == 0
    assert house.looks() == 1


def test_who_leads_again_after_a_while_begins_with_looking(house):
    announced()
    assert house.looks() == 0
    assert house.looks(after=INTERVAL * 30) == 0
    assert house.looks() == 1


def test_no_more_is_announced_than_both_looks_missed(house, broker):
    first, later = announced(2, enqueued_at=ago(300)), announced(5)
    bring(broker, later)
    assert house.looks() == 0
    broker.queues.clear()
    assert house.looks() == 2
    assert tokens() == {made.token for made in first}


def test_after_a_broker_that_lost_everything_all_comes_back_in_batches_at_once(broker, loop):
    house = House(broker, loop, batch_size=40)
    mades = announced(100)
    assert house.looks() == 0
    assert [house.looks(), house.looks(after=0.1), house.looks(after=0.1)] == [40, 40, 20]
    house.relay.run_once()
    assert sorted(broker.tokens) == sorted(made.token for made in mades)


def test_a_message_that_is_lost_again_and_again_is_announced_once_in_ten_minutes(house):
    [made] = announced()
    house.looks()
    assert house.looks() == 1
    for _ in range(5):
        execute("DELETE FROM turno.outbox_messages")
        execute(f"UPDATE turno.jobs SET announced_at = {ago(30)}, enqueued_at = {ago(3000)}")
        assert house.looks() == 0
    execute(f"UPDATE turno.jobs SET reannounced_at = {ago(605)}")
    assert house.looks() == 1
    assert tokens() == {made.token}


def test_a_wrong_guess_starts_no_job_twice(house, broker):
    [made] = announced()
    house.looks()
    house.looks()
    house.relay.run_once()
    bring(broker, [made])  # it was there all the time, in some consumer's hands
    claims = [
        transitions.claim([(message.job, message.token, 1)], **claimant()) for message in broker.queues[made.queue]
    ]
    assert [len(claim) for claim in claims] == [1, 0]


def test_queues_are_looked_at_apart(house, broker):
    full, empty = announced(3, queue="a"), announced(2, queue="b")
    bring(broker, full * 2)
    house.looks()
    assert house.looks() == 2
    assert tokens() == {made.token for made in empty}


def test_without_a_broker_nobody_looks_and_what_was_missed_is_forgotten(house, broker):
    announced()
    assert house.looks() == 0
    broker.there = False
    assert house.looks() == 0
    broker.there = True
    assert house.looks() == 0
    assert house.looks() == 1


def test_a_broker_that_goes_in_between_is_no_error(house, broker, monkeypatch):
    announced()

    async def goes(_queue):
        broker.there = False
        broker._must_be_there()

    monkeypatch.setattr(broker, "depth", goes)
    assert house.looks() == 0


def test_a_broker_that_does_not_answer_is_no_error(broker, loop, monkeypatch):
    monkeypatch.setattr("workers.transports.across.SLACK", 0.1)
    monkeypatch.setattr(f"{__name__}.TIMEOUT", 0.1)
    announced()

    async def hangs(_queue):
        await asyncio.Event().wait()

    monkeypatch.setattr(broker, "depth", hangs)
    assert House(broker, loop).looks() == 0


def test_a_long_queue_is_counted_the_less_often_the_longer_it_is(house, broker, monkeypatch):
    mades = announced(2)
    bring(broker, mades[:1])
    monkeypatch.setattr("workers.reconcile.PER_SECOND", 1 / 25)  # one message: 25 s
    counted = []
    count = transitions.announced
    monkeypatch.setattr(transitions, "announced", lambda *a, **o: counted.append(a) or count(*a, **o))
    assert [house.looks() for _ in range(8)].count(1) == 1
    assert len(counted) == 3
    monkeypatch.setattr("workers.reconcile.PER_SECOND", 1e-9)
    house.looks(after=RAREST)
    counted.clear()
    house.looks(after=RAREST - 1)
    house.looks(after=2)
    assert len(counted) == 1


def test_jobs_that_were_enqueued_before_there_was_a_broker_are_announced(house):
    mades = announced(3, announced_at=None)
    house.looks()
    assert house.looks() == 3
    assert tokens() == {made.token for made in mades}


def test_by_age_alone_where_it_is_configured(broker, loop):
    house = House(broker, loop, redispatch_enqueued_after=120)
    old, young = announced(2, announced_at=ago(130), enqueued_at=ago(140)), announced(2)
    bring(broker, old + young)
    assert house.looks() == 2
    assert tokens() == {made.token for made in old}
    assert house.looks() == 0


def test_where_a_broker_can_not_say_how_many_wait_a_long_time_is_the_sign(house, broker):
    broker.tells = False
    [old] = announced(announced_at=ago(UNTOLD + 10), enqueued_at=ago(UNTOLD + 20))
    announced()
    assert house.looks() == 1
    assert tokens() == {old.token}


def test_what_the_broker_gave_up_is_announced_at_once_where_it_still_counts(house, broker):
    made, gone = announced(2)
    transitions.cancel([gone.id])
    broker.set_aside = [Dispatch(m.id, m.token, m.queue) for m in (made, gone)]
    assert house.looks() == 2
    assert tokens() == {made.token}
    assert broker.set_aside == []
    house.relay.run_once()
    assert broker.tokens == [made.token]


def test_what_was_taken_off_while_the_database_went_away_is_announced_when_it_is_back(house, broker, monkeypatch):
    [made] = announced()
    broker.set_aside = [Dispatch(made.id, made.token, made.queue)]

    def away(*_pairs, **_options):
        raise OperationalError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(transitions, "reannounce", away)
        with pytest.raises(OperationalError):
            house.looks()
    assert broker.set_aside == []
    house.looks()
    assert tokens() == {made.token}
    assert house.looks() == 0


def test_nothing_is_remembered_of_queues_that_have_no_jobs_any_more(house):
    [made] = announced(queue="once")
    house.looks()
    transitions.cancel([made.id])
    house.looks()
    assert (house.reconcile._lacking, house.reconcile._next) == ({}, {})


def test_the_history_of_a_job_says_nothing_of_it(house):
    [made] = announced()
    house.looks()
    house.looks()
    assert rows.history(made.id) == []
    assert rows.job(made.id)["reannounced_at"] is not None
