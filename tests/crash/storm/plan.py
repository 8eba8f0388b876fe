"""What happens when, from the seed alone: errands of clients, acts of people, blows at workers and servers.

What the machine makes of it is its own: which job is cancelled and which process dies depends on who is there then.
"""

import random
from dataclasses import dataclass
from itertools import pairwise

from tests.crash.storm.orders import Errand, errands

PLACES = 3  # of workers, and as many Redis servers
FIRST, LAST = 1.0, 0.5  # seconds before the first blow and after the last one
PAUSES = (0.2, 1.5)  # seconds between two blows, at the least and at the most
# Messages are looked for once in ten minutes at most: what loses them comes at the beginning of each such span, then
# so many times as often.
LOSING, SPAN, OFTEN = 30.0, 660.0, 3


@dataclass(frozen=True, slots=True)
class Blow:
    """A fault: `name` is one of BLOWS, `place` the worker or Redis server, `lasts` seconds where it can be undone.

    `chance` (0..1) decides what is still open when it falls, such as which child of a worker.
    """

    at: float
    name: str
    place: int
    lasts: float
    chance: float


@dataclass(frozen=True, slots=True)
class Deed:
    """What a person does: one of DEEDS; `chance` (0..1) says to which of those that are there then."""

    at: float
    name: str
    chance: float
    lasts: float


@dataclass(frozen=True, slots=True)
class Plan:
    """All of it, each part by its instants in seconds from the beginning; `a_second` jobs are asked for."""

    profile: str
    seed: int
    seconds: float
    a_second: float
    errands: tuple[Errand, ...]
    deeds: tuple[Deed, ...]
    blows: tuple[Blow, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """`weight`: how often; `lasts`: seconds at the least and at the most; `at`: a server that stands alone, which is
    not struck twice at once, nor within `rest` seconds."""

    weight: int
    lasts: tuple[float, float] = (0.0, 0.0)
    at: str = ""
    rest: float = 0.0


WORKERS = {
    "kill the worker": Fault(6),
    "kill the supervisor": Fault(5),
    "kill the forkserver": Fault(4),
    "kill a child": Fault(6),
    "freeze the worker": Fault(8, (0.2, 7.0)),
    "freeze the worker and its supervisor": Fault(4, (0.2, 6.0)),
    "freeze a child": Fault(3, (0.2, 4.0)),
    "stop the worker": Fault(5),
    "stop the worker's process alone": Fault(2),
    "kill the leader": Fault(4),
    "freeze the leader": Fault(4, (0.2, 6.0)),
    "stop the leader": Fault(2),
    "cut a worker off": Fault(5, (0.2, 6.0), "cable"),
    "reset a worker's connections": Fault(4),
    "lose answers to COMMIT": Fault(5),
}
DATABASE = {
    "terminate connections": Fault(5),
    "restart PostgreSQL": Fault(2, (0.1, 3.0), "postgres", 8.0),
    "kill PostgreSQL": Fault(1, (0.1, 3.0), "postgres", 8.0),
    "freeze PostgreSQL": Fault(2, (0.2, 4.0), "postgres", 4.0),
}
CLUSTER = {
    "kill RabbitMQ": Fault(2, (0.2, 3.0), "broker", 15.0),
    "stop RabbitMQ": Fault(1, (0.2, 3.0), "broker", 15.0),
    "freeze RabbitMQ": Fault(2, (0.2, 6.0), "broker"),
    "cut RabbitMQ off": Fault(2, (0.2, 6.0), "broker"),
    "close the connections to RabbitMQ": Fault(2, (2.0, 2.0), "broker"),
    "purge a queue": Fault(4),
    "delete a queue": Fault(2),
    "duplicate messages": Fault(5),
    "reorder messages": Fault(4),
    "replay messages of the past": Fault(5),
    "publish garbage": Fault(1),
    "kill a Redis": Fault(3, (0.2, 6.0), "redis"),
    "kill all Redis": Fault(1, (0.2, 4.0), "redis"),
    "flush a Redis": Fault(3),
    "flush all Redis": Fault(2),
    "freeze a Redis": Fault(2, (0.2, 6.0), "redis"),
    "cut a Redis off": Fault(3, (0.2, 6.0), "redis"),
    "cut two Redis off": Fault(2, (0.2, 6.0), "redis"),
}
LOSES = ("purge a queue", "delete a queue")
PROFILES = {"embedded": WORKERS | DATABASE, "cluster": WORKERS | DATABASE | CLUSTER}
DEEDS = {
    "cancel what runs": 10,
    "cancel what waits": 4,
    "requeue": 10,
    "run now": 3,
    "reprioritise": 3,
    "requeue a letter": 4,
    "discard a letter": 2,
    "trigger": 2,
    "pause a queue": 1,
    "pause a tag": 1,
    "pause a type": 1,
    "pause a key": 1,
}


def plan(seed: int, seconds: float, profile: str, a_second: float = 20.0) -> Plan:
    """The plan of this seed: for the same arguments the same one, for ever."""
    ways = [random.Random(f"{seed} {what}") for what in ("errands", "deeds", "blows")]
    return Plan(
        profile,
        seed,
        seconds,
        a_second,
        tuple(errands(ways[0], seconds, a_second)),
        tuple(_deeds(ways[1], seconds)),
        tuple(_blows(ways[2], seconds, PROFILES[profile])),
    )


def _instants(rng: random.Random, seconds: float, least: float, most: float) -> list[float]:
    found, at = [], FIRST
    while at < seconds - LAST:
        found.append(at)
        at += rng.uniform(least, most)
    return found


def _deeds(rng: random.Random, seconds: float) -> list[Deed]:
    names, weights = list(DEEDS), list(DEEDS.values())
    return [
        Deed(at, rng.choices(names, weights)[0], rng.random(), rng.uniform(0.5, 4.0))
        for at in _instants(rng, seconds, 0.1, 1.0)
    ]


def _blows(rng: random.Random, seconds: float, faults: dict[str, Fault]) -> list[Blow]:
    names = list(faults)
    calm, losing = (
        [fault.weight * (times if name in LOSES else 1) for name, fault in faults.items()] for times in (0, OFTEN)
    )
    free: dict[str, float] = {}  # by server: from when on it may be struck again
    found = []
    for at in _instants(rng, seconds, *PAUSES):
        name = rng.choices(names, losing if at % SPAN <= LOSING else calm)[0]
        fault = faults[name]
        blow = Blow(at, name, rng.randrange(PLACES), min(rng.uniform(*fault.lasts), seconds - at), rng.random())
        if free.get(fault.at, 0.0) > at:
            continue
        if fault.at:
            free[fault.at] = at + blow.lasts + fault.rest
        found.append(blow)
    assert all(one.at < other.at for one, other in pairwise(found))
    return found
