"""The heartbeat of ownership: leases, losses, cancels, and jobs that the worker does not know it has."""

from uuid import uuid4

import pytest

from jobs import transitions
from jobs.states import State
from jobs.transitions import Renewal
from tests.transitions import rows
from tests.transitions.edges import ASKED, CALLER, Fence, make
from tests.transitions.rows import make_job

pytestmark = pytest.mark.django_db


def renew(*held, lease=90):
    return transitions.renew(list(held), worker_id=CALLER, lease=lease)


def test_a_renewal_sets_the_lease_from_now_by_the_clock_of_the_database():
    case = make("processing", Fence.RIGHT)
    renew((case.made.id, case.token), lease=45.5)
    now = rows.select("SELECT now() AS now")[0]["now"]
    assert (rows.job(case.made.id)["lease_expires_at"] - now).total_seconds() == 45.5


def test_a_renewal_tells_what_is_held_what_is_lost_and_what_somebody_wants_cancelled():
    held, asked = make("processing", Fence.RIGHT), make("processing, cancel asked", Fence.RIGHT)
    ended, stolen = make("succeeded", Fence.RIGHT), make("processing", Fence.WORKER)
    gone = uuid4()
    answer = renew(*[(case.made.id, case.token) for case in (held, asked, ended, stolen)], (uuid4(), gone))
    assert answer == Renewal(
        renewed=frozenset({held.token, asked.token}),
        lost=frozenset({ended.token, stolen.token, gone}),
        cancelled=frozenset({asked.token}),
    )


def test_nothing_held_is_nothing_renewed(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert renew() == Renewal()


def test_a_stray_is_a_job_that_the_table_gives_to_this_worker_and_the_worker_does_not_know():
    known, stray, other = (make_job(State.PROCESSING, worker=worker) for worker in (CALLER, CALLER, uuid4()))
    make_job(State.ENQUEUED)
    found = transitions.strays(worker_id=CALLER, known=[known.token])
    assert found == [(stray.id, stray.token, rows.job(stray.id)["claim_id"])]
    everything = transitions.strays(worker_id=CALLER, known=[])
    assert {id_ for id_, _, _ in everything} == {known.id, stray.id}
    assert [id_ for id_, _, _ in transitions.strays(worker_id=other.worker, known=[])] == [other.id]


def test_cancels_are_those_of_this_worker_s_running_jobs():
    mine = make_job(State.PROCESSING, worker=CALLER, **ASKED)
    make_job(State.PROCESSING, worker=CALLER)
    make_job(State.PROCESSING, **ASKED)
    make_job(State.CANCELLED, **ASKED)
    assert transitions.cancels(worker_id=CALLER) == {mine.token}
