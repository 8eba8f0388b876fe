"""Ends, renewals and answers that go astray: what its owner hears, what nobody runs, and whose jobs are taken back."""

from uuid import uuid4

from jobs import transitions
from jobs.states import State
from tests.laws.guards import keep
from tests.laws.scenarios_lease import heartbeat
from tests.laws.scenarios_owner import come_back
from tests.laws.scenarios_together import waits
from tests.races.two import Other, lock, rival
from tests.transitions import rows
from tests.transitions.edges import CALLER, Case, Fence, claimant, ending, make, take_back
from workers.leases import LeaseBook

ENGINE = "engine"


def ended_twice() -> None:
    """The answer to an end is lost, so its worker writes it again."""
    case = make("processing", Fence.RIGHT)
    end = ending(case, State.SUCCEEDED)
    transitions.settle([end], worker_id=CALLER, using=ENGINE)
    [again] = transitions.settle([end], worker_id=CALLER, using=ENGINE)
    keep(again.state is State.SUCCEEDED, "an end that was written was taken for lost")


def requeued_after_a_cancel() -> None:
    """A job was cancelled, and is requeued; its handler fails, and would be tried again."""
    case = make("enqueued", Fence.RIGHT)
    transitions.cancel([case.made.id], using=ENGINE)
    transitions.requeue([case.made.id], using=ENGINE)
    token = rows.job(case.made.id)["dispatch_id"]
    transitions.claim([(case.made.id, token, 1)], **claimant(), using=ENGINE)
    made = rows.Made(case.made.id, token, CALLER, case.made.queue, case.made.type)
    retry = ending(Case("processing", Fence.RIGHT, made), State.SCHEDULED)
    [end] = transitions.settle([retry], worker_id=CALLER, using=ENGINE)
    keep(end.state is State.SCHEDULED, "a requeued job is cancelled by the request of before")


def claimed_without_an_answer() -> None:
    """The table gives a job to a worker whose claim has failed: the answer to its COMMIT was lost."""
    case = make("enqueued", Fence.RIGHT)
    book = LeaseBook()
    transitions.claim([(case.made.id, case.token, 1)], **claimant(), using=ENGINE)
    heartbeat(book).release_strays()
    keep(rows.state(case.made.id) == "Enqueued", "a job is nobody's until its lease ends, and a loss is charged to it")


def begun_late() -> None:
    """The first execution's turn comes when the job runs again."""
    case, _ = come_back("lost")
    answer = transitions.begin([(case.made.id, case.token)], worker_id=CALLER, using=ENGINE)
    keep(case.token not in answer, "two executions live side by side: the late owner was told to begin")


def of_another_worker() -> None:
    """A worker is dead, and another one runs a job."""
    case = make("processing", Fence.RIGHT, worker=uuid4())
    take_back(ENGINE)
    keep(
        rows.state(case.made.id) == "Processing", "two executions live side by side: a live owner's job was taken back"
    )


def renewed_while_somebody_looks() -> None:
    """A worker runs two jobs; somebody has the row of one for a while."""
    one, two = make("processing", Fence.RIGHT), make("processing", Fence.RIGHT)
    pairs = [(case.made.id, case.token) for case in (one, two)]
    with rival() as other:
        lock(other, one.made.id)
        late = Other(lambda: transitions.renew(pairs, worker_id=CALLER, lease=60, using=ENGINE))
        while not late._answer.done() and not waits(late):
            pass
        waited = not late._answer.done()
        other.rollback()
    answer = late.answer()
    keep(not waited, "a lease runs out because of another's row")
    keep(not answer.lost and two.token in answer.renewed, "a live owner was told that it had lost its job")
