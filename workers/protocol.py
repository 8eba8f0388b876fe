"""What a worker and its supervisor say to each other: the words of the pipe, the signal, variables, the exit codes.

Both sides import this; the standard library's small parts only (`dataclasses` alone would be a fifth of what the
supervisor's process has in memory). The worker writes ASCII lines into the pipe whose number stands in
FD_VARIABLE; the supervisor answers with signals alone.
"""

import math
import re
import signal

# Whose a process is shows in the environment that its program was started with, which a fork does not change:
# the worker and what it forked have both of these, what handlers started the first alone, as the worker drops the
# other; and what children and trials of modules started has the third as well.
WORKER_VARIABLE = "TURNO_WORKER_ID"  # the worker's id, made by its supervisor
FD_VARIABLE = "TURNO_SUPERVISOR_FD"
CHILD_VARIABLE = "TURNO_CHILD"
VARIABLES = (WORKER_VARIABLE, FD_VARIABLE, CHILD_VARIABLE)
# "Stop", and sent again "return everything at once". A signal of its own, since the service manager sends its SIGTERM
# to the supervisor and to the worker (as a terminal does with Ctrl-C): the worker would count the supervisor's as the
# second. So the worker counts STOP, and takes ASKED for a first stop only, however many come.
STOP = signal.SIGUSR2
ASKED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

EXIT_FAILED = 1  # something of the worker broke
EXIT_USAGE = 2  # wrong arguments
EXIT_LATE = 70  # a handler outlived its lease and could not be stopped: the process ends with it
EXIT_LEFT = 75  # an end in order, but handlers were left running: kill them, then give their jobs back

LONGEST_LINE = 200  # bytes; what is longer is no line of ours
_ID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_worker_id(text: str) -> bool:
    """Whether a text is an id as `worker` says it."""
    return _ID.fullmatch(text.encode(errors="replace")) is not None


def worker(worker_id: str) -> bytes:
    """The id under which the worker registers."""
    return f"worker {worker_id}\n".encode()


def grace(seconds: float, kill: float) -> bytes:
    """How long running jobs may go on after the first STOP, and how long after that their handlers, asked to end."""
    return f"grace {seconds:.3f} {kill:.3f}\n".encode()


def ready() -> bytes:
    """The worker takes work."""
    return b"ready\n"


def kill_at(instant: float | None) -> bytes:
    """When everything that runs must be dead, in seconds of `workers.clock.boottime`; None: nothing runs."""
    return b"kill-at never\n" if instant is None else f"kill-at {instant:.3f}\n".encode()


class StopRequests:
    """How often one was asked to stop: 1 is "stop", more is "at once". `counted`: the signals that count each time;
    of all others only that one came."""

    def __init__(self, counted: tuple[int, ...] = (STOP,)) -> None:
        self.counted = counted
        self._times = self._once = 0

    def note(self, number: int) -> None:
        """A signal came. Called by signal handlers."""
        if number in self.counted:
            self._times += 1
        else:
            self._once = 1

    @property
    def asked(self) -> int:
        """How often."""
        return max(self._times, self._once)


class Told:
    """What a worker has said so far. `grace`, with the handlers' own, is None until it is told; `wrong` counts lines
    that are none of ours."""

    def __init__(self) -> None:
        self.worker: str | None = None
        self.grace: tuple[float, float] | None = None
        self.ready = False
        self.kill_at: float | None = None
        self.wrong = 0
        self._rest = b""

    def hear(self, data: bytes) -> None:
        """Take in what the pipe held. Anything may come: what is not understood is counted, never raised."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if len(line) > LONGEST_LINE or not self._understood(line):
                self.wrong += 1
        if len(self._rest) > LONGEST_LINE:  # its end will be wrong too, and is counted then
            self._rest = self._rest[: LONGEST_LINE + 1]

    def _understood(self, line: bytes) -> bool:
        word, _, value = line.partition(b" ")
        if line == b"ready":
            self.ready = True
        elif line == b"kill-at never":
            self.kill_at = None
        elif word == b"worker" and _ID.fullmatch(value):
            self.worker = value.decode()
        elif word == b"grace" and (pair := _numbers(value)) is not None:
            self.grace = pair
        elif word == b"kill-at" and (instant := _number(value)) is not None:
            self.kill_at = instant
        else:
            return False
        return True


def _numbers(text: bytes) -> tuple[float, float] | None:
    first, _, second = text.partition(b" ")
    found = _number(first), _number(second)
    return None if found[0] is None or found[1] is None else (found[0], found[1])


def _number(text: bytes) -> float | None:
    """Not negative and finite, or None."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
