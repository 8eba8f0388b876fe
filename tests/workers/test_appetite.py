"""How many unclaimed messages a consumer may hold: as many as slots are free, but not at every blink."""

import pytest

from workers.transports.appetite import ENDING, PATIENCE, Appetite

SOON, LATER = PATIENCE / 2, PATIENCE * 1.5


@pytest.fixture
def fed():
    """Four slots, all free, and a consumer that may hold four since the instant 0."""
    made = Appetite(4, 0)
    made.consumes(4, 0)
    return made


def test_without_a_consumer_as_many_as_slots_are_free_are_wanted_at_once():
    made = Appetite(3, 0)
    assert (made.wanted(0), made.due) == (3, 0)
    made.consumes(3, 0)
    assert (made.wanted(9), made.due) == (3, None)


def test_without_a_free_slot_and_a_consumer_nothing_is_wanted():
    made = Appetite(0, 0)
    assert (made.wanted(9), made.due) == (0, None)
    made.room(1, 10)
    assert made.wanted(10) == 1


def test_full_for_a_while_nothing_is_held(fed):
    fed.room(0, 1)
    assert fed.wanted(1 + SOON) == 4
    assert fed.wanted(1 + LATER) == 0
    assert fed.due == 1 + PATIENCE


def test_a_slot_that_is_free_in_between_makes_the_while_begin_again(fed):
    fed.room(0, 1)
    fed.room(1, 1 + SOON)
    fed.room(0, 1 + 2 * SOON)
    assert fed.wanted(1 + LATER) == 4
    assert fed.due == 1 + 2 * SOON + PATIENCE


def test_a_busy_worker_with_a_free_slot_goes_on_as_it_is(fed):
    fed.room(1, 1)
    assert (fed.wanted(9), fed.due) == (4, None)


def test_more_is_held_when_more_are_free_for_a_while():
    made = Appetite(1, 0)
    made.consumes(1, 0)
    made.room(3, 1)
    assert made.wanted(1 + SOON) == 1
    assert made.wanted(1 + LATER) == 3


def test_full_and_then_more_than_before_are_two_whiles(fed):
    fed.consumes(1, 0)
    fed.room(0, 1)
    fed.room(4, 1 + SOON)
    assert fed.wanted(1 + PATIENCE) == 1
    assert fed.due == 1 + SOON + PATIENCE


def test_slots_on_offer_are_free_until_they_are_taken(fed):
    fed.offer(4, 1)
    assert (fed.free, fed.due) == (4, None)
    fed.room(1, 1)  # one ends meanwhile, of a queue with a fifth slot
    fed.taken(4, 2)
    assert fed.free == 1
    fed.offer(1, 3)
    fed.taken(1, 4)
    assert (fed.free, fed.due) == (0, 4 + PATIENCE)


def test_what_was_offered_in_vain_is_free_again(fed):
    fed.offer(3, 1)
    fed.taken(1, 2)
    assert fed.free == 3


def test_a_slot_that_will_be_free_in_a_moment_makes_the_while_begin_again_and_not_for_ever(fed):
    fed.room(0, 1)
    assert fed.put_off(1, 1, 1 + LATER)
    assert fed.wanted(1 + LATER) == 4
    assert fed.due == 1 + LATER + PATIENCE
    assert not fed.put_off(1, 1, 1 + ENDING)
    assert fed.wanted(1 + ENDING) == 0


@pytest.mark.parametrize(("held", "ending", "off"), [(0, 0, False), (0, 1, True), (4, 4, True), (2, 1, False)])
def test_the_while_begins_again_only_where_each_that_is_held_will_get_one_of_those_slots(fed, held, ending, off):
    fed.room(0, 1)
    assert fed.put_off(held, ending, 1 + LATER) is off
    assert fed.wanted(1 + LATER) == (4 if off else 0)


def test_one_slot_that_turns_does_not_make_a_worker_full_of_long_jobs_hold_what_the_others_would_have_to_take():
    """Nine jobs of an hour; of the tenth slot's jobs each end takes a while to be written, and the queue is full."""
    made, now, held, most = Appetite(10, 0), 0.0, 10, []
    made.consumes(10, now)
    made.offer(10, now)
    made.taken(10, now)
    for _turn in range(50):
        written = now + ENDING / 2
        most.append(0)
        while now < written:  # looked at as the intake does
            if made.due is not None and now >= made.due and not made.put_off(held, 1, now):
                made.consumes(made.wanted(now), now)
                held = made.prefetch
            most[-1] = max(most[-1], held) if now > written - SOON else most[-1]
            now += PATIENCE / 8
        made.room(1, now)
        if made.prefetch != made.wanted(now):
            made.consumes(made.wanted(now), now)
        made.offer(1, now)
        made.taken(1, now)
        held = made.prefetch  # one is claimed, and the broker fills up what may be held
    assert most == [0] + [1] * 49
