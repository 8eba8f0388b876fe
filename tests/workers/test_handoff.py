"""What a thread hands to a loop arrives whole, in its order, with few wakings."""

import asyncio
import threading

import pytest

from workers.handoff import Handoff

ITEMS = 2000


class Counting(asyncio.SelectorEventLoop):
    """Counts how often it was woken from another thread."""

    wakings = 0

    def call_soon_threadsafe(self, *arguments, **options):
        self.wakings += 1
        return super().call_soon_threadsafe(*arguments, **options)


@pytest.fixture
def loop():
    loop = Counting()
    yield loop
    loop.close()


def test_all_arrives_in_order_while_the_loop_goes_on_taking(loop):
    taken, done = [], asyncio.Event()

    def take(items):
        assert items
        taken.extend(items)
        if len(taken) == ITEMS:
            done.set()

    handoff = Handoff(loop, take)
    thread = threading.Thread(target=lambda: [handoff.put(n) for n in range(ITEMS)])

    async def until_all_is_here():
        thread.start()
        await asyncio.wait_for(done.wait(), 60)

    loop.run_until_complete(until_all_is_here())
    thread.join()
    assert taken == list(range(ITEMS))


def test_a_batch_wakes_the_loop_once(loop):
    batches = []
    handoff = Handoff(loop, batches.append)
    for n in range(100):
        handoff.put(n)
    assert loop.wakings == 1
    loop.run_until_complete(asyncio.sleep(0))
    assert batches == [list(range(100))]
    handoff.put("later")
    loop.run_until_complete(asyncio.sleep(0))
    assert batches[1:] == [["later"]]
    assert loop.wakings == 2


def test_what_is_put_while_the_loop_takes_is_taken_too(loop):
    batches = []

    def take(items):
        batches.append(items)
        if items == [1]:
            handoff.put(2)

    handoff = Handoff(loop, take)
    handoff.put(1)
    loop.run_until_complete(asyncio.sleep(0.01))
    assert batches == [[1], [2]]


def test_a_closed_loop_takes_nothing_and_says_so(loop):
    handoff = Handoff(loop, lambda items: None)
    loop.close()
    with pytest.raises(RuntimeError):
        handoff.put(1)
