"""Independent Redis servers, asked all at once: with its `scripts` all that knows Redis.

Each server ("node") has one connection, on which batches go in the order in which they were asked for: a release
never overtakes what it releases. A batch is one script call, one round trip. A node that does not answer in time is
not asked again until a look at it, beside all calls and a few times a second, finds that it does all that is asked of
it: no call waits for it twice. Every key is written together with its TTL.
"""

import asyncio
import logging
import random
import secrets
from collections.abc import Callable, Container, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from django.utils.translation import gettext as _
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError

from jobs.serveraddress import parse_address
from jobs.text import first_line
from workers.clock import boottime
from workers.locks.redlock import Item
from workers.locks.scripts import EXTEND, RELEASE, TAKE, Failed, Script

log = logging.getLogger(__name__)
FAULTS = (RedisError, OSError)  # (the built-in TimeoutError is an OSError)
CONNECT = 1.0  # seconds for a connection with its handshake
PROBE = 10.0  # seconds of the TTL of what is written to see whether it can be; it is deleted at once
PAUSE = 0.5  # seconds at most between two looks at a node that does not answer
STEADY = 5.0  # seconds after which a node that fails again is looked at at once
OWED = 10_000  # releases that a node which does not answer is told later; the keys of others end with their TTL


class Node:
    """One server. `error` says why it does not answer, None while it does."""

    def __init__(self, url: str, timeout: float, probe_key: str, changed: Callable[[], None]) -> None:
        self.name = parse_address(url).name
        self.error: str | None = _("not connected yet")
        self.looked = asyncio.Event()
        self._timeout = timeout
        mine = secrets.token_hex(4)
        self._probes: list[Item] = [(f"{probe_key}:{mine}:{n}", mine) for n in range(2)]
        self._changed = changed
        self._fell = asyncio.Event()
        self._owed: dict[Item, None] = {}
        self._client: Any = Redis.from_url(
            url,
            single_connection_client=True,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=None,  # the deadlines here are for a whole call
            socket_connect_timeout=CONNECT,
            protocol=2,
            driver_info=None,
        )

    async def take(self, items: Sequence[Item], ttl: float) -> list[str | None] | None:
        """What each key holds after the try to take it (my value: mine); None: no answer."""
        for item in items:
            self._owed.pop(item, None)
        failed = await self._ask(TAKE, items, ttl)
        if failed is None:
            return None
        found: list[str | None] = [value for _key, value in items]
        for number, other in failed.items():
            found[number - 1] = None if other is None else other.decode(errors="replace")
        return found

    async def extend(self, items: Sequence[Item], ttl: float) -> list[bool] | None:
        """Whether each key held its value, and was given another TTL; None: no answer."""
        return _done(items, await self._ask(EXTEND, items, ttl))

    async def release(self, items: Sequence[Item]) -> list[bool] | None:
        """Whether each key held its value, and was deleted; None: no answer, and it is told when it is back."""
        failed = await self._ask(RELEASE, items, 0)
        if failed is None:
            self._owed.update(dict.fromkeys(items))
            for item in list(self._owed)[: max(0, len(self._owed) - OWED)]:
                del self._owed[item]
        return _done(items, failed)

    async def _ask(self, script: Script, items: Sequence[Item], ttl: float) -> Failed | None:
        """As `_run`; None: no answer, or none that Redis gives."""
        if self.error is not None:
            return None
        try:
            return await in_time(self._run(script, items, ttl), self._timeout)
        except FAULTS as error:
            self._down(error)
            return None

    async def _run(self, script: Script, items: Sequence[Item], ttl: float) -> Failed:
        """The keys that did not do as they were told. Raises RedisError when the answer is no such script's."""
        keys, values = [key for key, _value in items], [value for _key, value in items]
        rest = (len(keys), *keys, max(1, int(ttl * 1000)), *values)
        try:
            answer = await self._say("EVALSHA", script.sha, *rest)
        except NoScriptError:  # the server is new, or was started again
            answer = await self._say("EVAL", script.text, *rest)
        failed = script.failed(len(items), answer)
        if failed is None:
            raise _strange()
        return failed

    async def _say(self, *words: Any) -> Any:
        """Have the client say it. Raises what it raises, and ConnectionError for what asyncio makes of a write to a
        connection that was lost a moment ago (an AttributeError, on which the client would keep that connection)."""
        try:
            return await self._client.execute_command(*words)
        except AttributeError as error:
            await self._client.connection_pool.disconnect()
            raise ConnectionError(_("the connection was lost")) from error

    def _down(self, error: BaseException) -> None:
        was, self.error = self.error, first_line(error) or type(error).__name__
        self._fell.set()
        if was is None:
            self._changed()

    async def watch(self) -> None:
        """Look at the server until it answers, and again after each fault, until cancelled."""
        pause = 0.0
        while True:
            self._fell.clear()
            since = boottime()
            try:
                await self._look()
            except Exception as error:
                if not isinstance(error, FAULTS) and first_line(error) != self.error:
                    log.exception("redis.not_looked_at", extra={"server": self.name})
                self._down(error)
            else:
                self.error = None
                self._changed()
            self.looked.set()
            await self._fell.wait()
            # One that takes our looks and nothing else is no better than one that is not there.
            pause = 0.0 if boottime() - since > STEADY else min(PAUSE, pause * 2 or 0.05)
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  (spreads workers, guards nothing)

    async def _look(self) -> None:
        """It must answer in time and do all that it will be asked for, on several keys at once (no replica, no part of
        a cluster, not out of memory, nothing forbidden to our user); then it is told what it missed."""
        await in_time(self._say("PING"), CONNECT)
        for script in (TAKE, EXTEND, RELEASE):
            if await in_time(self._run(script, self._probes, PROBE), self._timeout):
                raise _strange()
        while self._owed:
            some = list(self._owed)[:500]
            await in_time(self._run(RELEASE, some, 0), CONNECT)
            for item in some:
                self._owed.pop(item, None)

    async def close(self) -> None:
        """Disconnect."""
        with suppress(*FAULTS):
            await self._client.aclose()


