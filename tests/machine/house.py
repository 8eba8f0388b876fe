"""Where the verbs meet: who runs which, what was told to whom, and what the tables said after the last commit."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from tests.laws.guards import BrokenPromise, keep
from tests.machine.acts import Act
from tests.machine.judge import Judge
from tests.machine.sessions import Crew, Is, Session
from tests.machine.world import World, look
from tests.transitions.ear import Ear

GATES = "turno_gates"


class Held(NamedTuple):
    """An execution whose claim was answered to a worker."""

    job: UUID
    token: UUID
    worker: UUID


@dataclass
class Open:
    """A session and what it is in the middle of."""

    session: Session
    act: Act
    seen: int  # of its commits


class House:
    """Three workers, some sessions, one leader's ear. `begin` and `step` judge each commit as it comes."""

    def __init__(self, crew: Crew, ear: Ear) -> None:
        self.crew, self.ear = crew, ear
        self.ear.heard()
        self.judge = Judge()
        self.workers = [uuid4() for _ in range(3)]
        self.corpses: list[UUID] = []
        self.held: list[Held] = []
        self.old: list[tuple[UUID, UUID]] = []  # (job, token) of messages
        self.told: set[str] = set()  # gates that the leader has heard of
        self.words_lost = False  # somebody died who had been told of a gate
        self.born: set[UUID] = set()
        self.gone: set[UUID] = set()
        self.waits = 0  # looks at which somebody was seen waiting for a lock
        self.open: list[Open] = []
        self.done: list[str] = []
        self.world: World = look(crew.watcher)

    def free(self) -> Session | None:
        """A session that has nothing to do."""
        return next((session for session in self.crew.sessions if session.state is Is.IDLE), None)

    def begin(self, act: Act, *, through: bool = False, free: bool = False) -> Open | None:
        """Call a verb: it stops before its first statement, or goes `through` as far as it can, or is `free` and stops
        nowhere: then all its commits are judged together."""
        session = self.free()
        if session is None:
            return None
        self.done.append(act.verb)
        act.begun = self.world
        using = session.using
        one = Open(session, act, session.commits)
        self.open.append(one)
        session.begin(lambda: act.call(using), free=free)
        self._after(one)
        if through:
            self.run(one)
        return one

    def step(self, one: Open) -> None:
        """Its next statement."""
        one.session.step()
        self._after(one)

    def run(self, one: Open) -> None:
        """All its statements, up to one that has to wait for somebody."""
        while one in self.open and one.session.state is Is.STOPPED:
            self.step(one)

    def run_all(self) -> None:
        """Everybody to the end."""
        while self.open:
            ready = [one for one in self.open if one.session.state is Is.STOPPED]
            keep(ready, "all wait for each other")
            self.run(ready[0])

    def kill(self, one: Open, *, late: bool) -> None:
        """The connection of a verb is cut where it is: between two statements, or before the COMMIT is answered."""
        self.done.append(f"kill {one.act.verb}")
        if one.session.state is Is.BLOCKED:
            self.crew.terminate(one.session)
        else:
            one.session.kill(after_commit=late)
        if one.act.verb in ("leader", "sweep"):
            self.words_lost = True
        self._after(one)

    def do(self, act: Act) -> Any:
        """From its beginning to its end, for which nobody is in the way; its answer."""
        one = self.begin(act, free=True)
        assert one is not None
        keep(one not in self.open, f"{act.verb} waits for nobody")
        return one.session.answer

    def ready(self, number: int, *, blocked: bool = False) -> Open | None:
        """One of those that may be stepped (`blocked`: or waits for a lock)."""
        states = (Is.STOPPED, Is.BLOCKED) if blocked else (Is.STOPPED,)
        found = [one for one in self.open if one.session.state in states]
        return found[number % len(found)] if found else None

    def claims_in_flight(self) -> set[UUID | None]:
        """Of which the answer has not come."""
        return {one.act.claim_id for one in self.open}

    def _after(self, moved: Open) -> None:
        self.crew.calm()
        self.waits += any(one.session.state is Is.BLOCKED for one in self.open)
        if moved.session.commits != moved.seen:
            moved.seen = moved.session.commits
            self._judge(moved.act)
        for one in [one for one in self.open if one.session.state is Is.IDLE]:
            self.open.remove(one)
            self._ended(one)

    def _judge(self, act: Act) -> None:
        before, self.world = self.world, look(self.crew.watcher)
        gone = set(act.gone)
        self.judge.commit(act, before, self.world)
        self.born |= self.world.jobs.keys()
        self.gone |= act.gone - gone
        keep(self.born == self.world.jobs.keys() | self.gone, "a job is lost")
        self.told |= {payload for channel, payload in self.ear.heard() if channel == GATES}
        self.old += [
            (job["id"], job["dispatch_id"])
            for job in self.world.of_state("Enqueued")
            if (job["id"], job["dispatch_id"]) not in self.old
        ]

    def _ended(self, one: Open) -> None:
        session, act = one.session, one.act
        if session.dead:
            return
        if session.error is not None and not isinstance(session.error, act.errors):
            if isinstance(session.error, (AssertionError, BrokenPromise)):
                raise session.error
            raise BrokenPromise(f"{act.verb} failed: {session.error!r}") from session.error
        if session.error is None:
            act.answered(session.answer)

    def pass_time(self, sql: str, parameters: Iterable[Any] = ()) -> None:
        """Instants that are to come have come; what somebody has locked stays."""
        self.crew.watcher.execute(sql, list(parameters))
        self.world = look(self.crew.watcher)


Making = Callable[[House, int, int], Act | None]
