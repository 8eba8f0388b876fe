"""Which jobs a storm asks for, of every kind, from the seed alone."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

ISOLATIONS = ("async", "thread", "process")
TAG = "storm"  # that people pause
UNIQUE = "unique"
QUEUES = ("default", "critical")


@dataclass(frozen=True, slots=True)
class Order:
    """One job: what `enqueue` is told, with `name` as its origin. `parents` are names of the same errand."""

    name: str
    type: str
    payload: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Errand:
    """What a client asks for `at` so many seconds: its orders in one transaction, by one of DOORS."""

    at: float
    kind: str
    door: str
    orders: tuple[Order, ...]


# How a client asks, with a weight: by itself; in a transaction with more; in one that is rolled back; repeated under
# its key until it is answered; with the answer to the COMMIT lost; with the COMMIT lost.
DOORS = {"alone": 55, "together": 17, "rolled_back": 8, "repeated": 10, "answer_lost": 5, "commit_lost": 5}

type Made = tuple[str, dict[str, Any], dict[str, Any]]  # type, payload, options


def _short(rng: random.Random) -> Made:
    options = {"priority": rng.randint(-10, 10)} if rng.random() < 0.2 else {}
    if rng.random() < 0.25:
        options |= {"queue": "critical"}
    if rng.random() < 0.2:
        options |= {"tags": [TAG]}
    return f"storm.{rng.choice(ISOLATIONS)}", {"hold": rng.choice((0.0, 0.0, rng.uniform(0, 0.2)))}, options


def _long(rng: random.Random) -> Made:
    type_ = f"storm.{rng.choice((*ISOLATIONS, 'fresh'))}"
    return type_, {"hold": rng.uniform(0.5, 4.0), "deaf": rng.random() < 0.5}, {}


def _failing(rng: random.Random) -> Made:
    return "storm.flaky", {"fails": 99, "permanent": rng.random() < 0.5}, {"max_attempts": 2}


def _retrying(rng: random.Random) -> Made:
    type_ = rng.choice(("storm.flaky", "storm.thread", "storm.process"))
    return type_, {"fails": rng.randint(1, 3), "hold": rng.uniform(0, 0.1)}, {}


def _snoozing(rng: random.Random) -> Made:
    return f"storm.{rng.choice(ISOLATIONS)}", {"snooze": rng.uniform(0.2, 3.0)}, {}


def _keyed(rng: random.Random) -> Made:
    limit = rng.randint(1, 3)
    key = f"key-{limit}-{rng.randint(1, 2)}"
    payload = {"hold": rng.uniform(0, 0.3), "deaf": rng.random() < 0.3}
    return f"storm.{rng.choice(ISOLATIONS)}", payload, {"concurrency_key": key, "concurrency_limit": limit}


def _limited(rng: random.Random) -> Made:
    return "storm.limited", {"hold": rng.uniform(0, 0.3)}, {}


def _rated(rng: random.Random) -> Made:
    return "storm.rated", {}, {}


def _scheduled(rng: random.Random) -> Made:
    return f"storm.{rng.choice(ISOLATIONS)}", {"hold": rng.uniform(0, 0.1)}, {"delay": rng.uniform(0.3, 10.0)}


def _unique(rng: random.Random) -> Made:
    return "storm.async", {"hold": rng.uniform(0, 0.5)}, {"unique_key": f"unique-{rng.randint(1, 5)}"}


def _once(rng: random.Random) -> Made:
    return f"storm.once.{rng.choice(ISOLATIONS)}", {"hold": rng.uniform(0, 1.5), "deaf": rng.random() < 0.4}, {}


def _late(rng: random.Random) -> Made:
    """Longer than it may take."""
    return f"storm.{rng.choice(ISOLATIONS)}", {"hold": 5.0}, {"timeout": rng.uniform(0.3, 1.0), "max_attempts": 1}


def _dying(rng: random.Random) -> Made:
    return "storm.process", {"dies": True, "hold": rng.uniform(0, 0.2)}, {}


# Kind -> how it is made, its weight, and how many come at once.
KINDS: dict[str, tuple[Callable[[random.Random], Made], int, tuple[int, int]]] = {
    "short": (_short, 34, (1, 4)),
    "long": (_long, 16, (1, 1)),
    "failing": (_failing, 3, (1, 1)),
    "retrying": (_retrying, 5, (1, 1)),
    "snoozing": (_snoozing, 4, (1, 1)),
    "keyed": (_keyed, 9, (1, 3)),
    "limited": (_limited, 4, (1, 4)),
    "rated": (_rated, 3, (2, 8)),
    "scheduled": (_scheduled, 6, (1, 2)),
    UNIQUE: (_unique, 5, (1, 1)),
    "at most once": (_once, 7, (1, 1)),
    "too slow": (_late, 2, (1, 1)),
    "dying": (_dying, 1, (1, 1)),
}
FAMILY = "family"
FAMILY_WEIGHT = 3


def _family(rng: random.Random, name: str) -> tuple[Order, ...]:
    """A top, two in the middle, one below that waits for both, and one of whom nobody's failure is the end."""
    sizes = [rng.uniform(0, 0.3) for _ in range(5)]
    failing = rng.random() < 0.25

    def one(n: int, parents: tuple[int, ...], payload: dict[str, Any], **options: Any) -> Order:
        type_ = f"storm.{rng.choice(ISOLATIONS)}"
        return Order(
            f"{name}.{n}", type_, {"hold": sizes[n], **payload}, options, tuple(f"{name}.{p}" for p in parents)
        )

    fault = {"fails": 99, "permanent": True} if failing else {}
    return (
        one(0, (), {}),
        one(1, (0,), {}),
        one(2, (0,), fault),
        one(3, (1, 2), {}),
        one(4, (2, 3), {}, on_parent_failure="run"),
    )


def errands(rng: random.Random, seconds: float, a_second: float) -> Iterator[Errand]:
    """Those of so many seconds, by their instants; about `a_second` jobs come each second."""
    names = [*KINDS, FAMILY]
    weights = [weight for _, weight, _ in KINDS.values()] + [FAMILY_WEIGHT]
    sizes = [(few + many) / 2 for _, _, (few, many) in KINDS.values()] + [5.0]
    mean = sum(w * s for w, s in zip(weights, sizes, strict=True)) / sum(weights)
    at, number = 0.0, 0
    while True:
        at += rng.expovariate(a_second / mean)
        if at >= seconds:
            return
        kind = rng.choices(names, weights)[0]
        door = rng.choices(list(DOORS), list(DOORS.values()))[0]
        number += 1
        if kind == FAMILY:
            yield Errand(at, kind, "together" if door == "alone" else door, _family(rng, str(number)))
            continue
        make, _, (few, many) = KINDS[kind]
        made = [make(rng) for _ in range(rng.randint(few, many))]
        orders = tuple(
            Order(f"{number}.{n}", type_, payload, options) for n, (type_, payload, options) in enumerate(made)
        )
        yield Errand(at, kind, door, orders)
