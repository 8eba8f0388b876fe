"""The commands that a test gives to the peer of Service Bus, as JSON lines: `{"do": name, …}`, one answer a line."""

import base64
import json
import sys
from typing import TYPE_CHECKING, Any

from proton import Message

from tests.kit.servicebus_queues import Queue

if TYPE_CHECKING:
    from tests.kit.servicebus_peer import Peer


class Control:
    """Each method named `do_…` is a command; its arguments are the line's other keys. Runs in the peer's thread."""

    def __init__(self, peer: "Peer") -> None:
        self._peer = peer

    def answer(self, line: str) -> None:
        """Do it and print what came of it: `{"answer": …}` or `{"error": …}`."""
        command: dict[str, Any] = json.loads(line)
        try:
            answer = getattr(self, f"do_{command.pop('do')}")(**command)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            told = {"error": f"{type(error).__name__}: {error}"}
        else:
            told = {"answer": answer}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()

    def do_create(self, queues: list[str]) -> None:
        """Make queues; those that exist stay as they are."""
        for name in queues:
            self._peer.namespace.create(name)

    def do_delete(self, queue: str) -> None:
        """Without the queue; links that are there bring nothing any more."""
        self._peer.namespace.delete(queue)

    def do_counts(self) -> dict[str, dict[str, int]]:
        """By queue, dead-letter queues included: ready, locked, completed."""
        return {queue.name: queue.counts() for queue in self._peer.namespace}

    def do_connections(self) -> dict[str, int]:
        """Connections now, and links of receivers so far."""
        return {"connections": len(self._peer.connections), "receivers": self._peer.opened}

    def do_messages(self, queue: str) -> list[dict[str, Any]]:
        """What a queue holds, the oldest first; bodies in base64."""
        return [
            {
                "id": stored.payload.id,
                "body": base64.b64encode(bytes(stored.payload.body)).decode(),
                "deliveries": stored.deliveries,
                "reason": stored.reason,
                "properties": stored.payload.properties,
            }
            for stored in self._queue(queue).browse(0, 10_000)
        ]

    def do_take(self, queue: str) -> list[dict[str, Any]]:
        """As `messages`, and then they are gone."""
        found = self.do_messages(queue)
        self._queue(queue).clear()
        return found

    def do_inject(self, queue: str, body: str, ttl: float | None = None) -> None:
        """A message with this body (base64), from nobody; `ttl` in seconds."""
        message = Message(body=base64.b64decode(body))
        message.inferred = True
        found = self._queue(queue)
        found.add(message, ttl=ttl)
        self._peer.pump(found)

    def do_duplicate(self, queue: str) -> int:
        """Every message that waits once more; how many."""
        found = self._queue(queue)
        again = [stored.payload for stored in found.ready]
        for payload in again:
            copy = Message()
            copy.decode(payload.encode())
            found.add(copy)
        return len(again)

    def do_lose(self, queue: str | None = None) -> None:
        """All messages of a queue, or of all queues, are gone."""
        for found in self._peer.namespace if queue is None else [self._queue(queue)]:
            found.clear()

    def do_expire_locks(self, queue: str) -> None:
        """Every lock of the queue is lost now."""
        found = self._queue(queue)
        found.expire_locks()
        self._peer.pump(found)

    def do_bury(self, queue: str, reason: str) -> int:
        """What waits goes into the dead-letter queue; how many."""
        return self._queue(queue).bury(reason)

    def do_refuse(self, queue: str, condition: str | None) -> None:
        """Reject what is sent to the queue, by this condition; None: accept it again."""
        self._peer.refused.pop(queue.lower(), None)
        if condition is not None:
            self._peer.refused[queue.lower()] = condition

    def do_bar(self, queue: str, condition: str | None) -> None:
        """Refuse the links to the queue, by this condition; None: accept them again."""
        self._peer.barred.pop(queue.lower(), None)
        if condition is not None:
            self._peer.barred[queue.lower()] = condition

    def do_token(self, status: int = 202, words: str = "Accepted") -> None:
        """The answer to each token from now on; 401: the key is wrong."""
        self._peer.token = status, words

    def do_detach(self, queue: str, condition: str, words: str) -> int:
        """End the links of who receives from the queue; how many."""
        return self._peer.detach(queue.lower(), condition, words)

    def do_close(self, condition: str, words: str) -> None:
        """End every connection in order, with this reason."""
        self._peer.close(condition, words)

    def do_drop(self) -> None:
        """Every connection ends at once."""
        self._peer.drop()

    def do_leave(self) -> None:
        """Every connection ends, and new ones are refused, until `do_return`. The messages stay."""
        self._peer.leave()

    def do_return(self) -> None:
        """Accept connections again."""
        self._peer.listen()

    def _queue(self, name: str) -> Queue:
        found = self._peer.namespace.find(name)
        if found is None:
            raise KeyError(name)
        return found
