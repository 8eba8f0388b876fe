"""A small checker of models: every state that can be reached is visited once, those a step away first.

So the first promise that is found broken has the shortest interleaving. A step is either what somebody does as the
protocol tells him to, or a fault, which may happen or not. A state without steps of the first kind is one of rest.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import process_time
from typing import Any, NamedTuple

type State = dict[str, Any]
MOST = 400_000  # states of one model; what has more is not a model that a run of the tests can afford


class Step(NamedTuple):
    """What can happen next. `stands_for`: a statement or function of `jobs.transitions` ("claim.CLAIM_BY_ID"), the
    dotted name of another of the engine, or nothing where the world does it."""

    stands_for: str
    label: str
    after: State
    fault: bool = False


class Model:
    """A model's guards and faults are class attributes: True, or how often the fault may happen."""

    crashes: int = 0

    def __init__(self, **flags: Any) -> None:
        for name, value in flags.items():
            if not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} has no {name!r}")
            setattr(self, name, value)

    def begin(self) -> State:
        """The first state."""
        raise NotImplementedError

    def steps(self, now: State) -> Iterator[Step]:
        """Everything that can happen in this state."""
        raise NotImplementedError

    def broken(self, now: State) -> str | None:
        """The promise that this state breaks, as a sentence."""
        raise NotImplementedError

    def stuck(self, now: State) -> str | None:
        """Why nothing may rest in this state, as a sentence."""
        raise NotImplementedError


@dataclass(frozen=True)
class Verdict:
    """What a search has found: nothing, or the broken promise and the steps that lead there. `met`: all that was stood
    for by a step; `seconds` of this process."""

    states: int
    seconds: float
    sentence: str | None = None
    trace: tuple[str, ...] = ()
    complete: bool = True
    met: frozenset[str] = field(default=frozenset())

    @property
    def holds(self) -> bool:
        return self.complete and self.sentence is None


def then(now: State, **changes: Any) -> State:
    """The state after these changes."""
    return now | changes


def check(model: Model, *, most: int = MOST) -> Verdict:
    """Search all that can happen in the model, `most` states of it."""
    begun = process_time()
    first = model.begin()
    names = tuple(first)
    start = tuple(first.values())
    came_from: dict[tuple[Any, ...], tuple[tuple[Any, ...], str] | None] = {start: None}
    todo = deque([start])
    met: set[str] = set()

    def verdict(sentence: str | None = None, at: tuple[Any, ...] | None = None, *, complete: bool = True) -> Verdict:
        trace: list[str] = []
        while at is not None and (before := came_from[at]) is not None:
            at, label = before
            trace.append(label)
        seconds = process_time() - begun
        return Verdict(len(came_from), seconds, sentence, tuple(reversed(trace)), complete, frozenset(met))

    while todo:
        here = todo.popleft()
        now = dict(zip(names, here, strict=True))
        if sentence := model.broken(now):
            return verdict(sentence, here)
        rests = True
        for stands_for, label, after, fault in model.steps(now):
            rests = rests and fault
            met.add(stands_for)
            there = tuple(after.values())
            if there not in came_from:
                assert len(there) == len(names), f"{label}: a name that is not in the first state"
                came_from[there] = (here, label)
                todo.append(there)
        if rests and (sentence := model.stuck(now)):
            return verdict(sentence, here)
        if len(came_from) > most:
            return verdict(complete=False)
    return verdict()
