"""The state machine: Hypothesis draws verbs, whose transaction takes the next step, who dies, and when time passes."""

from collections.abc import Callable
from typing import Any, ClassVar
from uuid import uuid4

from hypothesis import HealthCheck, note
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from hypothesis.strategies import integers, lists, sampled_from, tuples

from tests.machine import errands, verbs
from tests.machine.acts import Act
from tests.machine.calm import quiet, to_the_end
from tests.machine.house import House
from tests.machine.sessions import Crew, Is
from tests.machine.verbs import ENDINGS, QUEUES, TYPES
from tests.transitions.ear import Ear
from tests.transitions.recurring import make_recurring
from tests.transitions.rows import ahead, empty_tables, execute, make_worker

UNHURRIED = {"deadline": None, "database": None, "print_blob": True, "suppress_health_check": list(HealthCheck)}
ALIASES = ("engine", "default", "engine")
MORE_TABLES = ("workers", "circuits", "recurring_jobs", "queues")

type Made = Callable[[House, int, int, int], Act | None]  # with three numbers: who, which, how many

THROUGH = 99  # statements: up to its end
number = integers(0, 5)
numbers = tuples(integers(0, 2), number, integers(1, 3))
far = sampled_from([THROUGH, 1, 3, 6, THROUGH])
# Most are of one queue and share few keys: they meet.
OF_KIND, OF_KEY = [0, 0, 1, 1, 2, 4], [1, 0, 2, 1, 3]
spec = tuples(sampled_from(OF_KIND), sampled_from(OF_KEY), integers(-1, 1), number, number)


