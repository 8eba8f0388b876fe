"""Sockets on the hub of the test's own event loop, with real notifications."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.db import connection, connections

from dashboard.live.hub import hub
from dashboard.routing import websocket_urlpatterns
from jobs.announcements import SCREENS
from jobs.conf import overridden
from jobs.nudge import Nudge

HOST = "localhost:8080"
ORIGIN = f"http://{HOST}"
KEY = "uma-chave-de-teste"
PATIENCE = 20.0


@pytest.fixture
def open_house():
    with overridden(api={"key": None}):
        yield


@pytest.fixture
def locked_house():
    with overridden(api={"key": KEY}):
        yield


class Client(WebsocketCommunicator):
    """A handshake as a browser makes it (`origin`), or a program (`origin=None`)."""

    def __init__(self, path, *, origin=ORIGIN, host=HOST, **headers):
        given = {"host": host} | ({} if origin is None else {"origin": origin}) | headers
        raw = [(name.replace("_", "-").encode("latin-1"), value.encode("latin-1")) for name, value in given.items()]
        super().__init__(URLRouter(websocket_urlpatterns), path, headers=raw)
        self.scope |= {"client": ["127.0.0.1", 50000], "server": ["127.0.0.1", 8080]}

    async def enters(self):
        """Whether the handshake is accepted."""
        accepted, _code = await self.connect(timeout=PATIENCE)
        return accepted

    async def read(self):
        """The next message; what it asks to be confirmed is."""
        message = json.loads(await self.receive_from(timeout=PATIENCE))
        if "n" in message:
            await self.send_to(json.dumps({"seen": message["n"]}))
        return message

    async def until(self, enough):
        """Messages until `enough(message)`; that one."""
        async with asyncio.timeout(PATIENCE):
            while True:
                message = await self.read()
                if enough(message):
                    return message

    async def closed(self):
        """The code with which the server closes it, whatever it says before."""
        while True:
            output = await self.receive_output(timeout=PATIENCE)
            if output["type"] == "websocket.close":
                return output.get("code")

    async def ready(self, *, first=True):
        """It is in, and the hub hears; the `first` socket of a hub is told that everything may have changed."""
        assert await self.enters()
        if first:
            await self.until(lambda message: message.get("workers", "") is None)
        return self


@asynccontextmanager
async def a_client(path="/hubs/painel", **more):
    """A client that is gone with the block."""
    client = Client(path, **more)
    try:
        yield client
    finally:
        if not client.future.done():
            await client.disconnect(timeout=PATIENCE)


@pytest.fixture
async def quiet_hub():
    """The loop's hub, ended with the test."""
    own = hub()
    yield own
    tasks = list(own._tasks)
    own._stop()
    await asyncio.gather(*tasks, return_exceptions=True)
    await sync_to_async(connections.close_all)()  # of the thread in which async code asks the database


@sync_to_async
def tell(channel, payload):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [channel, payload])


async def nudge(*topics, jobs=(), workers=()):
    """What a process says that changed something."""
    await tell(SCREENS, Nudge(topics, jobs, workers).text())
