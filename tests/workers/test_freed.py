"""A slot is taken until its job's end is written: the execution says when its handler is over, and when that is."""

import gc
import weakref
from concurrent.futures import Future

from jobs.registry import job_type
from jobs.transitions import Settled
from tests.isolation.house import claim_of
from tests.workers.test_suspects import Shift, types

__all__ = ["types"]


async def test_an_execution_is_ended_while_its_end_is_being_written_and_freed_after(types):
    shift, writing = Shift(lambda held, begun: Future()), []
    shift.ends.settle = lambda ending, done, **_how: writing.append((ending, done))
    job = claim_of("suspects.async", {})
    shift.transport.batches.append([job])
    async with shift:
        await shift.until(lambda: writing)
        held = shift.book.get(job.dispatch_id)
        assert (held.ended, held.freed) == (True, False)
        [(ending, done)] = writing
        done(Settled(ending.dispatch_id, ending.to))
        await shift.until(lambda: held.freed)
        await shift.until(lambda: shift.transport.roomy == {"default"})


async def test_what_has_ended_leaves_memory_with_its_last_use_and_waits_for_no_collection(types):
    shift, seen = Shift(lambda held, begun: Future()), []

    @job_type("suspects.seen")
    async def remembered(ctx):
        seen.append(weakref.ref(ctx))

    shift.transport.batches.append([claim_of("suspects.seen", {})])
    gc.disable()
    try:
        async with shift:
            await shift.until(lambda: seen and not len(shift.book))
            await shift.until(lambda: seen[0]() is None)
    finally:
        gc.enable()
