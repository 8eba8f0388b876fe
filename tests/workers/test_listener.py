"""What the server says is heard at once, whatever is said, and a lost connection is replaced."""

import asyncio
import os
from contextlib import asynccontextmanager

import psycopg
import pytest

from jobs.announcements import CONTROL, DUE, GATES, OUTBOX, WORK
from jobs.announcements import connection_parameters as reach
from workers import listener
from workers.listener import Listener

NAME = f"listener of {os.getpid()}"
NOTICE = "SELECT pg_notify(%s, %s)"
OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = %s
"""


@pytest.fixture(autouse=True)
def named(monkeypatch):
    """Its sessions are known by their name."""
    monkeypatch.setattr(listener, "connection_parameters", lambda: reach() | {"application_name": NAME})


def connect():
    return psycopg.connect(autocommit=True, **reach())


class Ears:
    """A listener, what it has heard, and a session that says something."""

    def __init__(self):
        self.heard, self.connected = asyncio.Queue(), asyncio.Queue()
        hear = self.heard.put_nowait
        self.listener = Listener(
            on_work=lambda queue: hear(("work", queue)),
            on_due=lambda: hear(("due",)),
            on_outbox=lambda: hear(("outbox",)),
            on_gate=lambda gate: hear(("gate", gate)),
            on_cancel=lambda job, worker: hear(("cancel", job, worker)),
            on_queue=lambda queue: hear(("queue", queue)),
            on_connect=lambda: self.connected.put_nowait(True),
            reconnect_max=0.01,
        )

    async def hears(self, count):
        return [await asyncio.wait_for(self.heard.get(), 60) for _ in range(count)]

    async def connects(self):
        await asyncio.wait_for(self.connected.get(), 60)


@asynccontextmanager
async def listening():
    ears = Ears()
    running = asyncio.create_task(ears.listener.run())
    try:
        await ears.connects()
        with connect() as ears.session:
            yield ears
    finally:
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_each_word_reaches_whom_it_is_for_in_the_order_in_which_it_was_said():
    async with listening() as ears:
        said = [(WORK, "a"), (DUE, ""), (OUTBOX, ""), (GATES, "key:k")]
        said += [(CONTROL, '{"cancel": "j", "worker": "w"}'), (CONTROL, '{"queue": "q"}')]
        with ears.session.transaction():  # all at once
            for word in said:
                ears.session.execute(NOTICE, word)
        assert await ears.hears(6) == [
            ("work", "a"), ("due",), ("outbox",), ("gate", "key:k"), ("cancel", "j", "w"), ("queue", "q"),
        ]  # fmt: skip


async def test_what_nobody_understands_is_passed_over():
    async with listening() as ears:
        for word in ("", "{", "[]", '"x"', "{}", '{"cancel": 1}', "ã\n€"):
            ears.session.execute(NOTICE, (CONTROL, word))
        ears.session.execute(NOTICE, (WORK, "ã€"))
        assert await ears.hears(1) == [("work", "ã€")]


async def test_a_lost_connection_is_replaced_and_its_owner_told():
    async with listening() as ears:
        for _time in range(2):
            assert ears.session.execute(OTHERS, [NAME]).fetchall() == [(True,)]
            await ears.connects()
            ears.session.execute(NOTICE, (WORK, "again"))
            assert await ears.hears(1) == [("work", "again")]


async def test_a_listener_that_is_stopped_leaves_no_session_behind():
    async with listening() as ears:
        ears.session.execute(NOTICE, (WORK, "a"))
        await ears.hears(1)
    with connect() as session:
        async with asyncio.timeout(60):
            while session.execute(OTHERS.replace("pg_terminate_backend(pid)", "pid"), [NAME]).fetchall():
                await asyncio.sleep(0.01)
