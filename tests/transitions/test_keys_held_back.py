"""Jobs of a key that something else holds back take no slot in vain, and do not hold up the others of their key."""

import pytest

from jobs import transitions
from jobs.ids import new_id
from jobs.transitions.keys import KEY
from tests.transitions import rows
from tests.transitions.flow import TYPE, end, enqueue, held, search
from tests.transitions.rows import execute

pytestmark = pytest.mark.django_db


def ids(count):
    return [new_id() for _ in range(count)]


def pause(scope, value):
    transitions.pause(scope, value, actor="ana")


def test_what_is_paused_does_not_hold_up_others_of_its_key():
    first, tagged, typed, free = ids(4)
    enqueue(first, concurrency_key="k", concurrency_limit=1)
    (claimed,) = search(1)
    enqueue(tagged, tags=("night",), concurrency_key="k", concurrency_limit=1)
    enqueue(typed, type="other", concurrency_key="k", concurrency_limit=1)
    enqueue(free, concurrency_key="k", concurrency_limit=1)
    search(9, types=[TYPE, "other"])
    pause("tag", "night")
    pause("type", "other")
    end(claimed)
    assert [rows.job(id_)["gate"] for id_ in (tagged, typed)] == ["tag:night", "type:other"]
    (claimed,) = search(9, types=[TYPE, "other"])
    assert claimed.id == free
    transitions.resume("tag", "night")
    transitions.resume("type", "other")
    assert search(9, types=[TYPE, "other"]) == []
    order = []
    for _ in range(2):
        end(claimed)
        (claimed,) = search(9, types=[TYPE, "other"])
        order.append(claimed.id)
    assert order == [tagged, typed]


def test_jobs_of_a_paused_queue_do_not_hold_up_others_of_their_key():
    first, asleep, free = ids(3)
    enqueue(first, concurrency_key="k", concurrency_limit=1)
    (claimed,) = search(1)
    enqueue(asleep, queue="night", concurrency_key="k", concurrency_limit=1)
    search(1, queue="night")
    enqueue(free, concurrency_key="k", concurrency_limit=1)
    pause("queue", "night")
    end(claimed)
    assert (rows.state(asleep), held(KEY, "k")) == ("Enqueued", [free])
    assert [claim.id for claim in search(1)] == [free]
    transitions.resume("queue", "night")
    assert search(1, queue="night") == []
    assert rows.job(asleep)["waiting_for"] == "concurrency_key"


def test_jobs_behind_an_open_breaker_do_not_hold_up_others_of_their_key():
    first, broken, free = ids(3)
    enqueue(first, concurrency_key="k", concurrency_limit=1)
    (claimed,) = search(1)
    enqueue(broken, type="other", concurrency_key="k", concurrency_limit=1)
    enqueue(free, concurrency_key="k", concurrency_limit=1)
    search(9, types=[TYPE, "other"])
    transitions.trip([transitions.Trip("other", 10, 10, 30.0, 30.0, 0.0)])
    end(claimed)
    assert (rows.job(broken)["waiting_for"], rows.job(broken)["gate"]) == ("circuit", "other")
    assert [claim.id for claim in search(1)] == [free]
    execute("DELETE FROM turno.circuits")
