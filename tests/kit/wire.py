"""PostgreSQL's protocol, as much of it as a listener in the middle needs: which statement begins, when it is answered.

Text is latin-1 here: the bytes of a statement as they came, one character each.
"""

import struct

CANCEL, SSL, GSS = 80877102, 80877103, 80877104


class Client:
    """What a client says. `feed` takes bytes as they come and returns the statements that begin in them."""

    def __init__(self) -> None:
        self._buffer = b""
        self._started = False
        self._prepared: dict[bytes, str] = {}
        self._bound: dict[bytes, str] = {}

    def feed(self, data: bytes) -> list[str]:
        """The texts of the statements whose execution these bytes ask for, in order."""
        self._buffer += data
        texts = []
        while (message := self._next()) is not None:
            kind, body = message
            text = self._statement(kind, body)
            if text is not None:
                texts.append(text)
        return texts

    def _next(self) -> tuple[bytes, bytes] | None:
        skip = 1 if self._started else 0  # the first message has no letter
        if len(self._buffer) < skip + 4:
            return None
        [length] = struct.unpack_from("!i", self._buffer, skip)
        if len(self._buffer) < skip + length:
            return None
        kind, body = self._buffer[:skip], self._buffer[skip + 4 : skip + length]
        self._buffer = self._buffer[skip + length :]
        if not self._started:
            [code] = struct.unpack_from("!i", body)
            self._started = code not in (CANCEL, SSL, GSS)
        return kind, body

    def _statement(self, kind: bytes, body: bytes) -> str | None:
        """Parse and Bind are remembered by name; a simple query and an Execute begin something."""
        if kind == b"Q":
            return body.rstrip(b"\0").decode("latin-1")
        if kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            self._prepared[name] = text.decode("latin-1")
        elif kind == b"B":
            portal, name, _ = body.split(b"\0", 2)
            self._bound[portal] = self._prepared.get(name, "")
        elif kind == b"E":
            return self._bound.get(body.split(b"\0", 1)[0], "")
        return None


class Server:
    """What a server says. `feed` returns the transaction status (I, T, E) of each ReadyForQuery in the bytes.

    `rows` counts what the statements answered with or changed, since the caller set it to 0.
    """

    def __init__(self) -> None:
        self._buffer = b""
        self.rows = 0

    def feed(self, data: bytes) -> list[str]:
        self._buffer += data
        found, at = [], 0
        while len(self._buffer) >= at + 5:
            [length] = struct.unpack_from("!i", self._buffer, at + 1)
            if len(self._buffer) < at + 1 + length:
                break
            kind, body = self._buffer[at : at + 1], self._buffer[at + 5 : at + 1 + length]
            if kind == b"Z":
                found.append(body.decode())
            elif kind == b"C":  # such as "UPDATE 3"
                count = body.rstrip(b"\0").split()[-1]
                self.rows += int(count) if count.isdigit() else 0
            at += 1 + length
        self._buffer = self._buffer[at:]
        return found


class Unread:
    """What a client or a server says of which nobody here understands a word."""

    rows = 0

    def feed(self, data: bytes) -> list[str]:
        return []
