"""The promoter sleeps until the next instant, not at all where one came meanwhile, and never spins or stands behind."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from jobs.conf import conf
from jobs.ids import new_id
from tests.transitions.ear import raw_connection
from tests.transitions.rows import ago, ahead, make_job
from workers.instants import LOCKED, Instants
from workers.leases import LeaseBook
from workers.routines import services
from workers.service import Service
from workers.wiring import Wiring


@pytest.fixture
def promoter():
    return services()["promoter"]


def look(promoter):
    return promoter.step(lambda: True)


@pytest.mark.django_db(transaction=True, databases=["default", "engine"])
def test_the_promoter_sleeps_until_the_next_job_is_due(clean_tables, promoter):
    assert look(promoter) == (0, conf().scheduler.interval)
    make_job("Scheduled", run_at=ahead(3600))
    assert look(promoter) == (0, conf().scheduler.interval)
    make_job("Scheduled", run_at=ago(60))
    make_job("Scheduled", run_at=ahead(1))
    done, pause = look(promoter)
    assert done == 1
    assert 0 < pause <= 1


@pytest.mark.django_db(transaction=True, databases=["default", "engine"])
def test_the_promoter_does_not_spin_on_a_due_job_that_somebody_has_locked(clean_tables, promoter):
    job = make_job("Scheduled", run_at=ago(60))
    with raw_connection() as other, other.transaction():
        other.execute("SELECT FROM turno.jobs WHERE id = %s FOR UPDATE", [job.id])
        assert [look(promoter) for _ in range(4)] == [(0, 0.0), (0, LOCKED), (0, LOCKED), (0, LOCKED)]
    assert look(promoter) == (1, conf().scheduler.interval)


def test_what_comes_due_while_a_batch_is_under_way_is_looked_for_at_once():
    """It slept a while, as beside a locked row: of jobs that come due one after the other the next was late."""
    left = [3, 1, 0, 0]
    looks = Instants(lambda: left.pop(0), lambda: 0 if left else None)
    pauses = []
    while left:
        looks.run_once()
        pauses.append(looks.interval())
    assert pauses == [0.0, 0.0, 0.0, conf().scheduler.interval]


def test_what_has_an_instant_to_keep_does_not_wait_for_other_routines():
    async def main():
        loop, ran, slow = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def tick():
            loop.call_soon_threadsafe(ran.set)
            return 0

        wiring = Wiring(SimpleNamespace(id=new_id()), SimpleNamespace(), LeaseBook(lambda deadline: None))
        routines = [Service(f"slow {n}", lambda: int(slow.wait(60)), interval=60.0, exclusive=False) for n in range(9)]
        routines.append(Service("promoter", tick, interval=60.0, exclusive=False))
        wiring.services = {routine.name: routine for routine in routines}
        tasks = [asyncio.create_task(coroutine) for _name, coroutine in wiring.background()]
        try:
            await asyncio.wait_for(ran.wait(), 30)
        finally:
            slow.set()
            for task in tasks:
                task.cancel()
            await wiring.close()

    asyncio.run(main())
