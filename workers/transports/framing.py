"""Frames of AMQP 0-9-1 as they stand on the wire: a delivery with its properties and its body, read in one go.

A message comes as three frames: the method says which consumer it is for, the header has the properties, then the body.
"""

from struct import Struct
from typing import Final, NamedTuple

KINDS = METHOD, HEADER, BODY = 1, 2, 3
EMPTY = 8  # bytes of a frame with nothing in it: its kind, channel and size, and the last byte
END = 206
DELIVER = b"\x00\x3c\x00\x3c"  # class and method
NOTHING = bytes(8)
SIZE, BODY_SIZE = Struct(">L"), Struct(">Q")
TAG = Struct(">QB")  # the delivery's number, and whether it was brought before
SMALL = 4096  # bytes that each frame may have by the protocol: a message of fewer has its body in one piece


class Whole(NamedTuple):
    """A delivery; `end` is where the next frame begins, `properties` what follows the sizes in the header's frame."""

    end: int
    channel: int
    consumer: str
    tag: int
    redelivered: bool
    properties: bytes
    body: bytes


PART: Final = Whole(0, 0, "", 0, False, b"", b"")


def delivery(data: bytes, at: int) -> Whole | None:
    """The delivery whose first frame begins at `at`: PART while some of a small one is missing, None where there is
    something else, or a larger one that is not all here."""
    if data[at + 7 : at + 11] != DELIVER:
        return None
    channel, ends = data[at + 1 : at + 3], [at]
    for kind in KINDS:
        start = ends[-1]
        end = start + EMPTY + SIZE.unpack_from(data, start + 3)[0] if len(data) >= start + EMPTY else len(data) + 1
        if end > len(data):
            return PART if len(data) - at < SMALL else None
        if data[start] != kind or data[start + 1 : start + 3] != channel or data[end - 1] != END:
            return None
        ends.append(end)
        if kind == HEADER and data[start + 11 : start + 19] == NOTHING:
            ends.append(end)
            break
    _first, header, body, end = ends
    if BODY_SIZE.unpack_from(data, header + 11)[0] != max(0, end - body - EMPTY):
        return None
    name = at + 12 + data[at + 11]
    tag, again = TAG.unpack_from(data, name)
    return Whole(
        end=end,
        channel=int.from_bytes(channel),
        consumer=data[at + 12 : name].decode(),
        tag=tag,
        redelivered=bool(again & 1),
        properties=data[header + 19 : body - 1],
        body=data[body + 7 : end - 1],
    )
