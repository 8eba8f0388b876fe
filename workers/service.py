"""What all routines share: waking, a full batch at once again, jitter, backoff after an error, stopping."""

import asyncio
import logging
import random
from collections.abc import Callable
from concurrent.futures import Executor

from jobs.text import first_line
from workers.connections import DATABASE_ERRORS, drop_connection

log = logging.getLogger(__name__)


class Service:
    """A routine: `run_once` does one batch in a thread and says how much it did.

    `interval` is the seconds between runs, or a function asked after each run (such as: until the next due job).
    `batch` is the size of a full batch: after one the routine runs again at once. An exclusive routine runs in the
    leader only; `led` says whether it was this worker's to do the last time. An error is logged, makes the routine wait
    longer, and stops nothing else.
    """

    def __init__(
        self,
        name: str,
        run_once: Callable[[], int],
        *,
        interval: float | Callable[[], float],
        batch: int | None = None,
        exclusive: bool = True,
    ) -> None:
        self.name = name
        self._run_once = run_once
        self._interval = interval
        self._batch = batch
        self.exclusive = exclusive
        self._wake = asyncio.Event()
        self.failures = 0
        self.led = False

    def wake(self) -> None:
        """Run as soon as possible; call it on the loop."""
        self._wake.set()

    def step(self, leads: Callable[[], bool]) -> tuple[int, float]:
        """In a thread: one batch, when it is ours to do, and the seconds until the next."""
        self.led = not self.exclusive or leads()
        if not self.led:
            return 0, self._interval if isinstance(self._interval, float) else 2.0
        done = self._run_once()
        return done, self._interval() if callable(self._interval) else self._interval

    async def run(self, executor: Executor, leads: Callable[[], bool]) -> None:
        """Run until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            pause = 1.0
            try:
                done, pause = await loop.run_in_executor(executor, guarded, lambda: self.step(leads))
                self.failures = 0
                if self._batch is not None and done >= self._batch:
                    continue
            except DATABASE_ERRORS as error:
                self.failures += 1
                pause = min(5.0, 0.2 * 2 ** min(self.failures, 6))
                if self.failures == 1:
                    log.warning("service.database_away", extra={"service": self.name, "error": first_line(error)})
            except Exception:
                self.failures += 1
                pause = min(60.0, 1.0 * 2 ** min(self.failures, 6))
                log.exception("service.failed", extra={"service": self.name})
            if not callable(self._interval):  # a routine that waits for an instant must not be late
                pause *= random.uniform(0.9, 1.1)  # noqa: S311  (spreads workers, guards nothing)
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                pass


def guarded[T](work: Callable[[], T]) -> T:
    """Run `work` on this thread's engine connection, which is dropped after any error."""
    try:
        return work()
    except BaseException:
        drop_connection()
        raise
