"""Threads for plain handlers: cooperative. A thread can't be killed, so one that ignores the word keeps its slot."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from django.db import connections

from jobs.outcomes import Ending
from workers.execution import Execution

Done = Callable[[Execution, Ending], None]


class ThreadPool:
    """Runs executions in threads; `done` is called in the thread with each end. The engine keeps their time limits."""

    def __init__(self, size: int, done: Done) -> None:
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="turno-job")
        self._done = done

    def start_all(self, executions: Sequence[Execution]) -> None:
        """Start executions; called from the engine."""
        for execution in executions:
            self._pool.submit(self._run, execution)

    def _run(self, execution: Execution) -> None:
        try:
            ending = execution.run()
        finally:
            # The handler's own ORM connections: none stays open, none stays in a transaction that it forgot (which
            # closing alone would not undo: the thread gets new ones).
            for connection in connections.all(initialized_only=True):
                connection.close()
                del connections[connection.alias]
        self._done(execution, ending)

    def close(self) -> None:
        """Take nothing more; what runs is left to end."""
        self._pool.shutdown(wait=False, cancel_futures=True)
