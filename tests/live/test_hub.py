"""The hub: what it hears and folds, when it starts and stops, and what it says of its own deafness."""

import asyncio
import json

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections

from dashboard.live import hub as hub_module
from dashboard.live import sockets
from jobs import events
from jobs.announcements import CONTROL, DUE, SCREENS, WORK
from jobs.conf import overridden
from jobs.enqueue import enqueue
from jobs.ids import new_id
from jobs.nudge import TOPICS, Nudge
from tests.kit.proxy import Proxy
from tests.kit.redis_server import over_redis
from tests.live.conftest import a_client, nudge, tell

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "direct"]),
    pytest.mark.usefixtures("open_house"),
]
LISTENERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'turno-screens'
"""


def listening():
    """What is said last on a connection of screens, where that is LISTEN."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT query FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'turno-screens' AND query ILIKE 'LISTEN%'"
        )
        return cursor.fetchall()


@sync_to_async
def cut_listeners():
    with connection.cursor() as cursor:
        cursor.execute(LISTENERS)
        return cursor.rowcount


def says(topic):
    return lambda message: topic in message.get("topics", ())


async def test_a_nudge_reaches_the_page_with_its_ids(quiet_hub):
    job = str(new_id())
    async with a_client() as client:
        await client.ready()

        await nudge("jobs", jobs=[job])

        message = await client.until(lambda message: message.get("jobs"))
        assert (message["topics"], message["jobs"], message["workers"]) == (["jobs"], [job], [])


async def test_where_nobody_can_listen_everything_may_have_changed_each_second(quiet_hub):
    with overridden(database={"pooler": True}):
        async with a_client() as client:
            await client.ready()
            for _ in range(3):
                message = await client.until(lambda message: "topics" in message)
                assert sorted(message["topics"]) == sorted(TOPICS)
            assert await sync_to_async(listening)() == []


async def test_enqueuing_needs_no_word_of_its_own(clean_tables, quiet_hub):
    async with a_client() as client:
        await client.ready()
        await sync_to_async(enqueue)("report.generate", {"rows": 1})

        message = await client.until(lambda message: message.get("jobs") == [])
        assert message["topics"] == ["jobs", "queues"]


@pytest.mark.parametrize(
    ("channel", "payload", "topics"),
    [
        (WORK, "default", ["jobs", "queues"]),
        (DUE, "", ["jobs"]),
        (CONTROL, json.dumps({"cancel": "j1", "worker": "w1"}), ["jobs", "workers"]),
        (SCREENS, '{"topics": ["letters"]}', ["letters"]),
    ],
)
async def test_what_each_channel_means_for_screens(quiet_hub, channel, payload, topics):
    async with a_client() as client:
        await client.ready()
        await tell(channel, payload)

        message = await client.until(lambda message: message.get("topics") == topics)
        if channel == CONTROL:
            assert (message["jobs"], message["workers"]) == (["j1"], ["w1"])


@pytest.mark.parametrize("channel", [SCREENS, CONTROL])
@pytest.mark.parametrize(
    "payload", ["", "null", "[]", "{}", "{", "x" * 7000, "[" * 7000, '{"cancel": 1}', '{"topics": 3}']
)
async def test_garbage_that_somebody_notifies_does_no_harm(quiet_hub, caplog, channel, payload):
    async with a_client() as client:
        await client.ready()
        await tell(channel, payload)
        await nudge("letters")

        assert (await client.until(says("letters")))["topics"] == ["letters"]
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_a_thousand_nudges_are_a_few_messages(quiet_hub):
    async with a_client() as client:
        await client.ready()
        for _ in range(1000):
            quiet_hub.heard(Nudge(("jobs",), [str(new_id())]))
        await nudge("letters")
        messages = [await client.read()]
        while "letters" not in messages[-1]["topics"]:
            messages.append(await client.read())

        assert len(messages) <= 3
        assert messages[0]["jobs"] is None  # too many to name