class Nodes:
    """The servers of one configuration, with at most one answer of each: None where there was none.

    Made anywhere, used on one loop between `open` and `close`. `changed` is called on it when a node went or came.
    """

    def __init__(self, urls: Sequence[str], *, prefix: str, timeout: float) -> None:
        self.prefix = prefix
        self.changed: list[Callable[[], None]] = []
        self._nodes = [Node(url, timeout, f"{prefix}probe", self._tell) for url in urls]
        self._watches: list[asyncio.Task[None]] = []

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def up(self) -> int:
        """How many answer."""
        return sum(1 for node in self._nodes if node.error is None)

    def faults(self) -> dict[str, str]:
        """The servers that do not answer, by host and port, and why."""
        return {node.name: node.error for node in self._nodes if node.error is not None}

    def begin(self) -> None:
        """Connect, in the background."""
        if not self._watches:
            self._watches = [asyncio.create_task(node.watch(), name=f"redis {node.name}") for node in self._nodes]

    async def settled(self, seconds: float = CONNECT) -> None:
        """Returns when each node was tried once, after `seconds` in any case."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for node in self._nodes:
                    await node.looked.wait()

    async def take(self, items: Sequence[Item], ttl: float) -> list[list[str | None] | None]:
        """As `Node.take`, of every node at once."""
        return await asyncio.gather(*(node.take(items, ttl) for node in self._nodes))

    async def extend(self, items: Sequence[Item], ttl: float) -> list[list[bool] | None]:
        """As `Node.extend`, of every node at once."""
        return await asyncio.gather(*(node.extend(items, ttl) for node in self._nodes))

    async def release(self, items: Sequence[Item]) -> list[list[bool] | None]:
        """As `Node.release`, of every node at once: also of those that did not answer when it was taken."""
        return await asyncio.gather(*(node.release(items) for node in self._nodes))

    def _tell(self) -> None:
        for listener in self.changed:
            listener()

    async def close(self) -> None:
        """Disconnect. Never raises."""
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        self._watches.clear()
        await asyncio.gather(*(node.close() for node in self._nodes), return_exceptions=True)


def _strange() -> RedisError:
    return RedisError(_("it does not do what Redis does"))


def _done(items: Sequence[Item], failed: Container[int] | None) -> list[bool] | None:
    """Of each key, whether it did as it was told."""
    return None if failed is None else [number not in failed for number in range(1, len(items) + 1)]


async def in_time[T](work: Coroutine[Any, Any, T], seconds: float) -> T:
    """What `work` answers within `seconds`, else TimeoutError. Time in which this loop did not run does not count."""
    task = asyncio.ensure_future(work)
    try:
        begun = boottime()
        await asyncio.wait([task], timeout=seconds)
        if not task.done() and boottime() - begun > 2 * seconds:  # the answer may be here, unread
            await asyncio.wait([task], timeout=seconds)
        if not task.done():
            raise TimeoutError(_("no answer within %(time)d ms") % {"time": seconds * 1000})
        return task.result()
    finally:
        task.cancel()
