"""What a lock by name must do, whatever it is made of: the lease row in PostgreSQL, one Redis server, three."""

import threading
import time
from uuid import uuid4

import pytest

from tests.kit.processes import eventually
from tests.locks.named import NAME, InRedis, Rows, loop_in_a_thread
from tests.transitions import COMMITTED
from tests.transitions.rows import execute

pytestmark = [COMMITTED]
LONG = 30.0
SHORT = 0.4


@pytest.fixture(params=["row", "redis-1", "redis-3"])
def kind(request, transactional_db, three):
    if request.param == "row":
        yield Rows()
        execute("DELETE FROM turno.leases")
        return
    with loop_in_a_thread() as loop:
        made = InRedis(three[: int(request.param[-1])], loop)
        yield made
        made.close()


def test_one_has_it_and_no_other(kind):
    mine, theirs, me, other = kind.lock(LONG), kind.lock(LONG), uuid4(), uuid4()
    assert mine.take(me)
    assert not theirs.take(other)
    assert not theirs.extend(other)


def test_who_has_it_takes_it_again_in_whatever_process(kind):
    mine, again, me = kind.lock(LONG), kind.lock(LONG), uuid4()
    assert mine.take(me)
    assert mine.take(me)
    assert again.take(me)


def test_it_is_free_when_its_time_is_over_and_not_before(kind):
    mine, theirs, other = kind.lock(SHORT), kind.lock(LONG), uuid4()
    began = time.monotonic()
    assert mine.take(uuid4())
    eventually(lambda: theirs.take(other), "it is free")
    assert time.monotonic() - began > SHORT * 0.95


def test_who_has_it_keeps_it_for_as_long_as_it_is_extended(kind):
    mine, theirs, me = kind.lock(2.5), kind.lock(LONG), uuid4()
    assert mine.take(me)
    for _ in range(8):
        time.sleep(0.4)
        assert mine.extend(me)
        assert not theirs.take(uuid4())


def test_only_who_has_it_gives_it_back(kind):
    mine, theirs, me, other = kind.lock(LONG), kind.lock(LONG), uuid4(), uuid4()
    assert mine.take(me)
    theirs.release(other)
    assert not theirs.take(other)
    mine.release(me)
    assert theirs.take(other)


def test_a_frozen_holder_has_lost_it_and_neither_extends_nor_frees_its_successors(kind):
    frozen, successor, me, other = kind.lock(SHORT), kind.lock(LONG), uuid4(), uuid4()
    assert frozen.take(me)
    time.sleep(SHORT + 0.1)
    assert successor.take(other)
    assert not frozen.extend(me)
    assert not frozen.take(me)
    frozen.release(me)
    assert not frozen.take(uuid4())
    assert successor.extend(other)


def test_of_many_at_once_never_two_have_it_and_it_never_stands_without_an_end(kind):
    holding, wins, wrong = [], [], []
    ends = time.monotonic() + 2.5

    def contend():
        lock, me = kind.lock(LONG), uuid4()
        try:
            while time.monotonic() < ends:
                if lock.take(me):
                    holding.append(me)
                    time.sleep(0.002)
                    if holding != [me]:
                        wrong.append(list(holding))
                    holding.remove(me)
                    wins.append(me)
                    lock.release(me)
                time.sleep(0.004)
        finally:
            kind.thread_ends()

    threads = [threading.Thread(target=contend) for _ in range(6)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        for server in kind.servers:
            assert all(left > 0 for name, left in server.ttls().items() if name.endswith(NAME))
        time.sleep(0.05)
    assert wrong == []
    assert len(wins) >= 5
    assert len(set(wins)) >= 2
    assert holding == []
