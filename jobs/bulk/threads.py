"""The threads of this process that work on runs: a few at once, each on one run to its end, then on the next.

They are daemons: a process that dies leaves its runs to whichever asks next (`store.take`), from their last batch on.
"""

import logging
import threading
import time
from uuid import UUID

from django.db import DatabaseError, InterfaceError, OperationalError, connections

from jobs.bulk import store
from jobs.bulk.steps import BATCH, Lost, held, step
from jobs.bulk.store import Run
from jobs.ids import new_id
from jobs.text import clean, first_line
from jobs.transitions.sql import refused

log = logging.getLogger(__name__)
THREADS = 3
PATIENCE = 60.0  # seconds that a database which does not answer is asked again; after that the next who looks goes on
PAUSES = (0.1, 0.5, 1.0, 2.0)
ERROR_LENGTH = 500


class Crew:
    """The threads; one crew a process."""

    def __init__(self, size: int = THREADS) -> None:
        self._size = size
        self._threads: list[threading.Thread] = []
        self._change = threading.Condition()

    def wake(self) -> None:
        """Somebody has a run that nobody works on: start one more thread, unless all are busy (they take it next)."""
        with self._change:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            if len(self._threads) < self._size:
                thread = threading.Thread(target=self._work, name="turno-bulk", daemon=True)
                self._threads.append(thread)
                thread.start()

    def wait(self, id_: UUID, seconds: float) -> Run | None:
        """The run when it has ended, or as it stands when the seconds are over; woken by this process's threads."""
        deadline = time.monotonic() + seconds
        with self._change:
            while True:
                run = store.get(id_)
                left = deadline - time.monotonic()
                if run is None or run.ended or left <= 0:
                    return run
                self._change.wait(left)

    def join(self, seconds: float = 20.0) -> None:
        """Wait until no thread is left, so many seconds for each (tests)."""
        for thread in list(self._threads):
            thread.join(seconds)

    def _work(self) -> None:
        try:
            while (run := store.take(new_id())) is not None:
                work(run)
                with self._change:
                    self._change.notify_all()
        except DatabaseError as error:
            log.warning("bulk.interrupted", extra={"error": first_line(error)})
        finally:
            connections.close_all()
            with self._change:
                if threading.current_thread() in self._threads:
                    self._threads.remove(threading.current_thread())
                self._change.notify_all()


class _Trouble:
    """A database that does not answer: how often it was asked in vain, and since when."""

    def __init__(self) -> None:
        self._times = 0
        self._since = 0.0

    def __bool__(self) -> bool:
        return self._times > 0

    def note(self, run: Run, error: DatabaseError) -> None:
        """Wait a moment, with no connection kept. Raises the error again when it has lasted for PATIENCE seconds."""
        log.warning("bulk.trouble", extra={"run": str(run.id), "error": first_line(error)})
        connections.close_all()
        self._since = self._since or time.monotonic()
        if time.monotonic() - self._since > PATIENCE:
            raise error
        time.sleep(PAUSES[min(self._times, len(PAUSES) - 1)])
        self._times += 1


def work(run: Run) -> None:
    """Work on a run that was taken, batch by batch, until it ends, is stopped, or is another's.

    Raises DatabaseError when the database did not answer for PATIENCE seconds: whoever looks next goes on.
    """
    size, trouble = BATCH, _Trouble()
    while run.state == "running":
        try:
            if trouble:  # the commit in doubt may have counted: only the row knows
                run = held(run)
            done = step(run, size)
        except Lost:
            return
        except (OperationalError, InterfaceError) as error:
            if refused(error):
                _fail(run, error)
                return
            trouble.note(run, error)
            continue
        except Exception as error:  # noqa: BLE001  (a fault of ours, or a filter of another version: said, not repeated)
            _fail(run, error)
            return
        run, size, trouble = done.run, done.size, _Trouble()
        if done.last:
            store.end(run, "done")
            return
    store.end(run, "stopped")


def _fail(run: Run, error: Exception) -> None:
    log.error("bulk.failed", extra={"run": str(run.id)}, exc_info=error)
    store.end(run, "failed", clean(f"{type(error).__name__}: {first_line(error)}", ERROR_LENGTH))


crew = Crew()
