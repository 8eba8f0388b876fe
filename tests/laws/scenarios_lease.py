"""Leases and recovery: until when a handler may run, and who finds what nobody renews."""

import threading
from collections.abc import Callable

from django.db import connections

from jobs import transitions
from jobs.ids import new_id
from jobs.presence import Presence
from jobs.sections import Worker as Settings
from jobs.states import State
from tests.kit.processes import database_url
from tests.kit.proxy import Proxy, through
from tests.laws.guards import keep
from tests.transitions import rows
from tests.transitions.edges import CALLER, Fence, claimant, lose, make
from tests.transitions.rows import ago, ahead
from workers.clock import boottime
from workers.heartbeat import Heartbeat
from workers.leases import LeaseBook
from workers.ledger import ClaimLedger

ENGINE = "engine"
GRACE = 15.0
LATE = 0.4  # seconds by which an answer is held up
LEFT = (
    "SELECT extract(epoch FROM lease_expires_at - clock_timestamp())::float8 AS seconds FROM turno.jobs WHERE id = %s"
)
WHO = Presence(CALLER, "w", "h", "b", "n", 7, "1", "0", {"default": 1}, ["test.echo"])


def heartbeat(book: LeaseBook) -> Heartbeat:
    """A heartbeat whose thread is not started: the scenario calls what it does."""
    return Heartbeat(WHO, book, Settings(), list)


def beats_before_recovery(book: LeaseBook, id_: object) -> bool:
    """Whether the only handler in the book must be dead when the database gives its job to somebody else."""
    [held] = book.everything()
    lease = rows.select(LEFT, id_)[0]["seconds"]
    return held.deadline - boottime() <= lease


def answer_delayed(proxy: Proxy, work: Callable[[], object]) -> None:
    """Run `work` in a thread; the answer to its COMMIT is on its way for a while."""

    def run() -> None:
        try:
            work()
        finally:
            connections[ENGINE].close()

    thread = threading.Thread(target=run)
    trap = proxy.hold_commit("turno.jobs")
    thread.start()
    trap.wait()
    threading.Event().wait(LATE)
    trap.let_go()
    thread.join(60)


def claimed_with_a_late_answer() -> None:
    """The answer to a claim takes its time, while the lease runs in the database."""
    case = make("enqueued", Fence.RIGHT, queue="default")
    book = LeaseBook()
    with Proxy(database_url()) as proxy, through(proxy, ENGINE):
        ledger = ClaimLedger(WHO, book, 60.0, 9, 0.1)
        ledger.start()
        answer_delayed(proxy, lambda: ledger.claim([("default", 1)]).result(60))
        ledger.close(20)
    keep(beats_before_recovery(book, case.made.id), "two executions live side by side: a handler outlives its lease")


def renewed_with_a_late_answer() -> None:
    """The answer to a renewal takes its time, while the lease runs in the database."""
    case = make("enqueued", Fence.RIGHT)
    book = LeaseBook()
    claims = transitions.claim([(case.made.id, case.token, 1)], **claimant(), using=ENGINE)
    book.enter(new_id(), claims, boottime() + 1)
    with Proxy(database_url()) as proxy, through(proxy, ENGINE):
        answer_delayed(proxy, heartbeat(book)._renew)
    keep(beats_before_recovery(book, case.made.id), "two executions live side by side: a handler outlives its lease")


def dead_at_its_deadline() -> None:
    """A handler's deadline has passed and it is being ended; then comes the next heartbeat."""
    case = make("enqueued", Fence.RIGHT)
    book = LeaseBook()
    claims = transitions.claim([(case.made.id, case.token, 1)], **claimant() | {"lease": -1}, using=ENGINE)
    book.enter(new_id(), claims, boottime() - 1)
    heartbeat(book)._renew()
    keep(rows.select(LEFT, case.made.id)[0]["seconds"] < 0, "a dead handler's job is Processing for ever")


def past_its_lease_by_less_than_the_grace() -> None:
    """A lease is over, and the worker has the first half of the grace to end the handler, its supervisor the rest."""
    case = make("processing", Fence.RIGHT, lease_expires_at=ago(GRACE / 2))
    keep(lose(ENGINE, grace=GRACE) == [], "two executions live side by side: recovered before its handler is dead")
    keep(rows.state(case.made.id) == "Processing", "two executions live side by side: recovered too soon")


def of_a_worker_that_nobody_knows() -> None:
    """A lease is over, and the worker's row was deleted, or never was."""
    case = make("expired", Fence.RIGHT)
    lose(ENGINE)
    keep(rows.state(case.made.id) == "Enqueued", "a lost job is never found")


def runs_for_hours() -> None:
    """A job runs for hours under a lease that is renewed."""
    case = make("processing", Fence.RIGHT, claimed_at=ago(9000), started_at=ago(9000), lease_expires_at=ahead(50))
    lose(ENGINE)
    keep(rows.state(case.made.id) == "Processing", "two executions live side by side: a live owner's job was taken")


def lost_again_and_again() -> None:
    """A job takes its worker down each time that it runs."""
    case = make("expired", Fence.RIGHT, lost_count=2, attempts_used=2, max_attempts=9)
    lose(ENGINE)
    keep(rows.state(case.made.id) == "Failed", "a job that kills its workers is run without end")


def lost_and_never_to_be_repeated() -> None:
    """A job that may run at most once loses its worker."""
    case = make("expired", Fence.RIGHT, at_most_once=True)
    lose(ENGINE)
    keep(rows.state(case.made.id) == "Failed", "a job that may run at most once was repeated")


def in_flight() -> None:
    """A heartbeat looks for strays while the answer to a claim is on its way; then the answer comes."""
    case = make("enqueued", Fence.RIGHT, queue="default")
    book = LeaseBook()
    with Proxy(database_url()) as proxy, through(proxy, ENGINE):
        ledger = ClaimLedger(WHO, book, 60.0, 9, 0.1)
        ledger.start()
        trap = proxy.hold_commit("turno.jobs")
        asked = ledger.claim([("default", 1)])
        trap.wait()
        heartbeat(book).release_strays()
        trap.let_go()
        [held] = asked.result(60)
        ledger.close(20)
    row = rows.job(case.made.id)
    owned = (State(row["state"]), row["dispatch_id"]) == (State.PROCESSING, held.claim.dispatch_id)
    keep(owned, "two executions live side by side: a claim was given back and its handler started")
