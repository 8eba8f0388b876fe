"""What runs handlers in a worker: the loop of coroutines, threads, child processes. Each execution goes where its type
says."""

import asyncio
from collections.abc import Callable, Sequence

from django.utils.translation import gettext as _

from jobs.outcomes import Ending
from workers.execution import Execution
from workers.isolation import ForkServer, HandlerLoop, ProcessPool, ThreadPool
from workers.leases import Held


class Runners:
    """Made and used on the engine's loop; `ended` is called with each end, in the thread in which it came. At most
    `most` executions run at once. Without a `forkserver` plain handlers run in threads."""

    def __init__(self, most: int, forkserver: ForkServer | None, ended: Callable[[Execution, Ending], None]) -> None:
        self._call_later = asyncio.get_running_loop().call_later
        self._timers: dict[Held, asyncio.TimerHandle] = {}
        self.handlers = HandlerLoop(ended)
        self._threads = ThreadPool(most, ended)
        self._processes = None if forkserver is None else ProcessPool(forkserver, ended)
        self.handlers.start()
        if self._processes is not None:
            self._processes.start()

    def start(self, executions: Sequence[Execution]) -> None:
        """Start them."""
        coroutines, processes, threads = list[Execution](), list[Execution](), list[Execution]()
        for execution in executions:
            own_process = execution.isolation == "process" and self._processes is not None
            (coroutines if execution.isolation == "async" else processes if own_process else threads).append(execution)
        if coroutines:
            self.handlers.start_all(coroutines)
        for execution in threads:  # the handlers' loop and the child processes keep their own time
            self._timers[execution.held] = self._call_later(execution.limit, execution.time_out)
        if processes and self._processes is not None:
            self._processes.start_all(processes)
        if threads:
            self._threads.start_all(threads)

    def forget(self, held: Held) -> None:
        """Its end is written."""
        timer = self._timers.pop(held, None)
        if timer is not None:
            timer.cancel()

    def drain(self) -> None:
        """The worker is about to end."""
        if self._processes is not None:
            self._processes.drain()

    def dead_parts(self) -> list[str]:
        """What has died, which none may: threads, and the processes when none can be had any more."""
        threads = (self.handlers, self._processes)
        dead = [thread.name for thread in threads if thread is not None and not thread.is_alive()]
        broken = None if self._processes is None else self._processes.broken
        return dead if broken is None else [*dead, f"child processes: {broken}"]

    def problems(self) -> list[dict[str, str]]:
        """What people should know: that no process can be had for plain handlers at the moment."""
        trouble = None if self._processes is None else self._processes.trouble
        if trouble is None:
            return []
        return [{"part": "processes", "error": _("No process can be started for jobs: %(why)s") % {"why": trouble}}]

    def close(self, clean: bool) -> bool:
        """End; not `clean`: some handlers run on. Child processes are killed; whether all are gone."""
        gone = self._processes is None or self._processes.close()
        self._threads.close()
        if clean:
            self.handlers.close()
        return gone
