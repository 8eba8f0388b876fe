"""A slot is taken until its job's end is written: the execution says when its handler is over, and when that is."""

from concurrent.futures import Future

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
