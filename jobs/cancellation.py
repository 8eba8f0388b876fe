"""The word "stop" that reaches a running handler, in whatever thread or event loop it runs."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from django.utils.translation import gettext

from jobs.errors import JobCancelled, JobError


class CancelFlag:
    """Set once, from any thread; carries the error that says why: JobCancelled, JobTimeout or LeaseLost."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._error: JobError | None = None
        self._callbacks: list[Callable[[], object]] = []

    @property
    def error(self) -> JobError | None:
        """Why it was set; None while it is not."""
        return self._error

    def is_set(self) -> bool:
        """Whether the handler should stop."""
        return self._event.is_set()

    def set(self, error: JobError | None = None) -> bool:
        """Ask the handler to stop, with `error` or else JobCancelled. False when it was asked before."""
        with self._lock:
            if self._event.is_set():
                return False
            self._error = error or JobCancelled(gettext("The job was cancelled."))
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()
        return True

    def wait(self, timeout: float | None = None) -> bool:
        """Block this thread until it is set, at most `timeout` seconds; says whether it is set."""
        return self._event.wait(timeout)

    def raise_if_set(self) -> None:
        """Raise the error that it was set with; nothing when it is not set."""
        if self._error is not None:
            raise self._error.with_traceback(None)

    def when_set(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, in the setter's thread, when it becomes set; at once when it is."""
        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(callback)
                return
        callback()

    def asyncio_event(self, loop: asyncio.AbstractEventLoop) -> asyncio.Event:
        """A new event of `loop` (call it there) that becomes set with this flag."""
        event = asyncio.Event()
        if self.is_set():
            event.set()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop may be closed by then: nobody waits in it any more
                loop.call_soon_threadsafe(event.set)

        self.when_set(wake)
        return event
