"""Concurrency keys and limits of types: claims that meet, a slot that comes free while somebody parks, and what a woken
job has in its hand."""

from contextlib import suppress
from uuid import UUID

from jobs import transitions
from jobs.ids import new_id
from jobs.outcomes import Claim
from jobs.ratelimit import Limits
from jobs.transitions.keys import KEY
from tests.laws.guards import keep
from tests.laws.scenarios_parents import meanwhile
from tests.laws.scenarios_together import both
from tests.laws.scenarios_together import waits as waits_for_a_lock
from tests.races.two import Other, holding, rival, together
from tests.transitions import rows
from tests.transitions.ear import Ear
from tests.transitions.edges import CALLER
from tests.transitions.flow import TYPE, K, end, enqueue, held, keyed, open_told, running, search
from tests.transitions.rows import execute, make_worker

ENGINE = "engine"
TOO_MANY = "two jobs of a key run that lets one run"
EACH_OTHER = "two jobs wait for each other for ever, each holds what the other needs"
FOR_EVER = "a job waits for ever: its key is free"


def one_runs(count: int) -> tuple[Claim, list[UUID]]:
    """So many jobs of the key: the claim of the first, which runs, and the others, which are parked."""
    made = keyed(count)
    (claim,) = search(count)
    keep(claim.id == made[0] and running("k") == 1, TOO_MANY)
    return claim, made[1:]


def claimed_by_two() -> None:
    """Two workers search at once, each finds one of two jobs of a key that is known."""
    claim, _ = one_runs(1)
    end(claim)
    keyed(2)
    both(lambda using: search(1, using=using))
    keep(running("k") == 1, TOO_MANY)


def parked_while_the_last_one_ends() -> None:
    """Whoever parks finds the key full, whoever ends finds nobody that waits."""
    keyed(1)
    (claim,) = search(1)
    keyed(1)
    meanwhile(lambda: end(claim), lambda: search(1, using=ENGINE))
    keep(running("k") == 1 or held(KEY, "k"), FOR_EVER)


def killed_after_an_end() -> None:
    """Whoever ended the one before is killed when that is committed; everybody else goes on."""
    claim, (second,) = one_runs(2)
    end(claim)
    keep([found.id for found in search(1)] == [second], FOR_EVER)


def cancelled_with_a_slot_in_its_hand() -> None:
    """A job that was woken, and is cancelled before anybody claims it."""
    claim, (second, third) = one_runs(3)
    end(claim)
    transitions.cancel([second])
    keep([found.id for found in search(1)] == [third], FOR_EVER)


def ended_late() -> None:
    """A worker ends an execution that was taken from it, while the job runs elsewhere on the same slot."""
    first, _ = one_runs(1)
    transitions.release([(first.id, first.dispatch_id)], worker_id=CALLER)
    keep([found.id for found in search(1)] == [first.id], "a released job lost its turn")
    end(first)
    keyed(1)
    search(2)
    keep(running("k") == 1, TOO_MANY)


def enqueued_while_the_gate_opens() -> None:
    """A batch sees that others wait, and parks; before it is committed those have run and are gone."""
    claim, _others = one_runs(2)
    with Ear() as ear:
        with holding():
            (late,) = keyed(1)
            together([lambda: _run_all(claim)])
        open_told(ear)
    keep([found.id for found in search(1)] == [late], FOR_EVER)


def _run_all(claim: Claim) -> None:
    found = [claim]
    while found:
        end(*found, using=ENGINE)
        found = search(2, using=ENGINE)


def taken_back_from_a_queue_that_nobody_serves() -> None:
    """A job is woken into a queue without workers; its slot goes to another, then a worker comes."""
    made = [new_id() for _ in range(3)]
    for id_, queue in zip(made, ("default", "nobody", "default"), strict=True):
        enqueue(id_, queue=queue, **K)
    claim, *_ = [*search(1), *search(1, queue="nobody"), *search(1)]
    end(claim)
    keep(held(KEY, "k") == [made[1]], "the best was not woken")
    execute("UPDATE turno.concurrency_slots SET taken_at = now() - interval '1 minute'")
    execute("UPDATE turno.jobs SET enqueued_at = now() - interval '1 minute' WHERE queue = 'nobody'")
    worker = make_worker(queues={"default": 4}, types=[TYPE])
    transitions.free_idle(limit=10, silent_after=60.0)
    execute("DELETE FROM turno.workers WHERE id = %s", worker)
    keep([found.id for found in search(1)] == [made[2]], FOR_EVER)
    search(1, queue="nobody")
    keep(running("k") == 1, TOO_MANY)


