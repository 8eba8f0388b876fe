"""The word "stop" that reaches a running handler, in whatever thread or event loop it runs."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from django.utils.translation import gettext

from jobs.errors import JobCancelled, JobError


class CancelFlag:
    """Set once, from any thread; carries the error that says why: JobCancelled, JobTimeout or LeaseLost.

    There is no lock in it. A handler's code may come here in the middle of anything, from a destructor that the
    collector runs or from a signal handler, and would wait for what it has interrupted itself. Each step is one
    operation on a list or a dict, which no thread ever sees half done.
    """

    def __init__(self) -> None:
        self._errors: list[JobError] = []  # the first is the one that counts
        self._callbacks: dict[object, Callable[[], object]] = {}  # whoever takes one out calls it

    @property
    def error(self) -> JobError | None:
        """Why it was set; None while it is not."""
        return self._errors[0] if self._errors else None

    def is_set(self) -> bool:
        """Whether the handler should stop."""
        return bool(self._errors)

    def set(self, error: JobError | None = None) -> bool:
        """Ask the handler to stop, with `error` or else JobCancelled. False when it was asked before."""
        error = error or JobCancelled(gettext("The job was cancelled."))
        if self._errors:
            return False
        self._errors.append(error)
        if self._errors[0] is not error:
            return False
        while self._callbacks:
            try:
                _, callback = self._callbacks.popitem()
            except KeyError:  # another thread has taken the last one
                break
            callback()
        return True

    def wait(self, timeout: float | None = None) -> bool:
        """Block this thread until it is set, at most `timeout` seconds; says whether it is set."""
        bell, key = threading.Lock(), object()
        bell.acquire()
        try:
            self._call_when_set(key, bell.release)
            bell.acquire(timeout=-1 if timeout is None else min(max(0.0, timeout), threading.TIMEOUT_MAX))
        finally:
            self._callbacks.pop(key, None)
        return self.is_set()

    def raise_if_set(self) -> None:
        """Raise the error that it was set with; nothing when it is not set."""
        if self._errors:
            raise self._errors[0].with_traceback(None)

    def when_set(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, in the setter's thread, when it becomes set; at once when it is."""
        self._call_when_set(object(), callback)

    def _call_when_set(self, key: object, callback: Callable[[], object]) -> None:
        self._callbacks[key] = callback
        if self._errors and self._callbacks.pop(key, None) is not None:
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
