"""Those who ask for jobs while everything shakes, and know of each order whether it was accepted."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, Error, connections, transaction

from jobs.enqueue import Enqueued, JobRequest, enqueue, enqueue_many
from jobs.errors import Conflict
from tests.crash.storm.orders import UNIQUE, Errand, Order
from tests.kit.proxy import Proxy, Trap

# What is known of an order: it has its job; it was merged into the job of its unique key; it has none; nobody knows.
ACCEPTED, MERGED, REFUSED, DOUBTFUL = "accepted", "merged", "refused", "doubtful"
AGAIN = 0.3  # seconds before an errand that was not answered is repeated


class RolledBack(Exception):
    """The client has thought better of it."""


class Ledger:
    """By name: what is known of each order. Filled by several threads."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self._lock = threading.Lock()

    def note(self, orders: Sequence[Order], what: str, made: Sequence[Enqueued] = ()) -> None:
        """What is known of these orders; `made` are the answers, in their order."""
        merged = [answer.duplicate for answer in made] or [False] * len(orders)
        with self._lock:
            for order, away in zip(orders, merged, strict=True):
                self.known[order.name] = MERGED if away and what == ACCEPTED else what


class Client(threading.Thread):
    """Does each `step`-th errand from `first` on when its time has come. Its own way to the database can be cut."""

    def __init__(self, errands: Sequence[Errand], ledger: Ledger, name: str, url: str, began: float) -> None:
        super().__init__(name=name, daemon=True)
        self._errands, self._ledger, self._alias, self._began = errands, ledger, name, began
        self._proxy = Proxy(url)
        self.failed: Exception | None = None
        self.over = threading.Event()  # nothing more is begun; what is not answered is repeated still
        settings = connections[DEFAULT_DB_ALIAS].settings_dict
        way = {"HOST": "127.0.0.1", "PORT": str(self._proxy.port)}
        plain = {"sslmode": "disable", "gssencmode": "disable"}
        connections.databases[name] = settings | way | {"OPTIONS": settings["OPTIONS"] | plain}

    def run(self) -> None:
        for errand in self._errands:
            if self.over.wait(max(0.0, self._began + errand.at - time.monotonic())):
                break
            try:
                self._do(errand)
            except Exception as error:  # noqa: BLE001  (told by who joins it: no order after this one was asked)
                self.failed = error
                break
        connections[self._alias].close()
        self._proxy.close()

    def _do(self, errand: Errand) -> None:
        orders = errand.orders
        if errand.door == "alone":
            for order in orders:
                self._tried([order], lambda order=order: [self._alone(order)])
        elif errand.door == "repeated":
            while self._tried(orders, lambda: self._together(orders, key=True)) == DOUBTFUL:
                time.sleep(AGAIN)  # a client that heard nothing asks again under the same key
        elif errand.door == "rolled_back":
            self._tried(orders, lambda: self._given_up(orders))
            self._ledger.note(orders, REFUSED)
        elif errand.door == "together":
            self._tried(orders, lambda: self._together(orders))
        else:
            self._lost(errand)

    def _tried(self, orders: Sequence[Order], ask: Callable[[], list[Enqueued]]) -> str:
        """Ask, and note what is known then of the orders."""
        made: list[Enqueued] = []
        try:
            made = ask()
            known = ACCEPTED
        except Conflict:  # somebody with the same key is not done yet
            known = DOUBTFUL
        except Error:
            known = DOUBTFUL
            with suppress(Error):
                connections[self._alias].close()
        self._ledger.note(orders, known, made)
        return known

    def _alone(self, order: Order) -> Enqueued:
        """No transaction but that of the one statement."""
        return enqueue(order.type, order.payload, origin=order.name, using=self._alias, **order.options)

    def _given_up(self, orders: Sequence[Order]) -> list[Enqueued]:
        with suppress(RolledBack), transaction.atomic(using=self._alias):
            self._place(orders)
            raise RolledBack
        return []

    def _lost(self, errand: Errand) -> None:
        """The cable breaks at the COMMIT: after it, or before it."""
        orders = errand.orders
        with self._trap(errand.door) as trap:
            self._tried(orders, lambda: self._together(orders))
        if trap.caught and trap.side == "request":
            self._ledger.note(orders, REFUSED)
        elif trap.caught and errand.kind != UNIQUE:  # else it may have been merged, and nobody was told
            self._ledger.note(orders, ACCEPTED)

    @contextmanager
    def _trap(self, door: str) -> Iterator[Trap]:
        side = "answer" if door == "answer_lost" else "request"
        trap = self._proxy.lose("COMMIT", after="turno.jobs", side=side, with_rows=True)  # type: ignore[arg-type]
        try:
            yield trap
        finally:
            trap.left = 0

    def _together(self, orders: Sequence[Order], *, key: bool = False) -> list[Enqueued]:
        with transaction.atomic(using=self._alias):
            return self._place(orders, key=key)

    def _place(self, orders: Sequence[Order], *, key: bool = False) -> list[Enqueued]:
        """All of them in the open transaction, parents before their children."""
        ids: dict[str, UUID] = {}
        made: list[Enqueued] = []
        for layer in layers(orders):
            answers = enqueue_many([request(order, ids, key=key) for order in layer], using=self._alias)
            ids |= {order.name: answer.id for order, answer in zip(layer, answers, strict=True)}
            made += answers
        return made


def layers(orders: Sequence[Order]) -> Iterator[list[Order]]:
    """The orders, those without parents among the rest first."""
    rest = list(orders)
    while rest:
        names = {order.name for order in rest}
        layer = [order for order in rest if not names & set(order.parents)]
        yield layer
        rest = [order for order in rest if order not in layer]


def request(order: Order, ids: dict[str, UUID], *, key: bool = False) -> JobRequest:
    """What `enqueue` is told; `ids` are those of orders that were placed before."""
    more = {"idempotency_key": order.name} if key else {}
    after = [ids[parent] for parent in order.parents]
    return JobRequest(order.type, order.payload, origin=order.name, after=after, **more, **order.options)
