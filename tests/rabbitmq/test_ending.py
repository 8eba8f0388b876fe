"""A worker whose handlers are over, and whose slots will be free once that is written, keeps what it was brought."""

import pytest

from tests.contract.test_bringing import made
from tests.kit.processes import eventually
from tests.transitions import COMMITTED
from workers.transports import appetite

pytestmark = [COMMITTED]


def test_what_is_held_is_kept_while_an_end_is_being_written_and_not_for_long(rabbit, posts, monkeypatch):
    monkeypatch.setattr(appetite, "ENDING", 3600.0)
    monkeypatch.setattr(appetite, "PATIENCE", 2.0)
    post = posts(rabbit, {"default": 2})
    rabbit.announce(*made(5))
    post.has(2)
    for held in post.held:
        held.ended = True
    hunger = post.broker._intakes["default"]._appetite
    eventually(lambda: hunger._since > hunger._misfit_since, "the consumer's end is put off")
    assert (hunger.prefetch, rabbit.ready("default")) == (2, 1), "two run, two are held, one waits for anybody"
    monkeypatch.setattr(appetite, "ENDING", 0.0)
    eventually(lambda: rabbit.ready("default") == 3, "what was held is given back")
    assert hunger.prefetch == 0


def test_no_more_is_kept_than_slots_will_be_free_in_a_moment(rabbit, posts, monkeypatch):
    """Else one slot that turns would be enough for a worker full of long jobs to keep for ever what it can't begin."""
    monkeypatch.setattr(appetite, "ENDING", 3600.0)
    monkeypatch.setattr(appetite, "PATIENCE", 1.0)
    post = posts(rabbit, {"default": 3})
    rabbit.announce(*made(8))
    post.has(3)
    post.held[0].ended = True
    hunger = post.broker._intakes["default"]._appetite
    eventually(lambda: rabbit.ready("default") == 5, "three are not kept for one slot")
    assert hunger.prefetch == 0
    post.finish()
    post.has(3)
    eventually(lambda: (hunger.prefetch, rabbit.ready("default")) == (1, 3), "one is brought beyond the one that began")
    post.held[-1].ended = True
    eventually(lambda: hunger._since > hunger._misfit_since, "it is kept for the one slot that ends")
    assert (hunger.prefetch, rabbit.ready("default")) == (1, 3)
    post.held[-1].freed = True  # and the slot is not to be had, as while a suspect runs alone
    eventually(lambda: rabbit.ready("default") == 4, "what has ended before counts no more")


@pytest.mark.parametrize("over", [0, 1])
def test_of_what_is_over_nothing_is_kept(over, rabbit, posts):
    """Payloads may be large."""
    post = posts(rabbit, {"default": 3})
    rabbit.announce(*made(2))
    post.has(2)
    post.held[0].ended = True
    post.held[0].freed = bool(over)
    seated = post.broker._intakes["default"]
    eventually(lambda: len(seated._seated) == 2 - over, "those whose slots are taken are known")
