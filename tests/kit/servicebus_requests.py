"""What the peer of Service Bus makes of bytes and of requests to a queue's `$management` node: peek, renew, settle."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from proton import UNDESCRIBED, Array, Data, Message, symbol, timestamp

from tests.kit.servicebus_queues import Queue, Stored

LOST = "com.microsoft:message-lock-lost"
PAGE = 250  # messages that one answer shows at most
BATCH = 0x75  # the code of a data section; of a batch each holds a whole message


@dataclass(frozen=True)
class Answer:
    """To a request: HTTP's status, words, the condition of a fault, the body."""

    status: int = 200
    words: str = "OK"
    condition: str = ""
    body: Any = None


UNKNOWN = Answer(501, "not implemented", "amqp:not-implemented")
NO_LOCK = Answer(410, "The lock supplied is invalid.", LOST)


def answer(queue: Queue, operation: str, body: Any) -> Answer:
    """What the queue says to a request."""
    act = {
        "com.microsoft:renew-lock": _renew,
        "com.microsoft:peek-message": _peek,
        "com.microsoft:update-disposition": _dispose,
    }.get(operation)
    return UNKNOWN if act is None else act(queue, body)


def _renew(queue: Queue, body: Any) -> Answer:
    until = [queue.renew(token) for token in body["lock-tokens"].elements]
    times = [millis(instant) for instant in until if instant is not None]
    if len(times) < len(until):
        return NO_LOCK
    return Answer(body={"expirations": Array(UNDESCRIBED, Data.TIMESTAMP, *times)})


def _peek(queue: Queue, body: Any) -> Answer:
    found = queue.browse(int(body["from-sequence-number"]), min(int(body["message-count"]), PAGE))
    if not found:
        return Answer(204, "No content")
    return Answer(body={"messages": [{"message": dressed(stored).encode()} for stored in found]})


def _dispose(queue: Queue, body: Any) -> Answer:
    words = str(body.get("deadletter-reason", "")), str(body.get("deadletter-description", ""))
    act = {
        "completed": queue.complete,
        "abandoned": queue.abandon,
        "suspended": lambda token: queue.set_aside(token, *words),
    }[str(body["disposition-status"])]
    done = [act(token) for token in body["lock-tokens"].elements]
    return Answer() if all(done) else NO_LOCK


def dressed(stored: Stored) -> Message:
    """The message with what the service writes on it."""
    message: Message = stored.payload
    message.delivery_count = stored.deliveries
    message.annotations = {
        symbol("x-opt-sequence-number"): stored.number,
        symbol("x-opt-enqueued-time"): millis(stored.enqueued),
    }
    if stored.reason is not None:
        reason, description = stored.reason
        told = {"DeadLetterReason": reason, "DeadLetterErrorDescription": description}
        message.properties = {**(message.properties or {}), **told}
    return message


def entity(address: str | None) -> str:
    """The name that an address ends in, in lower case."""
    path = urlsplit(address).path if address and "://" in address else address or ""
    return path.strip("/").lower()


def millis(seconds: float) -> timestamp:
    return timestamp(int(seconds * 1000))


def messages_of(raw: bytes) -> list[Message]:
    """The message of a transfer, or those of a batch."""
    bodies, offset = [], 0
    while offset < len(raw):
        data = Data()
        offset += data.decode(raw[offset:])
        data.rewind()
        data.next()
        section = data.get_object()
        if int(section.descriptor) == BATCH:
            bodies.append(bytes(section.value))  # a copy: it lives as long as `data`
    if not bodies or not all(body.startswith(b"\x00S") for body in bodies):
        bodies = [raw]
    found = []
    for body in bodies:
        message = Message()
        message.decode(body)
        found.append(message)
    return found
