"""A broker as a routine's thread uses it: what it is asked runs on the engine's loop, the thread waits for answers."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any

from workers.transports.base import Broker, BrokerAway

SLACK = 5.0  # seconds in which the loop comes round to saying that the broker took too long


class Across:
    """Calls `broker` on `loop`, from any other thread; an answer that takes longer than `timeout` seconds is none."""

    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop, timeout: float) -> None:
        self._broker = broker
        self._loop = loop
        self._timeout = timeout + SLACK

    @property
    def connected(self) -> bool:
        """Whether there is a broker at the moment."""
        return self._broker.connected

    def begin[T](self, ask: Callable[[Broker], Coroutine[Any, Any, T]]) -> "Future[T]":
        """Ask the broker; returns at once. Raises BrokerAway when the loop is closed."""
        coroutine = ask(self._broker)
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError as error:
            coroutine.close()
            raise BrokerAway("the engine has ended") from error

    def answer[T](self, asked: "Future[T]") -> T:
        """Wait for the answer. Raises BrokerAway, also when there is none in time, and whatever the broker raises."""
        try:
            return asked.result(self._timeout)
        except (TimeoutError, CancelledError) as error:
            asked.cancel()
            raise BrokerAway("no answer in time") from error

    def ask[T](self, ask: Callable[[Broker], Coroutine[Any, Any, T]]) -> T:
        """Ask, and wait for the answer. Raises as `answer` does."""
        return self.answer(self.begin(ask))