def limited(name: str = TYPE) -> None:
    """Of this type one may run."""
    transitions.set_limits(name, Limits(max_running=1), actor="ana")


def woken_with_all_that_it_needs() -> None:
    """A key comes free for a job whose type is at its limit."""
    limited()
    enqueue(new_id(), type="other", **K)
    enqueue(new_id())
    found = search(2, types=[TYPE, "other"])
    waits = new_id()
    enqueue(waits, **K)
    search(1)
    end(*(claim for claim in found if claim.type == "other"))
    search(2)
    of_type = rows.select("SELECT count(*) AS n FROM turno.jobs WHERE state = 'Processing' AND type = %s", TYPE)
    keep(of_type == [{"n": 1}], "more of a type run than its limit lets")


def need_each_others_gate() -> None:
    """Two jobs need a key and a limit; one waits at the one, the other at the other, and both come free."""
    limited()
    enqueue(new_id())
    (of_type,) = search(1)
    at_type, at_key = new_id(), new_id()
    enqueue(at_type, **K)
    enqueue(at_key, queue="other", **K)
    search(1)
    enqueue(new_id(), type="other", **K)
    (of_key,) = search(1, types=["other"])
    search(1, queue="other")
    gates = {row["id"]: row["waiting_for"] for row in rows.select("SELECT id, waiting_for FROM turno.jobs")}
    keep((gates[at_type], gates[at_key]) == ("type_limit", "concurrency_key"), "they wait at other gates")
    end(of_key)
    end(of_type)
    order = []
    while found := [*search(1), *search(1, queue="other")]:
        order += [claim.id for claim in found]
        end(*found)
    keep(sorted(order) == sorted([at_type, at_key]), EACH_OTHER)


def forgotten_while_it_is_held() -> None:
    """Retention meets the key of a job that runs."""
    one_runs(1)
    transitions.forget_keys(age=-1.0, limit=9)
    keyed(1)
    search(2)
    keep(running("k") == 1, TOO_MANY)


def claimed_while_its_key_is_forgotten() -> None:
    """The claim waits for a row that is gone when it has waited."""
    claim, _ = one_runs(1)
    end(claim)
    late = new_id()
    found: list[Claim] = []

    def claims() -> None:
        enqueue(late, using=ENGINE, **K)
        with suppress(Exception):  # whatever it is, the promise is broken
            found.extend(search(1, using=ENGINE))

    meanwhile(lambda: transitions.forget_keys(age=-1.0, limit=9), claims)
    keep([one.id for one in found] == [late], "a claim fails because of retention")


def put_aside_with_a_slot_in_its_hand() -> None:
    """A job that was woken is parked for a pause of its tag before anybody claims it."""
    made = [new_id() for _ in range(3)]
    for n, id_ in enumerate(made):
        enqueue(id_, **K, **({"tags": ("late",)} if n == 1 else {}))
    (claim, *_) = search(3)
    end(claim)
    transitions.pause("tag", "late")
    with Ear() as ear:
        row = rows.job(made[1])
        transitions.park_paused([(made[1], row["dispatch_id"])])
        open_told(ear)
    keep([found.id for found in search(1)] == [made[2]], FOR_EVER)


def freed_while_its_other_gate_is_locked() -> None:
    """A key comes free for a job that needs the limit of its type too, whose row somebody has for a moment."""
    limited()
    enqueue(new_id(), type="other", **K)
    (holder,) = search(1, types=["other"])
    waits = new_id()
    enqueue(waits, **K)
    search(1)
    with Ear() as ear:
        with rival() as other:
            other.execute("SELECT 1 FROM turno.concurrency_keys WHERE value = %s FOR NO KEY UPDATE", [TYPE])
            late = Other(lambda: end(holder, using=ENGINE))
            while not late._answer.done() and not waits_for_a_lock(late):
                pass
            waited = not late._answer.done()
            other.rollback()
        late.answer()
        open_told(ear)
    keep(not waited, "two that end wait for each other: each has the gate that the other needs")
    keep([found.id for found in search(1)] == [waits], FOR_EVER)
