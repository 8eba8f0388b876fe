"""When a failed attempt is tried again: a pure function, with the randomness passed in.

Exponential backoff with jitter; the cap is applied before the power (as an exponent bound), so that no attempt
number overflows.
"""

import math
from dataclasses import dataclass
from random import Random

SHORTEST = 0.001  # seconds: a shorter base is taken for this, so that the exponent stays small


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Attempts allowed and the curve between them; `base`, `cap` in seconds, `jitter` a fraction (0.2 = ±20 %)."""

    max_attempts: int = 5
    base: float = 15.0
    factor: float = 2.0
    cap: float = 900.0
    jitter: float = 0.2


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again after `delay` seconds."""

    delay: float


@dataclass(frozen=True, slots=True)
class Dead:
    """No attempt is left."""


def backoff(policy: RetryPolicy, failures: int, rng: Random) -> float:
    """Seconds to wait after the `failures`-th failure (1 = the first): base · factor^(failures-1), capped, jittered.

    The jitter is applied last and may exceed the cap by its fraction; the result is never negative.
    """
    if policy.base <= 0:
        return 0.0
    base = max(policy.base, SHORTEST)
    exponent = max(0, failures - 1)
    if policy.factor > 1 and policy.cap > base:
        exponent = min(exponent, math.ceil(math.log(policy.cap / base, policy.factor)))
    elif policy.factor > 1:
        exponent = 0
    delay = min(policy.cap, base * policy.factor**exponent)
    return max(0.0, delay * (1 + policy.jitter * rng.uniform(-1, 1)))


def decide(policy: RetryPolicy, attempts_used: int, rng: Random) -> Retry | Dead:
    """What follows a failure when `attempts_used` attempts are used, this one included."""
    if attempts_used >= policy.max_attempts:
        return Dead()
    return Retry(backoff(policy, attempts_used, rng))


@dataclass(frozen=True, slots=True)
class Again:
    """Back to the queue at once."""


def after_loss(
    policy: RetryPolicy, attempts_used: int, lost_count: int, lost_limit: int, rng: Random
) -> Again | Retry | Dead:
    """What follows the loss of a worker, when this loss is the `lost_count`-th and `attempts_used` includes it.

    The first loss returns the job at once; later ones wait, longer each time; Dead at whichever limit comes first.
    """
    if attempts_used >= policy.max_attempts or lost_count >= lost_limit:
        return Dead()
    return Again() if lost_count <= 1 else Retry(backoff(policy, lost_count - 1, rng))
