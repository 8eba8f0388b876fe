"""The consumer: free slots are offered to the transport, what comes back is started, what ends frees its slot."""

import asyncio
import logging
import random
from collections.abc import Iterable, Sequence

from jobs.outcomes import Ending
from jobs.retry import RetryPolicy
from jobs.sections import Worker as WorkerSettings
from jobs.transitions import Settled
from workers import conclusion
from workers.bell import Bell
from workers.breakers import charged
from workers.connections import DATABASE_ERRORS
from workers.execution import Execution, prepare
from workers.gathering import Gathering
from workers.handoff import Handoff
from workers.isolation import ForkServer
from workers.leases import Held, Interrupt, LeaseBook
from workers.ledger import EndLedger
from workers.locks.base import JobLocks
from workers.notes import Notes
from workers.quarantine import Begin, Quarantine, is_suspect
from workers.runners import Runners
from workers.slots import Slots
from workers.succession import Succession
from workers.transports.base import Transport

log = logging.getLogger(__name__)
FEW = 25  # slots that are offered where no more jobs were found the last time
OUTLIVED = 0.1  # seconds between two looks whether all handlers past their deadline have ended


class Consumer:
    """Lives on the engine's loop. A claimed job counts against its slot from the offer until its end is written."""

    def __init__(
        self,
        transport: Transport,
        slots: Slots,
        book: LeaseBook,
        ends: EndLedger,
        *,
        begin: Begin,
        locks: JobLocks,
        forkserver: ForkServer | None,
        settings: WorkerSettings,
    ) -> None:
        self._transport = transport
        self._slots = slots
        self._book = book
        self._ends = ends
        self._locks = locks
        self._batch_size = settings.batch_size
        self._kill_grace = settings.kill_grace
        self._loop = asyncio.get_running_loop()
        self._bell = Bell(settings.poll_interval, lambda: len(book) > 0)
        transport.start(slots.queues, self.wake)
        self._resized: set[str] = set()  # queues of which the transport may expect another number of slots
        slots.follow(self._loop, self._resize)
        self._idle = asyncio.Event()
        self._idle.set()
        self._taking = True
        self._may_have_more: set[str] = set()
        self._found = 0  # by the last claim
        self._gathering = Gathering(slots.changed, self._more_to_come)
        self._written = Handoff(self._loop, self._free)
        self._succession = Succession(book, slots, locks, lambda: self._taking and not len(self._quarantine))
        ends.offer = self._succession.offer
        self._rng = random.Random()  # noqa: S311  (jitter)
        self.notes = Notes(ends)
        self._others: set[Held] = set()  # what runs besides suspects
        self._quarantine = Quarantine(
            others=lambda: len(self._others),
            begin=begin,
            start=lambda one: self._runners.start([one]),
            end=self._end,
            let_go=self._go_on_beside,
        )
        self._runners = Runners(slots.most, forkserver, self._ended)

    def wake(self) -> None:
        """There may be work for this worker; call it on the loop."""
        self._bell.ring()

    def hear(self) -> None:
        """There may be work for any of those that have heard this; call it on the loop."""
        self._bell.hear()

    def stop_taking(self) -> None:
        """Claim nothing more."""
        self._taking = False
        self._quarantine.close()
        self._bell.ring()
        self._slots.changed.set()

    async def run(self) -> None:
        """Take work until `stop_taking`."""
        while self._taking:
            if self._book.outlived():  # what is claimed now would be lost with this process
                await asyncio.sleep(OUTLIVED)
                continue
            offer = [] if len(self._quarantine) else self._slots.take(self._most())
            if not offer:
                await self._gathering.slots()
                continue
            self._bell.look()
            held = await self._gathering.timed(self._take(offer))
            self._bell.looked(found=bool(held))
            self._found = len(held)
            self._account(offer, held)
            if held:
                await self._start(held)
            if held and self._may_go_on():
                await self._gathering.others()
            else:
                await self._bell.wait()

    def _most(self) -> int:
        """How many slots to offer: each makes a search dearer, and where no jobs are known to wait it finds few."""
        if self._may_have_more or not self._transport.brings_all:
            return self._batch_size
        return min(self._batch_size, max(FEW, 2 * self._found))

    def _may_go_on(self) -> bool:
        """Whether a claim that has brought something may be followed by another at once."""
        knows = self._transport.brings_all and self._slots.room > 0
        return not knows or any(self._slots.free(queue) for queue in self._may_have_more)

    def _more_to_come(self) -> bool:
        """Whether it pays to claim for more slots at once: jobs wait, and ends are being written that free some."""
        wanted = self._taking and self._may_have_more and self._slots.room < self._batch_size
        return bool(wanted and self._ends.busy and not self._ends.hurries)

    def _account(self, offer: Sequence[tuple[str, int]], held: Sequence[Held]) -> None:
        """Unused slots are free again; a queue whose offered slots were all used may have more."""
        used = {(h.claim.queue, h.claim.slot) for h in held}
        unused = [place for place in offer if place not in used]
        offered = {queue for queue, _ in offer}
        self._may_have_more = (self._may_have_more | offered) - {queue for queue, _ in unused}
        for queue, slot in unused:
            self._slots.give_back(queue, slot)
        self._tell_room(queue for queue in offered if queue in self._resized or not self._slots.free(queue))
        self._resized -= offered

    async def _take(self, offer: Sequence[tuple[str, int]]) -> list[Held]:
        try:
            return await self._transport.take(offer)
        except DATABASE_ERRORS:
            return []  # the ledger has said so, and waited
        except Exception:
            log.exception("claim.failed")
            return []

    async def _start(self, held: Sequence[Held]) -> None:
        self._idle.clear()
        executions = [e for h in held if (e := self._prepare(h)) is not None]
        suspects = [e for e in executions if is_suspect(e.held)]
        others = [e for e in executions if not is_suspect(e.held)]
        self._others.update(e.held for e in others)
        if suspects:
            for queue in self._slots.queues:
                self._transport.full(queue)
            try:
                await self._quarantine.add(suspects)
            except BaseException:  # the worker ends before the database has answered: of these nothing has run
                for one in others:
                    self._end(one.held, one.not_started())
                raise
        self._runners.start(others)

    def _prepare(self, held: Held) -> Execution | None:
        try:
            return prepare(held, self.notes.dirty)
        except Exception as error:
            log.exception("job.not_prepared", extra={"job": str(held.claim.id)})
            self._end(held, conclusion.failed(held.claim, error, RetryPolicy(), self._rng))
            return None

    def _ended(self, execution: Execution, ending: Ending) -> None:
        """In the handler's thread: its end goes to the ledger."""
        self._end(execution.held, ending)

    def _end(self, held: Held, ending: Ending) -> None:
        held.end()
        self._ends.settle(ending, lambda settled: self._settled(held, ending, settled), keyed=held.claim.keyed)

    def _settled(self, held: Held, ending: Ending, settled: Settled | None) -> None:
        """In the ledger's thread: the end is written, or known to be nobody's; None: it could not be written."""
        claim = held.claim
        if settled is None:
            self._book.give_up(claim.dispatch_id)
        else:
            self._book.close(claim.dispatch_id)
        state = settled.state if settled else None
        if settled and not settled.again:
            self._ends.breakers.record(claim.type, charged(ending, state))
        log.info(
            "job.unwritten" if settled is None else "job.ended" if state else "job.discarded",
            extra=conclusion.told(claim, ending, state),
        )
        self._written.put((held, self._succession.of(settled)))

    def _free(self, ended: Sequence[tuple[Held, Held | None]]) -> None:
        """Their ends are written: their slots are free, or have got another job with that."""
        self._locks.release([(held.claim.id, held.claim.dispatch_id) for held, _ in ended])
        for held, successor in ended:
            try:
                self._freed(held, successor)
            except Exception:  # it must not keep the others' slots
                log.exception("slot.not_freed", extra={"job": str(held.claim.id)})
        if not len(self._book):
            self._idle.set()

    def _freed(self, held: Held, successor: Held | None) -> None:
        queue, slot = held.claim.queue, held.claim.slot
        held.freed = True
        self._runners.forget(held)
        if successor is not None:
            self._succession.begin(successor)
            self._others.add(successor)  # before the other goes: no suspect may think that it is alone
            self._runners.start([execution] if (execution := self._prepare(successor)) else [])
            self._others.discard(held)
            self._quarantine.freed(held)
            return
        self._slots.give_back(queue, slot)
        self._make_room(queue, held)
        if queue in self._may_have_more:
            self._bell.ring()

    def _make_room(self, queue: str, held: Held) -> None:
        """A slot of the queue is free; while a suspect waits or runs nothing may be put into it."""
        before = len(self._quarantine)
        self._others.discard(held)
        self._quarantine.freed(held)
        if len(self._quarantine):
            self._transport.full(queue)
        else:
            self._tell_room(self._slots.queues if before else (queue,))

    def _tell_room(self, queues: Iterable[str]) -> None:
        for name in queues:
            if free := self._slots.free(name):
                self._transport.room(name, free)
            else:
                self._transport.full(name)

    def _resize(self, queue: str) -> None:
        self._resized.add(queue)
        self._tell_room(() if len(self._quarantine) else (queue,))

    def _go_on_beside(self, held: Held) -> None:
        """A suspect that does not end keeps its slot, like any other job; the other slots get work again."""
        self._others.add(held)
        if not len(self._quarantine):
            self._tell_room(self._slots.queues)
            self._slots.changed.set()

    async def finish(self, timeout: float, hurry: asyncio.Event) -> bool:
        """Wait for what runs, at most `timeout` s or until `hurry`, then ask it to stop; False when some goes on."""
        self._runners.drain()
        waiting = [asyncio.ensure_future(event.wait()) for event in (self._idle, hurry)]
        await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        self._succession.end()
        if len(self._book):
            for held in self._book.everything():
                held.ask(Interrupt.SHUTDOWN)
            await asyncio.wait([asyncio.ensure_future(self._idle.wait())], timeout=self._kill_grace + 1.0)
        return not len(self._book)

    def dead_parts(self) -> list[str]:
        """What has died and must not: parts of this worker that run handlers, and the one that looks after suspects."""
        dead, broken = self._runners.dead_parts(), self._quarantine.broken
        return dead if broken is None else [*dead, f"suspects: {broken}"]

    def problems(self) -> list[dict[str, str]]:
        """What people should know at the moment."""
        return self._runners.problems()

    def close(self, clean: bool) -> bool:
        """End what runs handlers; not `clean`: some run on. Child processes are killed; whether all are gone."""
        return self._runners.close(clean)
