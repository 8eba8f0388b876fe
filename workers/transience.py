"""What an error says of the next try: whether it usually passes by itself, never passes, or names an instant.

The errors of a group count, not the group: tasks that run together (`asyncio.TaskGroup`) put one around whatever a
handler raises in them.
"""

import errno
import socket
from urllib.error import URLError

from django.db import InterfaceError, OperationalError

from jobs.errors import Invalid, PermanentJobError, ResultError, Snooze, TransientJobError
from workers.stacks import members

PASSING = (TransientJobError, ConnectionError, TimeoutError, InterruptedError, OperationalError, InterfaceError)
NEVER = (PermanentJobError, Invalid, ResultError)
_UNREACHED = {errno.ENETDOWN, errno.ENETUNREACH, errno.ENETRESET, errno.EHOSTDOWN, errno.EHOSTUNREACH}
# Of libraries that need not be there.
_BY_NAME = {
    "aiohttp.client_exceptions.ClientConnectionError",
    "httpx.NetworkError",
    "httpx.RemoteProtocolError",
    "httpx.TimeoutException",
    "requests.exceptions.ConnectionError",
    "requests.exceptions.Timeout",
}


def is_transient(error: BaseException) -> bool:
    """Whether the same call may work in a moment: a group, if that holds for each of its errors. Never raises."""
    try:
        return all(_passes(one) for one in members(error))
    except Exception:  # noqa: BLE001  (its attributes are a handler's code)
        return False


def is_permanent(error: BaseException) -> bool:
    """Whether the same call will never work: a group, if that holds for one of its errors."""
    return any(issubclass(type(one), NEVER) for one in members(error))


def snooze_of(error: BaseException) -> Snooze | None:
    """The Snooze that was raised; of a group in which nothing else was, the longest. None: something else was."""
    found = members(error)
    snoozes = [one for one in found if isinstance(one, Snooze)]
    return max(snoozes, key=lambda one: one.delay) if snoozes and len(snoozes) == len(found) else None


def _passes(error: BaseException) -> bool:
    kind = type(error)
    if issubclass(kind, NEVER):
        return False
    if issubclass(kind, PASSING):
        return True
    if isinstance(error, URLError):
        return isinstance(error.reason, OSError) and error.reason is not error and _passes(error.reason)
    if isinstance(error, socket.gaierror):
        return error.errno == socket.EAI_AGAIN
    if isinstance(error, OSError) and error.errno in _UNREACHED:
        return True
    return any(f"{base.__module__}.{base.__qualname__}" in _BY_NAME for base in kind.__mro__)
