"""Who owns a job: late owners, old messages, leases, cancels. Each scenario is played by one worker with two slots.

One worker, since it is the hardest case: the worker's id tells its two executions of one job apart no more.
"""

from contextlib import suppress
from uuid import uuid4

from django.db import IntegrityError

from jobs import transitions
from jobs.outcomes import Claim, LogLine
from jobs.states import State
from jobs.transitions import Note
from tests.laws.guards import keep
from tests.transitions import rows
from tests.transitions.edges import CALLER, Case, Fence, claimant, ending, lose, make
from tests.transitions.rows import Made

ENGINE = "engine"
# What ends an execution and brings the job back into its queue, by its way.
LOST, RELEASED, RETRIED, RUN_NOW, REQUEUED = "lost", "released", "retried", "run now", "requeued"


def claimed(made: Made) -> Claim:
    """The next execution of the job, by the worker CALLER."""
    [claim] = transitions.claim_next([(made.queue, 1)], types=[made.type], **claimant(), using=ENGINE)
    return claim


def come_back(way: str) -> tuple[Case, Claim]:
    """A job whose first execution was ended behind its handler's back, and that runs again now."""
    case = make("expired", Fence.RIGHT)
    if way == LOST:
        lose(ENGINE)
    elif way == RELEASED:
        transitions.release([(case.made.id, case.token)], worker_id=CALLER, using=ENGINE)
    elif way in (RETRIED, RUN_NOW):
        transitions.settle([ending(case, State.SCHEDULED, delay=0.0)], worker_id=CALLER, using=ENGINE)
        if way == RETRIED:
            transitions.promote(limit=9, using=ENGINE)
        else:
            transitions.run_now([case.made.id], using=ENGINE)
    else:
        transitions.settle([ending(case, State.FAILED)], worker_id=CALLER, using=ENGINE)
        transitions.requeue([case.made.id], using=ENGINE)
    return case, claimed(case.made)


def renewed_late(way: str) -> None:
    """The first execution's heartbeat comes when the job runs again."""
    case, _ = come_back(way)
    answer = transitions.renew([(case.made.id, case.token)], worker_id=CALLER, lease=60, using=ENGINE)
    keep(answer.lost == {case.token}, "two executions live side by side: the late owner was not told")


def ended_late() -> None:
    """The first execution's end comes when the job runs again."""
    case, second = come_back(LOST)
    with suppress(IntegrityError):  # refused by the database: nothing is written, which is what counts
        transitions.settle([ending(case, State.SUCCEEDED)], worker_id=CALLER, using=ENGINE)
    row = rows.job(case.made.id)
    keep(
        (row["state"], row["dispatch_id"], row["result"]) == ("Processing", second.dispatch_id, None),
        "a late owner's end was written over its successor's",
    )


def ended_late_elsewhere() -> None:
    """The same, and the second execution is another worker's."""
    case = make("expired", Fence.RIGHT)
    lose(ENGINE)
    other = claimant() | {"worker_id": uuid4()}
    [second] = transitions.claim_next([(case.made.queue, 1)], types=["test.echo"], **other, using=ENGINE)
    with suppress(IntegrityError):
        transitions.settle([ending(case, State.SUCCEEDED)], worker_id=CALLER, using=ENGINE)
    row = rows.job(case.made.id)
    keep(
        (row["state"], row["worker_id"]) == ("Processing", other["worker_id"]) and second.execution == 2,
        "a late owner's end was written over its successor's",
    )


def noted_late() -> None:
    """The first execution says something when the job runs again."""
    case, second = come_back(LOST)
    line = LogLine(1, "info", "said by a ghost")
    transitions.note([Note(case.made.id, case.token, 77, "ghost", (line,))], worker_id=CALLER, using=ENGINE)
    row = rows.job(case.made.id)
    written = (row["progress"], row["stage"], rows.logs(case.made.id))
    keep(written == (0, "", []) and second.execution == 2, "a late owner's words were written over its successor's")


def noted_after_the_end() -> None:
    """An execution says something when its job waits for its retry, in nobody's hands."""
    case = make("processing", Fence.RIGHT)
    transitions.settle([ending(case, State.SCHEDULED)], worker_id=CALLER, using=ENGINE)
    transitions.note([Note(case.made.id, case.token, 77, "ghost")], worker_id=CALLER, using=ENGINE)
    row = rows.job(case.made.id)
    keep((row["progress"], row["stage"]) == (0, ""), "somebody wrote on a job that nobody owned")


def released_late() -> None:
    """The first execution is given back when the job runs again."""
    case, second = come_back(LOST)
    transitions.release([(case.made.id, case.token)], worker_id=CALLER, using=ENGINE)
    row = rows.job(case.made.id)
    keep(
        (row["state"], row["dispatch_id"]) == ("Processing", second.dispatch_id),
        "two executions live side by side: a running job was given back",
    )


def message_twice() -> None:
    """The broker brings a job's message twice, to two workers."""
    case = make("enqueued", Fence.RIGHT)
    wanted = [(case.made.id, case.token, 1)]
    first = transitions.claim(wanted, **claimant(), using=ENGINE)
    second = transitions.claim(wanted, **claimant(), using=ENGINE)
    keep((len(first), len(second)) == (1, 0), "two executions live side by side: a running job was claimed")


def message_of_old() -> None:
    """An old message comes after the job came back into its queue with another token; who claims it ends the job."""
    case = make("expired", Fence.RIGHT)
    lose(ENGINE)
    now = rows.job(case.made.id)["dispatch_id"]
    claims = transitions.claim([(case.made.id, case.token, 1)], **claimant(), using=ENGINE)
    if not claims:  # dropped, as it should be; then comes the message with the new one
        claims = transitions.claim([(case.made.id, now, 1)], **claimant(), using=ENGINE)
    [claim] = claims
    own = Case("processing", Fence.RIGHT, Made(claim.id, claim.dispatch_id, CALLER, claim.queue, claim.type))
    with suppress(IntegrityError):
        transitions.settle([ending(own, State.SUCCEEDED)], worker_id=CALLER, using=ENGINE)
    keep(rows.state(case.made.id) == "Succeeded", "the owner of a job could not write its end")


def cancelled_while_running() -> None:
    """Somebody cancels a running job; its handler fails, and would be tried again."""
    case = make("processing", Fence.RIGHT)
    transitions.cancel([case.made.id], actor="ana", using=ENGINE)
    transitions.settle([ending(case, State.SCHEDULED, delay=0.0)], worker_id=CALLER, using=ENGINE)
    transitions.promote(limit=9, using=ENGINE)
    keep(rows.state(case.made.id) == "Cancelled", "a cancelled job goes on")
