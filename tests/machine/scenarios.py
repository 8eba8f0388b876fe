"""Interleavings that are no chance: each is harmless with its guard, and the judge sees what comes of it without."""

from tests.laws.guards import BrokenPromise
from tests.machine import errands, verbs
from tests.machine.acts import Act
from tests.machine.calm import quiet
from tests.machine.house import House
from tests.machine.sessions import Is

KEYED = (0, 1, 0, 0, 0)  # of the key k1, of which one may run
PLAIN = (0, 0, 0, 0, 0)


def lockstep(house: House, *acts: Act | None) -> None:
    """All begin, then each takes one step in turn, until all have ended."""
    for act in acts:
        assert act is not None
        house.begin(act)
    while house.open:
        ready = [one for one in house.open if one.session.state is Is.STOPPED]
        if not ready:
            raise BrokenPromise("all wait for each other")
        for one in ready:
            if one in house.open and one.session.state is Is.STOPPED:
                house.step(one)


def ended_late(house: House) -> None:
    """An execution is lost, the same worker gets the job again, and then the first one comes to its end."""
    house.do(errands.insertion(house, [PLAIN]))
    house.do(verbs.claim_next(house, 0, 1, 0))
    house.pass_time(errands.LEASES_OVER, [house.workers[0]])
    house.do(verbs.expire(house))
    house.do(verbs.claim_next(house, 0, 1, 0))
    late = verbs.settle(house, 0, ["success"])
    assert late is not None
    house.do(late)


def one_key_claimed_by_two(house: House) -> None:
    """Two workers ask for two jobs of a key at once, statement by statement; the key has a row already."""
    house.do(errands.insertion(house, [KEYED]))
    house.do(verbs.claim_next(house, 2, 1, 0))
    end = verbs.settle(house, 0, ["success"])
    assert end is not None
    house.do(end)
    for _ in range(2):
        house.do(errands.insertion(house, [KEYED]))
    lockstep(house, verbs.claim(house, 0, 1, 1), verbs.claim(house, 1, 2, 1))


def left_waiting(house: House) -> None:
    """One of a key runs, the other waits; the first one ends, and its worker dies before it hears of that."""
    for _ in range(2):
        house.do(errands.insertion(house, [KEYED]))
    house.do(verbs.claim_next(house, 0, 2, 0))
    end = verbs.settle(house, 0, ["success"])
    assert end is not None
    one = house.begin(end)
    assert one is not None
    while one.session.at != "COMMIT":
        house.step(one)
    house.kill(one, late=True)
    quiet(house)


def message_twice(house: House) -> None:
    """The message of a job that runs already comes once more."""
    house.do(errands.insertion(house, [PLAIN]))
    lockstep(house, verbs.claim(house, 0, 0, 1), verbs.claim(house, 1, 0, 1))
