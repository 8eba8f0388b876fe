"""The arithmetic of Redlock: votes, validity, drift; on a clock of the test's own, with servers that only count."""

import pytest

from tests.kit.clocks import Clock
from workers.locks import redlock
from workers.locks.redlock import NamedLock, Redlock, Standing, standing

MINE, TAKEN, NOBODYS, AWAY = Standing.MINE, Standing.TAKEN, Standing.NOBODYS, Standing.AWAY
FOREVER_AGO = float("-inf")


class Servers:
    """Answers as told: for each try what every server says of the key; each try takes `seconds`."""

    prefix = ""
    changed = []

    def __init__(self, count, clock, *answers, seconds=0.0):
        self.count, self.clock, self.answers, self.seconds = count, clock, list(answers), seconds
        self.up = count
        self.told = []

    def __len__(self):
        return self.count

    async def take(self, items, ttl):
        self.told.append(("take", list(items), ttl))
        self.clock.now += self.seconds
        return [None if answer is None else [answer] * len(items) for answer in self.answers.pop(0)]

    extend = take

    async def release(self, items):
        self.told.append(("release", list(items)))


@pytest.mark.parametrize(
    ("count", "values", "expected"),
    [
        (1, ["me"], MINE),
        (1, ["x"], TAKEN),
        (1, [], AWAY),
        (3, ["me", "me", "me"], MINE),
        (3, ["me", "me"], MINE),
        (3, ["me", "me", "x"], MINE),
        (3, ["me", "x", "x"], TAKEN),
        (3, ["x", "x"], TAKEN),
        (3, ["x", "y", "me"], NOBODYS),
        (3, ["x", "y", "z"], NOBODYS),
        (3, ["me", "x"], NOBODYS),
        (3, ["me"], AWAY),
        (3, ["x"], AWAY),
        (5, ["me", "me", "x"], NOBODYS),
        (5, ["me", "me", "me"], MINE),
        (5, ["me", "me", "x", "x", "x"], TAKEN),
        (5, ["me", "me", "x", "x", "y"], NOBODYS),
        (5, ["x", "x"], AWAY),
        (3, [None, "me", "me"], MINE),
        (3, [None, None, "me"], NOBODYS),
    ],
)
def test_a_lock_is_whose_value_a_quorum_names(count, values, expected):
    assert standing(values, len(values), "me", count // 2 + 1) is expected


@pytest.mark.parametrize(("count", "quorum"), [(1, 1), (3, 2), (5, 3)])
def test_a_quorum_is_more_than_half(count, quorum):
    assert Redlock(Servers(count, Clock()), ttl=1, drift=0).quorum == quorum


async def test_validity_is_the_ttl_without_what_asking_took_and_the_drift():
    clock = Clock()
    lock = Redlock(Servers(3, clock, ["a", "a", "a"], seconds=0.4), ttl=10.0, drift=0.01, clock=clock)
    found, until = await lock.acquire([("k", "a")])
    assert found == {("k", "a"): MINE}
    assert until == pytest.approx(1000 + 10 - 0.1 - 0.002)  # counted from before the first server was asked
    assert until - clock.now == pytest.approx(9.498)


@pytest.mark.parametrize(("seconds", "mine"), [(0.97, True), (0.989, False), (2.0, False)])
async def test_what_took_longer_than_the_ttl_less_drift_is_not_held_whatever_the_servers_say(seconds, mine):
    clock = Clock()
    servers = Servers(3, clock, *[["a", "a", "a"]] * 9, seconds=seconds)
    lock = Redlock(servers, ttl=1.0, drift=0.01, clock=clock)
    found, _ = await lock.acquire([("k", "a")])
    assert (found["k", "a"] is MINE) is mine
    assert (("release", [("k", "a")]) in servers.told) is not mine
    servers.seconds, servers.answers = seconds, [[True] * 3]
    assert (await lock.extend([("k", "a")]))[0] == [MINE if mine else NOBODYS]


async def test_an_extension_counts_from_before_it_was_sent():
    clock = Clock()
    servers = Servers(3, clock, [True, True, None], seconds=0.2)
    lock = Redlock(servers, ttl=3.0, drift=0.1, clock=clock)
    found, until = await lock.extend([("k", "a")])
    assert (found, until) == ([MINE], pytest.approx(1000 + 3 - 0.3 - 0.002))


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([True, True, False], MINE),
        ([True, False, False], NOBODYS),
        ([True, False, None], NOBODYS),
        ([True, None, None], AWAY),
    ],
)
async def test_an_extension_needs_a_quorum_too(answers, expected):
    clock = Clock()
    lock = Redlock(Servers(3, clock, answers), ttl=3.0, drift=0.01, clock=clock)
    assert (await lock.extend([("k", "a")]))[0] == [expected]


@pytest.mark.parametrize("answers", [["a", "x", "x"], ["a", "x", "y"], ["a", None, None]])
async def test_who_fails_takes_back_what_it_got_everywhere(answers, monkeypatch):
    monkeypatch.setattr(redlock, "PATIENCE", 0.0)
    clock = Clock()
    servers = Servers(3, clock, answers)
    found, until = await Redlock(servers, ttl=3.0, drift=0.01, clock=clock).acquire([("k", "a")])
    assert found["k", "a"] is not MINE
    assert servers.told[-1] == ("release", [("k", "a")])
    assert until == float("inf")


async def test_a_split_vote_is_tried_again_and_a_taken_lock_is_not():
    clock = Clock()
    servers = Servers(3, clock, ["a", "x", "y"], ["a", "a", "x"])
    assert (await Redlock(servers, ttl=3.0, drift=0, clock=clock).acquire([("k", "a")]))[0] == {("k", "a"): MINE}
    servers = Servers(3, clock, ["a", "x", "x"])
    assert (await Redlock(servers, ttl=3.0, drift=0, clock=clock).acquire([("k", "a")]))[0] == {("k", "a"): TAKEN}
    assert servers.answers == []


async def test_a_split_vote_is_not_tried_for_ever(monkeypatch):
    clock = Clock()
    servers = Servers(3, clock, *[["a", "x", "y"]] * 50, seconds=0.02)
    monkeypatch.setattr(redlock, "PAUSES", (0.0, 0.0))
    found, _ = await Redlock(servers, ttl=3.0, drift=0, clock=clock).acquire([("k", "a")])
    assert found["k", "a"] is NOBODYS
    assert redlock.PATIENCE <= clock.now - 1000 <= redlock.PATIENCE + 0.021


async def test_without_a_quorum_nobody_is_asked():
    servers = Servers(3, Clock())
    servers.up = 1
    assert (await Redlock(servers, ttl=3.0, drift=0).acquire([("k", "a")]))[0] == {("k", "a"): AWAY}
    assert servers.told == []


async def test_a_named_lock_knows_until_when_it_is_its_own():
    clock = Clock()
    servers = Servers(3, clock, ["a"] * 3, [True] * 3, [True, False, False])
    lock = NamedLock(Redlock(servers, ttl=3.0, drift=0, clock=clock), "k")
    assert lock.until == FOREVER_AGO
    assert (await lock.take("a"), lock.until) == (MINE, pytest.approx(1003 - 0.002))
    clock.now += 2
    assert (await lock.extend("a"), lock.until) == (MINE, pytest.approx(1005 - 0.002))
    assert (await lock.extend("a"), lock.until) == (NOBODYS, FOREVER_AGO)
