"""A peer of AMQP 1.0 that answers as Azure Service Bus does: `python -m tests.kit.servicebus_peer PORT LOCK_SECONDS
MAX_DELIVERIES`. It listens on loopback only, keeps everything in memory, and ends with its standard input.

Commands come as JSON lines on standard input (`{"do": "counts"}`), each answered by one line on standard output; see
`Control`. A queue that was not created is refused as not found, as by the service. `tests.kit.servicebus` starts it.
"""

import os
import sys
import threading
import uuid
from contextlib import suppress
from typing import Any

from proton import Condition, Delivery, Endpoint, Handler, Link, Message, ProtonException, Terminus, symbol
from proton.reactor import ApplicationEvent, Container, EventInjector

from tests.kit import servicebus_requests as requests
from tests.kit.servicebus_control import Control
from tests.kit.servicebus_queues import Namespace, Queue
from tests.kit.servicebus_requests import LOST, dressed, entity, messages_of, millis

TICK = 0.02  # seconds between two looks at what expires
CREDIT = 500
MANAGEMENT = "/$management"
CBS = "$cbs"


class Peer(Handler):
    """Lives in proton's one thread; the queues are changed there only."""

    def __init__(self, namespace: Namespace, port: int, injector: EventInjector) -> None:
        self.namespace = namespace
        self.refused: dict[str, str] = {}  # queues whose messages are rejected, with the condition
        self.barred: dict[str, str] = {}  # queues whose links are refused, with the condition
        self.token: tuple[int, str] = (202, "Accepted")  # the answer to a token: HTTP's status, words
        self.connections: set[Any] = set()
        self.opened = 0  # links of receivers so far
        self._port = port
        self._injector = injector
        self._acceptor: Any = None
        self._container: Any = None
        self._readers: list[tuple[str, Link]] = []
        self._repliers: list[tuple[str, Link]] = []
        self._out: dict[Delivery, tuple[Queue, uuid.UUID]] = {}

    # The life of the process and its connections

    def on_reactor_init(self, event: Any) -> None:
        self._container = event.reactor
        self._container.selectable(self._injector)
        self.listen()
        self._container.schedule(TICK, self)
        sys.stdout.write("ready\n")
        sys.stdout.flush()

    def listen(self) -> None:
        """Accept connections."""
        if self._acceptor is None:
            self._acceptor = self._container.listen(f"127.0.0.1:{self._port}")

    def leave(self) -> None:
        """Accept none, and end those that there are."""
        if self._acceptor is not None:
            self._acceptor.close()
            self._acceptor = None
        self.drop()

    def drop(self) -> None:
        """End every connection without a word of the protocol."""
        for connection in list(self.connections):
            if connection.transport is not None:
                with suppress(ProtonException):
                    connection.transport.close_tail()
                with suppress(ProtonException):
                    connection.transport.close_head()

    def detach(self, queue: str, condition: str, words: str) -> int:
        """End the links of who receives from the queue, and say why; how many."""
        links = [link for name, link in self._readers if name == queue]
        for link in links:
            self._unlink(link)
            link.condition = _condition(condition, words)
            link.close()
        return len(links)

    def close(self, condition: str, words: str) -> None:
        """End every connection as the protocol has it, and say why."""
        self._readers.clear()  # nothing is brought to them any more
        for connection in list(self.connections):
            connection.condition = _condition(condition, words)
            connection.close()

    def on_timer_task(self, _event: Any) -> None:
        for queue in self.namespace:
            queue.tick()
            self.pump(queue)
        self._container.schedule(TICK, self)

    def on_control(self, event: Any) -> None:
        Control(self).answer(event.subject)

    def on_connection_remote_open(self, event: Any) -> None:
        self.connections.add(event.connection)
        event.connection.open()

    def on_session_remote_open(self, event: Any) -> None:
        event.session.open()

    def on_connection_remote_close(self, event: Any) -> None:
        event.connection.close()

    def on_session_remote_close(self, event: Any) -> None:
        event.session.close()

    def on_transport_closed(self, event: Any) -> None:
        gone = event.connection
        self.connections.discard(gone)
        self._readers = [(name, link) for name, link in self._readers if link.connection != gone]
        self._repliers = [(name, link) for name, link in self._repliers if link.connection != gone]
        # What it held stays locked until the lock's end: nobody gives it back.
        self._out = {delivery: held for delivery, held in self._out.items() if delivery.link.connection != gone}

    # Links

    def on_link_remote_open(self, event: Any) -> None:
        link = event.link
        name = entity(link.remote_source.address if link.is_sender else link.remote_target.address)
        if name != CBS and self.namespace.find(name.removesuffix(MANAGEMENT)) is None:
            link.condition = Condition("amqp:not-found", f"The messaging entity '{name}' could not be found.")
            link.source.type = link.target.type = Terminus.UNSPECIFIED  # a refused link is attached without either
            link.open()
            link.close()
            return
        if name in self.barred:
            link.condition = _condition(self.barred[name], "barred by the test")
            link.source.type = link.target.type = Terminus.UNSPECIFIED
            link.open()
            link.close()
            return
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        link.snd_settle_mode = link.remote_snd_settle_mode
        link.rcv_settle_mode = link.remote_rcv_settle_mode
        link.open()
        if link.is_receiver:
            link.flow(CREDIT)
        elif "$management" in name or name == CBS:
            self._repliers.append((name, link))
        else:
            self.opened += 1
            self._readers.append((name, link))

    def on_link_remote_close(self, event: Any) -> None:
        self._unlink(event.link)
        event.link.close()

    def on_link_remote_detach(self, event: Any) -> None:
        self._unlink(event.link)
        event.link.detach()

    def _unlink(self, link: Link) -> None:
        self._readers = [(name, other) for name, other in self._readers if other != link]

    def on_link_flow(self, event: Any) -> None:
        link = event.link
        if link.is_sender:
            for name, reader in self._readers:
                if reader == link and (queue := self.namespace.find(name)) is not None:
                    self.pump(queue)
            if link.drain_mode:
                link.drained()

    def pump(self, queue: Queue) -> None:
        """Messages that wait, to the links that have credit, in turn."""
        links = [link for name, link in self._readers if name == queue.name and not link.state & Endpoint.REMOTE_CLOSED]
        while open_ones := [link for link in links if link.credit > 0]:
            for link in open_ones:
                taken = queue.take()
                if taken is None:
                    return
                token, lock = taken
                message = dressed(lock.stored)
                message.annotations[symbol("x-opt-locked-until")] = millis(lock.until)
                self._out[link.send(message, tag=token.bytes_le)] = (queue, token)

    # What comes, and what becomes of what was sent

    def on_delivery(self, event: Any) -> None:
        delivery, link = event.delivery, event.link
        if link.is_sender:
            if delivery.updated and delivery in self._out:
                self._settled(delivery)
        elif delivery.readable and not delivery.partial:
            raw = link.recv(delivery.pending) or b""
            link.advance()
            link.flow(1)
            name = entity(link.target.address)
            if name in self.refused:
                self._reject(delivery, self.refused[name], "refused by the test")
                return
            self._arrived(name, link, raw)
            delivery.update(Delivery.ACCEPTED)
            delivery.settle()

    def _arrived(self, name: str, link: Link, raw: bytes) -> None:
        if name == CBS:
            [request] = messages_of(raw)
            status, words = self.token
            self._reply(link, name, request, {"status-code": status, "status-description": words}, None)
        elif name.endswith(MANAGEMENT):
            [request] = messages_of(raw)
            self._manage(link, name, request)
        elif (queue := self.namespace.find(name)) is not None:
            for message in messages_of(raw):
                queue.add(message, ttl=message.ttl or None)
            self.pump(queue)

    def _settled(self, delivery: Delivery) -> None:
        queue, token = self._out[delivery]
        state = delivery.remote_state
        condition = delivery.remote.condition
        if state == Delivery.ACCEPTED:
            done = queue.complete(token)
        elif state == Delivery.RELEASED:
            done = queue.release(token)
        elif state == Delivery.MODIFIED:
            done = queue.abandon(token)
        elif state == Delivery.REJECTED:
            info = {str(key): value for key, value in ((condition.info if condition else None) or {}).items()}
            reason, description = info.get("DeadLetterReason"), info.get("DeadLetterErrorDescription")
            done = queue.set_aside(token, str(reason or ""), str(description or ""))
        else:
            return
        del self._out[delivery]
        if not done:
            self._reject(delivery, LOST, "The lock supplied is invalid.")
            return
        if not delivery.settled:
            delivery.update(state)  # the outcome is confirmed by its echo
        delivery.settle()
        self.pump(queue)

    def _reject(self, delivery: Delivery, condition: str, words: str) -> None:
        delivery.local.condition = _condition(condition, words)
        delivery.update(Delivery.REJECTED)
        delivery.settle()

    # Requests

    def _manage(self, link: Link, name: str, request: Message) -> None:
        operation = str((request.properties or {}).get("operation"))
        queue = self.namespace.find(name.removesuffix(MANAGEMENT))
        answer = requests.answer(queue, operation, request.body) if queue is not None else requests.UNKNOWN
        properties: dict[str, Any] = {"statusCode": answer.status, "statusDescription": answer.words}
        if answer.condition:
            properties["errorCondition"] = symbol(answer.condition)
        self._reply(link, name, request, properties, answer.body)
        if queue is not None:
            self.pump(queue)

    def _reply(self, link: Link, name: str, request: Message, properties: dict[str, Any], body: Any) -> None:
        for other, replier in self._repliers:
            if other == name and replier.connection == link.connection:
                replier.send(Message(properties=properties, correlation_id=request.id, body=body))
                return


def _condition(name: str, words: str) -> Condition:
    """A fault as the service tells it, with all of its three parts: clients rely on that."""
    return Condition(name, words, {symbol("x-opt-by"): "the peer"})


def main(arguments: list[str]) -> None:
    """Serve until standard input ends."""
    port, lock_seconds, max_deliveries = int(arguments[0]), float(arguments[1]), int(arguments[2])
    injector = EventInjector()
    threading.Thread(target=_commands, args=(injector,), daemon=True).start()
    Container(Peer(Namespace(lock_seconds, max_deliveries), port, injector)).run()


def _commands(injector: EventInjector) -> None:
    for line in sys.stdin:
        injector.trigger(ApplicationEvent("control", subject=line))
    os._exit(0)  # whoever started it is gone


if __name__ == "__main__":
    main(sys.argv[1:])
