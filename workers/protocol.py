"""What a worker and its supervisor say to each other: the words of the pipe, the signal, the exit codes.

Both sides import this; standard library only. The worker writes ASCII lines into the pipe whose number stands in
FD_VARIABLE; the supervisor answers with signals alone.
"""

import math
import re
import signal
from dataclasses import dataclass, field

FD_VARIABLE = "TURNO_SUPERVISOR_FD"
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
_WORD = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def worker(worker_id: str) -> bytes:
    """The id under which the worker registers."""
    return f"worker {worker_id}\n".encode()


def grace(seconds: float) -> bytes:
    """How long running jobs may go on after the first STOP."""
    return f"grace {seconds:.3f}\n".encode()


def ready() -> bytes:
    """The worker takes work."""
    return b"ready\n"


def kill_at(instant: float | None) -> bytes:
    """When everything that runs must be dead, in seconds of `workers.clock.boottime`; None: nothing runs."""
    return b"kill-at never\n" if instant is None else f"kill-at {instant:.3f}\n".encode()


@dataclass(slots=True)
class StopRequests:
    """How often one was asked to stop: 1 is "stop", more is "at once". `counted`: the signals that count each time;
    of all others only that one came."""

    counted: tuple[int, ...] = (STOP,)
    _times: int = 0
    _once: int = 0

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


@dataclass(slots=True)
class Told:
    """What a worker has said so far. `grace` is None until it is told; `wrong` counts lines that are none of ours."""

    worker: str | None = None
    grace: float | None = None
    ready: bool = False
    kill_at: float | None = None
    wrong: int = 0
    _rest: bytes = field(default=b"")

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
        elif word == b"worker" and _WORD.fullmatch(value):
            self.worker = value.decode()
        elif word == b"grace" and (seconds := _number(value)) is not None:
            self.grace = seconds
        elif word == b"kill-at" and (instant := _number(value)) is not None:
            self.kill_at = instant
        else:
            return False
        return True


def _number(text: bytes) -> float | None:
    """Not negative and finite, or None."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
