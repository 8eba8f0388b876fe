"""Which slots a worker offers to whoever comes next on a key, and who starts there."""

from types import SimpleNamespace

import pytest

import tests.kit.handlers  # noqa: F401  (registers the probe types in this process too)
from jobs.enqueue import JobRequest, enqueue_many
from jobs.states import State
from jobs.transitions import Settled
from tests.isolation.house import claim_of
from tests.kit.look import steps, wait_state
from tests.transitions.rows import select
from workers import succession
from workers.clock import boottime
from workers.leases import Interrupt, LeaseBook
from workers.locks.base import NoLocks
from workers.slots import Slots
from workers.succession import Succession


class House:
    """A book, slots and locks of a worker that may start jobs, and runs two of a key, in the slots 1 and 2 of three."""

    def __init__(self):
        self.book, self.slots, self.locks = LeaseBook(), Slots({"default": 3}), NoLocks()
        self.may_start = True
        self.one, self.two = self.run(slot=1), self.run(slot=2)
        self.succession = Succession(self.book, self.slots, self.locks, lambda: self.may_start, lambda: 1.0)

    def run(self, *, slot, keyed=True):
        claim = claim_of("suspects.async", {})
        claim.queue, claim.slot, claim.keyed = "default", slot, keyed
        [held] = self.book.enter(None, [claim], boottime() + 600)
        return held

    def offered(self, *held):
        slots, room = self.succession.offer([one.claim.dispatch_id for one in held])
        return sorted(slots.values()), dict(room)


@pytest.fixture
def house():
    """Its parts at hand."""
    return House()


def test_the_slots_of_what_has_ended_are_offered_and_it_is_said_how_many_others_are_free(house):
    assert house.offered(house.one, house.two) == ([("default", 1), ("default", 2)], {"default": 1})


def test_who_has_no_key_offers_nothing(house):
    assert house.offered(house.run(slot=3, keyed=False)) == ([], {})


def test_nothing_is_offered_where_nothing_may_start(house):
    house.may_start = False
    assert house.offered(house.one) == ([], {})


def test_nothing_is_offered_while_a_handler_runs_on_past_its_deadline(house):
    house.two.deadline = boottime() - 1
    house.book.overdue(boottime())
    assert house.offered(house.one) == ([], {})


def test_nothing_is_offered_where_no_job_may_start_without_its_lock(house):
    house.succession = Succession(house.book, house.slots, SimpleNamespace(adopts=False), lambda: True, lambda: 1.0)
    assert house.offered(house.one) == ([], {})


def test_nothing_is_offered_of_a_queue_that_has_fewer_slots_by_now(house):
    house.slots.ask({"default": 1})
    assert house.offered(house.one) == ([], {"default": -1})


@pytest.mark.parametrize(("chance", "offers"), [(1.0, True), (0.6, True), (0.4, False), (0.0, False)])
def test_the_longer_a_job_took_the_more_likely_is_any_worker_to_have_the_next(house, chance, offers):
    house.succession = Succession(house.book, house.slots, house.locks, lambda: True, lambda: chance)
    house.one.since = boottime() - succession.SPELL / 2
    assert bool(house.offered(house.one)[0]) == offers


def test_who_took_longer_than_that_is_followed_by_nobody(house):
    house.one.since = boottime() - succession.SPELL
    assert house.offered(house.one) == ([], {})


def test_who_comes_while_all_are_asked_to_stop_is_asked_too(house):
    house.succession.end()
    house.succession.begin(house.two)
    assert house.two.interrupt is Interrupt.SHUTDOWN


def test_who_is_not_held_here_since_the_answer_came_too_late_does_not_start(house):
    claim = house.two.claim
    settled = Settled(house.one.claim.dispatch_id, State.SUCCEEDED, successor=claim)
    assert house.succession.of(settled) is house.two
    house.book.close(claim.dispatch_id)
    assert house.succession.of(settled) is None
    assert house.succession.of(None) is None


@pytest.mark.crash
def test_jobs_of_a_key_follow_each_other_in_a_real_worker_one_at_a_time_with_a_whole_history(fleet):
    fleet.start().wait_ready()
    asked = [
        JobRequest(type_, payload={"key": f"n{number}"}, concurrency_key="k")
        for number, type_ in enumerate(["probe.async", "probe.thread"] * 6)
    ]
    ids = [made.id for made in enqueue_many(asked)]
    for number, id_ in enumerate(ids):
        wait_state(id_, "Succeeded")
        assert len(fleet.starts(f"n{number}")) == 1
    assert steps(ids[-1])[-3:] == [
        ("Scheduled", "Enqueued", "gate_opened"),
        ("Enqueued", "Processing", "claimed"),
        ("Processing", "Succeeded", "succeeded"),
    ]
    followed = (
        "SELECT count(*) AS n FROM turno.job_state_changes AS a JOIN turno.job_state_changes AS b USING (job_id, at) "
        "WHERE a.reason = 'gate_opened' AND b.reason = 'claimed'"
    )
    assert select(followed)[0]["n"] > 0
    overlaps = (
        "SELECT count(*) AS n FROM turno.job_attempts AS a JOIN turno.job_attempts AS b "
        "ON a.job_id < b.job_id AND a.started_at < b.ended_at AND b.started_at < a.ended_at"
    )
    assert select(overlaps) == [{"n": 0}]
