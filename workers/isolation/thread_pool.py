"""Threads for plain handlers: cooperative. A thread can't be killed, so one that ignores the word keeps its slot."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from jobs.outcomes import Ending
from workers.connections import close_handler_connections
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
        execution.held.thread = threading.get_ident()
        try:
            ending = execution.run()
        finally:
            close_handler_connections()
        self._done(execution, ending)

    def close(self) -> None:
        """Take nothing more; what runs is left to end."""
        self._pool.shutdown(wait=False, cancel_futures=True)
