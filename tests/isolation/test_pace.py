"""How many children the pool asks for, on a clock that stands still unless something is due: the pool as it is, and
children that only take their time."""

import asyncio
import selectors
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import tests.isolation.handlers  # noqa: F401  (registers the types)
from tests.isolation.house import claim_of
from workers.execution import Execution, prepare
from workers.isolation import pace, processes
from workers.isolation.docket import Given
from workers.leases import Held

BIRTH = 0.02  # seconds
HOURS = 10_000.0
NOTHING = 0.0002  # seconds: a job of no length
SLOTS = 100
TYPES = {NOTHING: "iso.echo", 0.008: "iso.talk", 0.05: "iso.hold", HOURS: "iso.family"}  # one for each length


class Skipping(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Instead of waiting, it says that the time has passed."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> Any:
        assert timeout is not None, "nothing will ever happen"
        self.passed += max(0.0, timeout)
        return super().select(0)


class Loop(asyncio.SelectorEventLoop):
    """Time passes while nothing is to do, and with `spend`."""

    def __init__(self) -> None:
        self._clock = Skipping()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.passed

    def spend(self, seconds: float) -> None:
        self._clock.passed += seconds


class Sleeper:
    """A child whose jobs take as long as their payload says, and that has begun with the first as soon as it has it."""

    def __init__(self, number: int, pid: int, _: list[int], owner: Any, loop: Loop) -> None:
        self.id, self.pid, self.owner, self.loop = number, pid, owner, loop
        self.docket = self
        self.jobs: deque[Given] = deque()
        self.begun = True
        self.last = self.leaving = False
        self.since = self.lasted = 0.0
        self.type = ""
        self.idle_since = loop.time()

    @property
    def execution(self) -> Execution | None:
        return self.jobs[0].execution if self.jobs else None

    def give(self, execution: Execution, *, last: bool = False, due: float = 0.0, length: float = 0.0) -> bool:
        self.loop.spend(pace.PACE)  # what the pool's thread does for a job
        self.jobs.append(Given(0, execution, due, length, self.loop.time(), b""))
        if len(self.jobs) == 1:
            self.last = last
            self._begin()
        return True

    def _begin(self) -> None:
        self.since = self.loop.time()
        self.loop.call_later(self.jobs[0].execution.held.claim.payload["seconds"], self.end)

    def take_back(self, *, but_first: bool = False) -> list[Given]:
        back = [*self.jobs][1:]
        for _ in back:
            self.jobs.pop()
        return back

    def end(self) -> None:
        claim, execution = self.jobs[0].execution.held.claim, self.jobs.popleft().execution
        self.lasted, self.type, self.idle_since = claim.payload["seconds"], claim.type, self.loop.time()
        if self.jobs:
            self._begin()
        self.owner.ended(execution, execution.not_started())
        self.owner.freed(self)


class Births:
    """One child after another, as the forkserver makes them. `asked`: when the last was asked for."""

    ready, trouble, broken = True, None, None

    def __init__(self, server: object, types: object, customer: Any, loop: Loop) -> None:
        self.customer, self.loop = customer, loop
        self.on_its_way = False
        self.asked = self.made = 0.0

    def ask(self) -> None:
        if not self.on_its_way:
            self.on_its_way, self.asked = True, self.loop.time()
            self.loop.call_later(BIRTH, self._born)

    def _born(self) -> None:
        self.on_its_way = False
        self.made += 1
        self.customer.spawned(self.made, self.made, [])


class Slots:
    """A pool, and the slots of its worker: each has another job of its kind as soon as one has ended."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.pool = processes.ProcessPool(SimpleNamespace(), self._done, [])  # type: ignore[arg-type]
        self.births: Any = self.pool._supply
        self.follow = True
        self.ended: list[tuple[float, float]] = []  # seconds that a job takes, and that it was here

    def _done(self, execution: Execution, _: object) -> None:
        seconds = execution.held.claim.payload["seconds"]
        self.ended.append((seconds, self.loop.time() - execution.held.claim.payload["came"]))
        if self.follow:
            self.loop.call_soon(self.start, seconds)

    def start(self, *each: float, type_: str | None = None, **fields: Any) -> list[Execution]:
        """Start jobs that take so long."""
        came = self.loop.time()
        told = [(type_ or TYPES[seconds], {"seconds": seconds, "came": came}) for seconds in each]
        claims = [claim_of(*one, **fields) for one in told]
        executions = [prepare(Held(claim, came + HOURS), lambda _: None) for claim in claims]
        self.pool._start_all(executions)
        return executions

    def run(self, seconds: float) -> None:
        """Let so much time pass."""
        self.loop.run_until_complete(asyncio.sleep(seconds))

    @property
    def children(self) -> int:
        return len(self.pool.children)

    @property
    def busy(self) -> list[float]:
        """What the children are at."""
        return [c.execution.held.claim.payload["seconds"] for c in self.pool._children.values() if c.execution]


@pytest.fixture
def slots(monkeypatch: pytest.MonkeyPatch):
    loop = Loop()
    monkeypatch.setattr(processes, "new_loop", lambda _: loop)
    monkeypatch.setattr(processes, "Supply", Births)
    monkeypatch.setattr(processes, "Child", Sleeper)
    yield Slots(loop)
    loop.close()


def test_jobs_of_no_length_have_few_children_however_many_wait(slots):
    slots.start(*[NOTHING] * SLOTS)
    slots.run(2)
    assert len(slots.ended) > 2000
    assert slots.children < 10


def long_jobs(slots: Slots) -> None:
    slots.start(*[HOURS] * 49)


def jobs_of_their_own(slots: Slots) -> None:
    slots.start(*[HOURS] * 49, lost_count=1)


def children_that_leave(slots: Slots) -> None:
    slots.start(*[HOURS] * 49)
    slots.run(2)
    for child in slots.pool._children.values():
        child.jobs.clear()
        child.leaving = True


@pytest.mark.parametrize("kept", [long_jobs, jobs_of_their_own, children_that_leave])
def test_children_that_take_no_other_job_soon_do_not_stand_for_ones_that_do(slots, kept: Callable[[Slots], None]):
    kept(slots)
    slots.run(2)
    assert slots.children == 49
    slots.start(*[0.008] * 51)
    slots.run(2)
    # As many as such jobs have without the others: so many that this thread has no rest.
    assert slots.children - 49 >= pace.FEW + 0.008 / pace.PACE
    assert max(here for seconds, here in slots.ended[-500:] if seconds == 0.008) < 0.02


def test_children_of_long_jobs_do_not_add_to_those_of_jobs_of_no_length(slots):
    slots.start(*[HOURS] * 49)
    slots.run(2)
    slots.start(*[NOTHING] * 51)
    slots.run(2)
    assert slots.children < 49 + 10


def test_behind_jobs_of_no_length_none_waits_longer_than_its_place_allows(slots):
    slots.start(*[NOTHING] * 50, *[0.05] * 50)
    slots.run(3)
    # What waits there was one of at most so many; then a child was born for it.
    longest = pace.FLOW + SLOTS * pace.BEHIND + BIRTH
    assert all(here - seconds < longest for seconds, here in slots.ended if here > 1)
    before = len(slots.ended)
    slots.run(1)
    assert len(slots.ended) - before > 0.9 / pace.BEHIND


@pytest.fixture
def idle(slots) -> Slots:
    """Children that have ended jobs of no length a moment ago, and no more jobs."""
    slots.start(*[NOTHING] * 40)
    slots.run(1)
    slots.follow = False
    slots.run(0.01)
    assert not slots.busy
    assert slots.children > pace.FEW
    return slots


def test_a_child_is_asked_for_when_something_has_waited_though_nothing_ends(idle):
    children, came = idle.children, idle.loop.time()
    idle.start(*[HOURS] * children, HOURS)
    assert list(idle.pool._rota.waiting.values()) == [pytest.approx(came + pace.FLOW)]  # those before it did not wait
    idle.run(pace.FLOW / 2)
    assert idle.births.asked < came
    idle.run(1)
    assert idle.births.asked == pytest.approx(came + pace.FLOW, abs=children * pace.PACE)
    assert idle.children == children + 1


def test_ends_since_then_do_not_put_that_off(idle, monkeypatch):
    monkeypatch.setattr(pace, "BEHIND", 0.0)
    children, came = idle.children, idle.loop.time()
    ends = len(idle.ended)
    idle.start(*[HOURS] * (children - 1), *[NOTHING] * 20, HOURS, HOURS)
    idle.run(pace.FLOW * 0.7)
    assert len(idle.ended) - ends == 20
    assert idle.pool._rota.pace.flows_until > came + pace.FLOW * 1.2
    assert idle.births.asked < came
    idle.run(1)
    assert idle.births.asked == pytest.approx(came + pace.FLOW, abs=children * pace.PACE)


def test_for_a_job_that_its_child_did_not_begin_another_is_asked_for_at_once(idle):
    given = idle.start(*[HOURS] * idle.children, HOURS)
    child = next(iter(idle.pool._children.values()))
    not_begun, child.leaving = child.jobs.popleft().execution, True
    idle.pool.not_begun(not_begun, stillborn=False)
    idle.pool._rota.pump()
    assert idle.births.asked == idle.loop.time()
    assert list(idle.pool._rota.waiting) == [not_begun, given[-1]]


@pytest.mark.parametrize(
    ("ago", "last", "turn"),
    [(0.0, False, True), (0.021, False, True), (0.03, False, False), (0.0, True, False)],
    ids=["given a moment ago", "with time for its job, and for its turn", "longer than that", "nothing after it"],
)
def test_a_child_turns_that_will_be_free_in_a_moment(ago: float, last: bool, turn: bool):
    now, long = 100.0, 0.004
    freed = SimpleNamespace(execution=None, leaving=False, lasted=long, type="any", idle_since=now)
    docket = SimpleNamespace(last=last, since=now - ago)
    others = [SimpleNamespace(execution=object(), leaving=False, docket=docket) for _ in range(40)]
    seen: Any = pace.Pace()
    for _ in range(10):  # that its jobs are long is believed after some
        seen.freed(freed, [freed, *others], 41)
    seen.flows_until = 0.0
    seen.freed(freed, [freed, *others], 41)
    assert (seen.flows_until == now + pace.FLOW) is turn


def test_a_job_that_a_buried_child_had_not_begun_gets_another_though_nothing_else_happens(slots, monkeypatch):
    def died(self: Sleeper, _: object) -> None:
        self.owner.not_begun(self.jobs.popleft().execution, stillborn=False)

    monkeypatch.setattr(Sleeper, "alive", False, raising=False)
    monkeypatch.setattr(Sleeper, "died", died, raising=False)
    slots.follow = False
    slots.start(HOURS)
    slots.run(1)
    assert (slots.births.made, slots.busy) == (1, [HOURS])

    slots.pool.abandoned(SimpleNamespace(kill=lambda: True, pid=1))
    slots.run(processes.ORPHANS + 1)

    assert (slots.births.made, slots.busy) == (2, [HOURS])
