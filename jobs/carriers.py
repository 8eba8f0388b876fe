"""What carries nudges to the web processes: NOTIFY, or with Redis configured its channel layer, and NOTIFY without it.

For the sender's thread only: each call may wait for the network. Whoever listens hears both.
"""

import asyncio
import time
from contextlib import suppress

import psycopg
from django.conf import settings

from jobs.announcements import SCREENS, connection_parameters
from jobs.nudge import Nudge

LAYER = "screens"  # the alias in CHANNEL_LAYERS; there when Redis is configured
GROUP = "turno.screens"
MESSAGE = "screens.changed"
LAYER_TIMEOUT = 1.0
LAYER_PAUSE = 5.0  # seconds without a try after Redis did not answer


class ByNotify:
    """A connection of its own, opened by the first nudge. Raises psycopg.Error or OSError when it can't be sent."""

    def __init__(self) -> None:
        self._connection: psycopg.Connection | None = None

    def send(self, nudge: Nudge) -> None:
        """NOTIFY it."""
        try:
            if self._connection is None:
                self._connection = psycopg.connect(autocommit=True, **connection_parameters())
            self._connection.execute("SELECT pg_notify(%s, %s)", [SCREENS, nudge.text()])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the connection back; the next nudge opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()


class ByLayer:
    """The channel layer over Redis, on an event loop of the sender's own. Raises what the layer raises."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._rests_until = 0.0

    @staticmethod
    def configured() -> bool:
        """Redis is configured."""
        return LAYER in getattr(settings, "CHANNEL_LAYERS", {})

    @property
    def resting(self) -> bool:
        """It failed a moment ago: not worth a try."""
        return time.monotonic() < self._rests_until

    def send(self, nudge: Nudge) -> None:
        """To the group of all web processes."""
        if self._runner is None:
            self._runner = asyncio.Runner()
        try:
            self._runner.run(self._send(nudge))
        except BaseException:
            self._rests_until = time.monotonic() + LAYER_PAUSE
            self.close()
            raise

    async def _send(self, nudge: Nudge) -> None:
        from channels.layers import get_channel_layer

        layer = get_channel_layer(LAYER)
        assert layer is not None  # noqa: S101  (`configured` was asked)
        async with asyncio.timeout(LAYER_TIMEOUT):
            await layer.group_send(GROUP, {"type": MESSAGE, **nudge.said()})

    def close(self) -> None:
        """Close its connections with its loop."""
        runner, self._runner = self._runner, None
        if runner is not None:
            with suppress(Exception):
                runner.close()
