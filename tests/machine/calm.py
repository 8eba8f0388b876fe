"""After the storm: nobody is in the middle of anything, nobody waits at an open gate, every job comes to its end."""

from jobs import invariants
from jobs.states import FINAL, State
from tests.kit import gatecheck
from tests.laws.guards import keep
from tests.machine import errands, verbs
from tests.machine.house import House
from tests.machine.verbs import ODD, TYPES
from tests.transitions.rows import execute

ROUNDS = 60
KNOWS_ALL = "UPDATE turno.workers SET types = types || %s::text"


def quiet(house: House) -> None:
    """All verbs end, the leader does what he was told, and then no gate is open that somebody waits at.

    The sweep finds nothing, unless somebody died who had been told.
    """
    house.run_all()
    turn(house)
    if house.words_lost:
        house.do(errands.sweep(house))
        turn(house)
    lies = gatecheck.lies()
    keep(lies == [], f"somebody waits for what is open: {lies}")
    found = house.do(errands.sweep(house))
    keep(found == 0, f"the sweep finds {found}, and nobody died")
    keep_invariants(attended=False)


def turn(house: House) -> None:
    """What the leader does all the time."""
    for act in (errands.turn_pauses, errands.unknown_types, errands.turn_circuits, errands.turn_pauses):
        house.do(act(house))
    while house.told:
        house.do(errands.leader(house))


def to_the_end(house: House) -> None:
    """Everything that was held back is let go; by the verbs alone, without a sweep, every job becomes final."""
    for scope, value, _ in sorted(house.world.pauses):
        number = sorted((s, v) for s, v, _ in house.world.pauses).index((scope, value))
        house.do(errands.resume(house, number))
    house.do(errands.set_limits(house, 0, 0))
    execute(KNOWS_ALL, ODD)
    house.do(errands.fire(house))
    for _round in range(ROUNDS):
        if not house.world.of_state(*(set(State) - FINAL)):
            break
        one_round(house)
    left = [(job["state"], job["waiting_for"], job["gate"]) for job in house.world.of_state(*(set(State) - FINAL))]
    keep(left == [], f"jobs that come to no end: {left}")
    keep(house.world.slots == [], "slots are left of jobs that have ended")
    keep_invariants(attended=True)


def keep_invariants(*, attended: bool) -> None:
    """What the product itself says of the three promises; `attended`: also what only holds when all has been done."""
    found = invariants.check(whole=True, attended=attended, margin=0.0)
    keep(found == [], f"an invariant is broken: {[str(one) for one in found]}")


def one_round(house: House) -> None:
    """Time passes, everything that is held ends, everything that can be is claimed."""
    while house.held:
        act = verbs.settle(house, 0, ["success"] * len(house.held))
        assert act is not None
        house.do(act)
        house.held = [held for held in house.held if (held.job, held.token) not in act.named]
    for worker in {job["worker_id"] for job in house.world.of_state("Processing")}:
        house.pass_time(errands.LEASES_OVER, [worker])
    house.pass_time(errands.DUE_NOW)
    house.pass_time(errands.PROBES_DUE)
    house.do(verbs.expire(house))
    house.do(errands.promote(house))
    house.do(errands.fire(house))
    turn(house)
    for queue in (0, 1):
        house.do(verbs.claim_next(house, queue, 8, queue, (*TYPES, ODD)))