async def test_two_sockets_hear_the_same_on_one_connection(quiet_hub):
    async with a_client() as one, a_client() as other:
        await one.ready()
        await other.ready(first=False)
        await nudge("letters", jobs=["j"])

        for client in (one, other):
            await client.until(lambda message: message.get("jobs") == ["j"])
        assert await cut_listeners() == 1


async def test_a_lost_connection_is_said_and_then_everything_may_have_changed(quiet_hub, monkeypatch):
    monkeypatch.setattr(sockets, "GAP", 0.001)  # one that is back before the next message is due needs no word
    async with a_client() as client:
        await client.ready()
        assert await cut_listeners() == 1

        await client.until(lambda message: message.get("live") is False)
        message = await client.until(lambda message: message.get("live") is True)
        while "topics" not in message:
            message = await client.read()
        assert (message["jobs"], message["workers"]) == (None, None)
        await nudge("letters", jobs=["j"])
        await client.until(lambda message: message.get("jobs") == ["j"])


async def test_a_database_that_answers_nothing_any_more_is_noticed_and_so_is_its_return(quiet_hub, monkeypatch):
    monkeypatch.setattr(hub_module.sources, "QUIET", 0.1)
    monkeypatch.setattr(hub_module.sources, "ANSWER", 0.2)
    monkeypatch.setattr(sockets, "GAP", 0.001)
    told = connections["direct"].get_connection_params()
    real = hub_module.sources.connection_parameters
    with Proxy(f"http://{told['host']}:{told['port']}") as line:
        monkeypatch.setattr(
            hub_module.sources, "connection_parameters", lambda: real() | {"host": "127.0.0.1", "port": line.port}
        )
        async with a_client() as client:
            await client.ready()
            line.blackhole()

            await client.until(lambda message: message.get("live") is False)
            line.open()
            await client.until(lambda message: message.get("jobs", ()) is None)
            await nudge("letters", jobs=["j"])
            await client.until(lambda message: message.get("jobs") == ["j"])


async def test_it_starts_with_the_first_socket_and_stops_after_the_last(quiet_hub, monkeypatch):
    monkeypatch.setattr(hub_module, "LINGER", 0.01)
    assert not quiet_hub.running
    async with a_client() as client:
        await client.ready()
        assert quiet_hub.running
        assert len(quiet_hub) == 1
    while quiet_hub.running:
        await asyncio.sleep(0.01)
    assert (len(quiet_hub), quiet_hub.hears) == (0, False)

    async with a_client() as client:
        await client.ready()


async def test_a_fault_of_the_hubs_own_does_not_leave_it_deaf(quiet_hub, monkeypatch, caplog):
    monkeypatch.setattr(hub_module, "LINGER", 0.01)
    real, calls = hub_module.sources.listen, []

    async def broken(*told):
        calls.append(told)
        if len(calls) == 1:
            raise RuntimeError("a fault")
        await real(*told)

    monkeypatch.setattr(hub_module.sources, "listen", broken)
    async with a_client() as client:
        await client.ready()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == ["screens.hub_failed"]


async def say_again(job):
    while True:
        events.changed(jobs=[job])
        await asyncio.sleep(0.4)


@pytest.mark.crash
async def test_with_redis_a_nudge_comes_over_it_and_without_it_over_the_database(
    quiet_hub, redis_server, settings, monkeypatch
):
    monkeypatch.setattr(hub_module.sources, "ECHO_EVERY", 1.0)
    settings.CHANNEL_LAYERS = over_redis(redis_server.url)
    events.silence(False)
    try:
        async with a_client() as client:
            await client.ready()
            events.changed(jobs=["by-redis"])
            await client.until(lambda message: message.get("jobs") == ["by-redis"])
            redis_server.stop()
            # Now and then all is said to have changed, since others might still reach Redis: ids are folded into that.
            saying = asyncio.create_task(say_again("by-notify"))
            await client.until(lambda message: "by-notify" in (message.get("jobs") or []))
            saying.cancel()
            redis_server.start()
            await client.until(lambda message: message.get("jobs", []) is None)  # what was lost meanwhile: unknown
    finally:
        await asyncio.to_thread(events.close, 20)
        events.silence()
