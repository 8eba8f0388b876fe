"""The wire between a worker and its child processes: frames, each a length of four bytes and a body.

The worker is trusted and sends pickles. A child runs handlers, so it sends JSON only, and whatever comes from it is
read as from a stranger: nothing that a handler does may hurt its worker.
"""

import json
import pickle
import struct
from collections.abc import Iterator
from dataclasses import fields
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from jobs.conf import conf
from jobs.outcomes import Claim

HEADER = struct.Struct("!I")
JOB_HEADER = struct.Struct("!IQ")  # of a job: the bytes of its body, and its number
ROOM = 4 * 1024**2  # bytes, beside results and lines
_encode = json.JSONEncoder(separators=(",", ":")).encode  # what orjson refuses: halves of characters
_of_claim = attrgetter(*(field.name for field in fields(Claim)))


class BrokenFrame(Exception):
    """What a child sent is no frame, or is larger than a frame can be."""


class Job(NamedTuple):
    """What a child gets. `number` counts what was sent to it, `deadline` is the end of the lease, `last`: nothing comes
    after."""

    number: int
    claim: Claim
    deadline: float
    folder: str
    last: bool


def longest() -> int:
    """The most bytes that a frame's body may have: JSON writes one byte of text as six at most."""
    limits = conf().limits
    return ROOM + 6 * (limits.result + limits.log_bytes)


def pack_job(job: Job) -> bytes:
    """A frame for a child. Its claim goes as plain values: a dataclass by itself takes five times as long to read."""
    number, claim, *others = job
    id_, token, *values = _of_claim(claim)
    body = pickle.dumps((id_.int, token.int, values, others), pickle.HIGHEST_PROTOCOL)
    return JOB_HEADER.pack(len(body), number) + body


def size_and_number(frame: bytes) -> tuple[int, int]:
    """The bytes that a job's frame has, and the job's number, by its beginning."""
    size, number = JOB_HEADER.unpack_from(frame)
    return JOB_HEADER.size + size, number


def unpack_job(frame: bytes) -> Job:
    """What `pack_job` packed."""
    _, number = JOB_HEADER.unpack_from(frame)
    # (The worker wrote it.)
    id_, token, values, others = pickle.loads(memoryview(frame)[JOB_HEADER.size :])  # noqa: S301
    return Job(number, Claim(UUID(int=id_), UUID(int=token), *values), *others)


def pack(*message: Any) -> bytes:
    """A frame for the worker: a word, and what belongs to it."""
    try:
        body = orjson.dumps(message)
    except TypeError:
        body = _encode(message).encode()
    return HEADER.pack(len(body)) + body


class Decoder:
    """Frames out of a stream of bytes."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._longest = longest()

    def feed(self, data: bytes) -> Iterator[list[Any]]:
        """The messages that are complete with `data`, one after another, to be taken all. Raises BrokenFrame after
        those that come before what is broken; then nothing can be read any more."""
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            (size,) = HEADER.unpack_from(self._buffer)
            if size > self._longest:
                raise BrokenFrame(f"a frame of {size} bytes")
            end = HEADER.size + size
            if len(self._buffer) < end:
                return
            message = _message(bytes(self._buffer[HEADER.size : end]))
            del self._buffer[:end]
            yield message


def _patiently(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BrokenFrame(f"no JSON: {error}") from None


def _message(body: bytes) -> list[Any]:
    try:
        message = orjson.loads(body)
    except ValueError:
        message = _patiently(body)
    if not isinstance(message, list) or not message:
        raise BrokenFrame("no message")
    return message