def _settles(house: House, _who: int, which: int, many: int) -> Act | None:
    names = sorted(ENDINGS)
    return verbs.settle(house, -1 - which // 3, [names[(which * 5 + n) % len(names)] for n in range(many)])


def _inserts(house: House, who: int, which: int, many: int) -> Act:
    specs = [
        (OF_KIND[(which + n) % 6], OF_KEY[(who + which + n) % 5], n - 1, (who * 2 + n) % 6, which) for n in range(many)
    ]
    return errands.insertion(house, specs)


# How often each is drawn, and how it is made.
VERBS: dict[str, tuple[int, Made]] = {
    "insert": (6, _inserts),
    "search": (8, lambda house, who, which, many: verbs.claim_next(house, who, many, which // 4)),
    "message": (6, lambda house, who, which, many: verbs.claim(house, who, -1 - which, many)),
    "settle": (6, _settles),
    "succeed": (5, lambda house, _, which, many: verbs.settle(house, -1 - which // 2, ["success"] * many)),
    "release": (1, lambda house, _, which, many: verbs.release(house, -1 - which, many)),
    "renew": (1, lambda house, _, which, many: verbs.owner_says("renew")(house, which, many)),
    "begin": (1, lambda house, _, which, many: verbs.owner_says("begin")(house, which, many)),
    "note": (1, lambda house, _, which, many: verbs.owner_says("note")(house, which, many)),
    "strays": (1, lambda house, who, _which, _many: verbs.strays(house, who)),
    "gates": (4, lambda house, *_: errands.leader(house)),
    "promote": (2, lambda house, *_: errands.promote(house)),
    "expire": (2, lambda house, *_: verbs.expire(house)),
    "take back": (2, lambda house, who, *_: verbs.taken_back(house, who)),
    "sweep": (1, lambda house, *_: errands.sweep(house)),
    "pauses": (1, lambda house, *_: errands.turn_pauses(house)),
    "circuits": (1, lambda house, *_: errands.turn_circuits(house)),
    "trip": (1, lambda house, *_: errands.trip(house)),
    "unknown types": (1, lambda house, *_: errands.unknown_types(house)),
    "purge": (1, lambda house, _, which, _many: errands.purge(house, which)),
    "forget keys": (1, lambda house, *_: errands.forget_keys(house)),
    "fire": (1, lambda house, *_: errands.fire(house)),
    "cancel": (2, lambda house, _, which, many: errands.cancel(house, which, many)),
    "requeue": (2, lambda house, _, which, many: errands.requeue(house, which, many)),
    "run now": (1, lambda house, _, which, many: errands.run_now(house, which, many)),
    "delete": (1, lambda house, _, which, many: errands.delete(house, which, many)),
    "priority": (1, lambda house, _, which, many: errands.reprioritise(house, which, many)),
    "discard": (1, lambda house, _, which, many: errands.discard(house, which, many)),
    "defer": (1, lambda house, _, which, many: errands.defer(house, -1 - which, many)),
    "pause": (1, lambda house, _, which, _many: errands.pause(house, which)),
    "resume": (2, lambda house, _, which, _many: errands.resume(house, which)),
    "limits": (2, lambda house, who, which, _many: errands.set_limits(house, which % 4, max(0, who - 1))),
}
DRAWN = [name for name, (often, _) in VERBS.items() for _ in range(often)]
YEARLY = "0 0 1 1 *"
PASSES = {"due": errands.DUE_NOW, "probes": errands.PROBES_DUE, "instants": errands.FIRES_NOW}


def clean() -> None:
    """What a machine has committed goes."""
    empty_tables()
    for table in MORE_TABLES:
        execute(f"DELETE FROM turno.{table}")


def furnish() -> None:
    """A live worker of the queues, and a recurring job."""
    make_worker(queues=dict.fromkeys(QUEUES, 9), types=list(TYPES), seen_at=ahead(86400))
    execute("INSERT INTO turno.job_types (name, last_served_at) VALUES ('plain', now())")
    make_recurring(type="plain", overlap="queue", cron=YEARLY, next_run_at=ahead(86400), queue=QUEUES[0])


class Machine(RuleBasedStateMachine):
    """Three connections, three workers, a leader, people; each rule is one verb, one step, one death or one hour.

    No rule has a precondition: what is drawn depends on nothing that the database says, so the same is drawn anywhere.
    """

    crew: ClassVar[Crew]
    ear: ClassVar[Ear]

    def __init__(self) -> None:
        super().__init__()
        clean()
        furnish()
        self.house = House(self.crew, self.ear)
        self.broken = False

    def _do(self, make: Callable[[], Act | None], far: int) -> None:
        """Begin a verb and let it go so many statements far. Where no session is free the first one that can comes to
        its end before."""

        def work() -> None:
            if self.house.free() is None and (one := self.house.ready(0)) is not None:
                self.house.run(one)
            if self.house.free() is None or (act := make()) is None:
                return
            one = self.house.begin(act)
            for _ in range(far):
                if one in self.house.open and one.session.state is Is.STOPPED:
                    self.house.step(one)

        self._guarded(work)

    def _guarded(self, work: Callable[[], Any]) -> None:
        """After the first broken promise nothing more is asked of it."""
        try:
            work()
        except BaseException:
            self.broken = True
            note(f"done: {self.house.done}")
            raise

    @initialize(specs=lists(spec, min_size=2, max_size=4))
    def first_jobs(self, specs: list[tuple[int, ...]]) -> None:
        self._do(lambda: errands.insertion(self.house, specs), THROUGH)

    @rule(what=sampled_from(DRAWN), numbers=numbers, far=far)
    def verb(self, what: str, numbers: tuple[int, int, int], far: int) -> None:
        self._do(lambda: VERBS[what][1](self.house, *numbers), far)

    @rule(what=sampled_from(DRAWN), numbers=numbers, far=far)
    def another(self, what: str, numbers: tuple[int, int, int], far: int) -> None:
        self._do(lambda: VERBS[what][1](self.house, *numbers), far)

    @rule(which=integers(0, 2), times=integers(1, 12))
    def step(self, which: int, times: int) -> None:
        """One that has stopped goes on for so many statements, or the others in its place when it has to wait."""
        for _ in range(times):
            if (one := self.house.ready(which)) is not None:
                self._guarded(lambda one=one: self.house.step(one))

    @rule(what=sampled_from([*sorted(PASSES), "due", "lease", "lease", "cut", "cut late", "die"]), who=integers(0, 2))
    def fate(self, what: str, who: int) -> None:
        """Time passes, or somebody dies."""
        if what in PASSES:
            self._guarded(lambda: self.house.pass_time(PASSES[what]))
        elif what == "lease":
            self._guarded(lambda: self.house.pass_time(errands.LEASES_OVER, [self.house.workers[who]]))
        elif what == "die":
            self._guarded(lambda: self._die(who))
        elif (one := self.house.ready(who, blocked=True)) is not None:
            self._guarded(lambda: self.house.kill(one, late=what == "cut late"))

    def _die(self, who: int) -> None:
        """A worker is proven dead: whatever it was in the middle of is cut, and it writes nothing more."""
        worker = self.house.workers[who]
        while mine := [one for one in self.house.open if one.act.worker == worker]:
            self.house.kill(mine[0], late=False)
        self.house.held = [held for held in self.house.held if held.worker != worker]
        self.house.corpses.append(worker)
        self.house.workers[who] = uuid4()

    def teardown(self) -> None:
        """All must come to its end, whatever was drawn."""
        try:
            if not self.broken:
                note(f"done: {self.house.done}")
                quiet(self.house)
                to_the_end(self.house)
        finally:
            self.crew.drop()
