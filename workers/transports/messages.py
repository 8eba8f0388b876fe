"""What a message holds: the id of a job and its dispatch token, as JSON; of a dead letter what people read.

A message is a hint that names a job: whatever it says, only the claim decides (law 4). So nothing in it is trusted.
"""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from jobs.bounds import ERROR_SUFFIX, PRIORITIES

VERSION = 1
LONGEST = 4096  # bytes of a dispatch: ours have about a hundred
CONTENT_TYPE = "application/json"


class Garbage(Exception):
    """A body that is none of our messages; the text is the reason, for the queue of what can't be processed."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One entry of a job into Enqueued, on its way to a worker. `priority` as the job has it, -10..10."""

    job: UUID
    token: UUID
    queue: str
    priority: int = 0

    def body(self) -> bytes:
        """The message's body."""
        return orjson.dumps({"v": VERSION, "job": str(self.job), "token": str(self.token)})

    @property
    def id(self) -> str:
        """The message's own id: the token, so that a broker that drops duplicates may do so."""
        return str(self.token)

    @property
    def level(self) -> int:
        """The priority counted from 0, as brokers do: 0..20, the larger first."""
        return self.priority - PRIORITIES[0]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A job that ended Failed, for who listens to the broker: `letter` is JSON-ready."""

    job: UUID
    letter: dict[str, Any]

    def body(self) -> bytes:
        """The message's body."""
        return orjson.dumps(self.letter)

    @property
    def id(self) -> str:
        """The letter's id."""
        return str(self.letter.get("letter", self.job))


def error_queue(queue: str) -> str:
    """The queue of what came by `queue` and can't be processed."""
    return f"{queue}{ERROR_SUFFIX}"


def read(body: bytes, queue: str) -> Dispatch:
    """The dispatch that was delivered on `queue`. Raises Garbage."""
    if len(body) > LONGEST:
        raise Garbage(f"the body has {len(body)} bytes; a message of Turno has at most {LONGEST}")
    try:
        message = _json(body)
    except (ValueError, RecursionError):
        raise Garbage("the body is no JSON") from None
    if not isinstance(message, dict):
        raise Garbage("the body is no JSON object")
    if message.get("v") != VERSION:
        raise Garbage(f"the version of the message is not {VERSION}")
    ids = []
    for name in ("job", "token"):
        try:
            ids.append(UUID(message.get(name)))
        except (ValueError, TypeError, AttributeError):
            raise Garbage(f"{name!r} is no UUID") from None
    return Dispatch(ids[0], ids[1], queue)


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except ValueError:
        return json.loads(body)  # it takes what is longer or deeper, or says why not
