"""What all routines share; and who leads."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import OperationalError

from jobs import leadership, presence
from jobs.ids import new_id
from jobs.models import Worker
from tests.transitions.rows import ago
from workers.service import Service


class Routine:
    """Answers `answers` one after the other, then waits to be stopped; an exception is raised."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.calls = 0
        self.done = asyncio.Event()
        self.loop = asyncio.get_running_loop()

    def __call__(self):
        self.calls += 1
        answer = self.answers.pop(0) if self.answers else 0
        if not self.answers:
            self.loop.call_soon_threadsafe(self.done.set)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def run(service, until, leads=lambda: True):
    with ThreadPoolExecutor(1) as executor:
        task = asyncio.create_task(service.run(executor, leads))
        async with asyncio.timeout(20):
            await until.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_full_batch_is_followed_by_another_at_once():
    routine = Routine(5, 5, 1)
    await run(Service("x", routine, interval=3600.0, batch=5), routine.done)
    assert routine.calls == 3


async def test_a_routine_that_fails_goes_on_by_itself():
    routine = Routine(OperationalError("away"), 7)
    service = Service("x", routine, interval=0.01)
    await run(service, routine.done)
    assert service.failures == 0 or routine.calls >= 2


async def test_an_exclusive_routine_does_nothing_in_a_worker_that_does_not_lead():
    routine = Routine(1)
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def leads():
        loop.call_soon_threadsafe(asked.set)
        return False

    await run(Service("x", routine, interval=0.01), asked, leads)
    assert routine.calls == 0


async def test_a_wake_ends_the_pause():
    routine = Routine(0, 0)
    service = Service("x", routine, interval=3600.0)

    async def nudge():
        while not routine.done.is_set():
            service.wake()
            await asyncio.sleep(0.01)

    nudging = asyncio.create_task(nudge())
    await run(service, routine.done)
    nudging.cancel()
    assert routine.calls >= 2


@pytest.mark.django_db
def test_one_leads_until_its_lease_ends_or_it_resigns():
    first, second = new_id(), new_id()
    assert leadership.lead("x", first, lease=60)
    assert leadership.lead("x", first, lease=60)
    assert not leadership.lead("x", second, lease=60)
    assert leadership.lead("other", second, lease=60)
    leadership.resign("x", second)  # not its to give up
    assert not leadership.lead("x", second, lease=60)
    leadership.resign("x", first)
    assert leadership.lead("x", second, lease=-1)  # a lease that is over already: a frozen leader's
    assert leadership.lead("x", first, lease=60)


def who(**changes):
    fields = {
        "id": new_id(),
        "name": "w",
        "host": "h",
        "boot_id": "b",
        "pid_namespace": "n",
        "pid": 7,
        "pid_started": "1",
        "version": "0",
        "queues": {"default": 4},
        "types": ["a", "b"],
    }
    return presence.Presence(**fields | changes)


@pytest.mark.django_db
def test_a_worker_registers_goes_silent_comes_back_leaves_and_is_forgotten():
    worker = who()
    presence.beat(worker, problems=[{"module": "m", "error": "e"}])
    row = Worker.objects.get()
    assert (row.state, row.queues, row.types, row.problems) == (
        "Online",
        {"default": 4},
        ["a", "b"],
        [{"module": "m", "error": "e"}],
    )
    assert presence.sweep(silent_for=60) == 0
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE turno.workers SET seen_at = {ago(61)}")
    assert presence.sweep(silent_for=60) == 1
    assert Worker.objects.get().state == "Offline"
    presence.beat(worker)  # it was frozen, and is not
    assert Worker.objects.get().state == "Online"
    presence.beat(worker, state="Draining")
    assert Worker.objects.get().state == "Draining"
    presence.leave(worker.id)
    assert Worker.objects.get().state == "Offline"
    assert presence.forget(offline_for=60) == 0
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE turno.workers SET stopped_at = {ago(61)}")
    assert presence.forget(offline_for=60) == 1
