"""Who gets in, what a client may send, and what becomes of one that does not read or may no longer look."""

import asyncio
import json
from http.cookies import SimpleCookie

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings as django_settings
from django.contrib.sessions.models import Session
from django.test import Client as Browser
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard.live import sockets
from jobs.nudge import Nudge
from tests.live.conftest import HOST, KEY, ORIGIN, a_client, nudge

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "direct"])
PATHS = ["/hubs/painel", "/hubs/jobs"]


@sync_to_async
def signed_in():
    """The cookie of a browser that has typed the key."""
    browser = Browser(HTTP_HOST=HOST)
    assert browser.post("/entrar", {"chave": KEY}).status_code == 302
    name = django_settings.SESSION_COOKIE_NAME
    return f"{name}={SimpleCookie(browser.cookies.output(header='', sep=';'))[name].value}"


@pytest.mark.parametrize("path", PATHS)
async def test_nobody_enters_without_key_or_session(quiet_hub, locked_house, path):
    async with a_client(path) as client:
        assert not await client.enters()
    async with a_client(path, cookie="turno_session=made-up") as client:
        assert not await client.enters()
    assert len(quiet_hub) == 0


@pytest.mark.parametrize("path", PATHS)
async def test_a_session_enters(quiet_hub, locked_house, path):
    async with a_client(path, cookie=await signed_in()) as client:
        await client.ready()


@pytest.mark.parametrize("header", [{"x_turno_key": KEY}, {"authorization": f"Bearer {KEY}"}])
async def test_a_program_enters_with_the_key_and_only_to_the_jobs(quiet_hub, locked_house, header):
    async with a_client("/hubs/jobs", origin=None, **header) as client:
        await client.ready()
    async with a_client("/hubs/painel", origin=None, **header) as client:
        assert not await client.enters()


async def test_a_wrong_key_does_not_enter(quiet_hub, locked_house):
    async with a_client("/hubs/jobs", origin=None, x_turno_key="wrong-key") as client:
        assert not await client.enters()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        f"https://{HOST}",
        "http://localhost:8081",
        "http://localhost",
        "http://[",
        "",
        "x",
    ],
)
async def test_a_page_of_another_origin_is_refused_whatever_its_cookie(quiet_hub, locked_house, path, origin):
    async with a_client(path, origin=origin, cookie=await signed_in()) as client:
        assert not await client.enters()


@pytest.mark.parametrize("path", PATHS)
async def test_in_an_open_house_too(quiet_hub, open_house, path):
    async with a_client(path) as client:
        await client.ready(first=True)
    for refused in ({"origin": "https://evil.example"}, {"host": "evil.example", "origin": "http://evil.example"}):
        async with a_client(path, **refused) as client:
            assert not await client.enters()
    async with a_client(path, x_forwarded_for="10.0.0.1") as client:  # by way of a proxy it is not this machine
        assert not await client.enters()


async def test_a_page_without_an_origin_is_none(quiet_hub, open_house):
    async with a_client("/hubs/painel", origin=None) as client:
        assert not await client.enters()


async def test_a_session_that_ends_ends_its_socket(quiet_hub, locked_house, monkeypatch):
    monkeypatch.setattr(sockets, "CHECK", 0.05)
    monkeypatch.setattr(sockets.random, "uniform", lambda low, _high: low)
    async with a_client(cookie=await signed_in()) as client:
        await client.ready()
        await Session.objects.all().adelete()

        assert await client.closed() == sockets.ENDED
        assert len(quiet_hub) == 0


async def test_what_programs_hear(quiet_hub, open_house):
    async with a_client("/hubs/jobs") as client:
        await client.ready()
        await nudge("jobs", "workers", jobs=["j1", "j2"], workers=["w1"])

        said = await client.until(lambda message: message.get("jobs"))
        assert said == {"type": "JobsChanged", "jobs": ["j1", "j2"]}
        assert await client.read() == {"type": "WorkersChanged", "workers": ["w1"]}
        await nudge("jobs", jobs=[str(n) for n in range(50)])
        assert await client.read() == {"type": "JobsChanged", "jobs": None}


async def test_a_page_that_confirms_nothing_is_told_little_and_then_sent_away(quiet_hub, open_house, monkeypatch):
    monkeypatch.setattr(sockets, "PATIENCE", 0.5)
    monkeypatch.setattr(sockets, "GAP", 0.001)
    async with a_client() as client:
        assert await client.enters()
        said = 0
        while True:
            quiet_hub.heard(Nudge(("jobs",)))
            quiet_hub._tell()
            output = await client.receive_output(timeout=60)
            if output["type"] == "websocket.close":
                break
            said += 1
        assert said <= sockets.WINDOW
        assert output["code"] == sockets.SLOW
        assert len(quiet_hub) == 0


async def test_a_page_that_confirms_hears_on(quiet_hub, open_house, monkeypatch):
    monkeypatch.setattr(sockets, "GAP", 0.001)
    async with a_client() as client:
        await client.ready()
        for number in range(3 * sockets.WINDOW):
            await nudge("jobs", jobs=[str(number)])
            await client.until(lambda message, number=number: str(number) in (message.get("jobs") or ()))


async def test_a_quiet_socket_says_that_it_lives(quiet_hub, open_house, monkeypatch):
    async with a_client() as client:
        await client.ready()
        while await client.receive_nothing(timeout=1.5) is False:
            await client.read()
        monkeypatch.setattr(sockets, "TICK", 0.05)
        await nudge("letters")
        await client.until(lambda message: "topics" in message)

        assert set(await client.read()) == {"n"}


@pytest.mark.parametrize("path", PATHS)
async def test_a_client_to_which_nothing_can_be_said_costs_no_time(quiet_hub, open_house, monkeypatch, path):
    monkeypatch.setattr(sockets, "TICK", 0.05)
    monkeypatch.setattr(sockets, "GAP", 0.001)
    monkeypatch.setattr(sockets, "WINDOW", 2)  # a page that confirms nothing; a program has nothing to hear
    turns = []
    for kind in (sockets.Socket, sockets.PanelSocket):
        own = kind.may_send
        monkeypatch.setattr(kind, "may_send", lambda self, own=own: (turns.append(1), own(self))[1])
    async with a_client(path) as client:
        assert await client.enters()
        assert await client.receive_nothing(timeout=0.01) in {True, False}
        await asyncio.sleep(1.0)
        before = len(turns)
        await asyncio.sleep(1.0)
        assert len(turns) - before <= 2


async def test_the_number_of_sockets_has_an_end(quiet_hub, open_house, monkeypatch):
    monkeypatch.setattr(sockets, "MOST_SOCKETS", 1)
    async with a_client() as first, a_client() as second:
        await first.ready()
        assert not await second.enters()


@pytest.mark.parametrize(("frame", "code"), [({"text_data": "x" * 5000}, 1009), ({"bytes_data": b"\x00" * 5000}, 1009)])
async def test_a_large_frame_ends_the_socket(quiet_hub, open_house, frame, code):
    async with a_client() as client:
        await client.ready()
        await client.send_to(**frame)
        assert await client.closed() == code


async def test_a_flood_ends_the_socket(quiet_hub, open_house):
    async with a_client() as client:
        await client.ready()
        for _ in range(3 * sockets.MOST_FRAMES):
            await client.send_to("x")
        assert await client.closed() == sockets.TOO_MANY


@pytest.mark.parametrize("path", PATHS)
async def test_whatever_a_client_sends_nothing_is_raised_or_logged(quiet_hub, open_house, caplog, path):
    frames = st.one_of(
        st.text(min_size=1, max_size=200),
        st.binary(min_size=1, max_size=200),
        st.sampled_from(["[" * 4000, '{"seen": 1e99}', '{"seen": -1}', '{"seen": "1"}', '{"seen": ' + "9" * 15 + "}"]),
        st.recursive(st.none() | st.integers() | st.text(max_size=9), st.lists, max_leaves=9).map(json.dumps),
    )
    sent = []

    @given(st.lists(frames, max_size=4))
    @settings(max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def collect(some):
        sent.extend(some)

    collect()
    async with a_client(path) as client:
        await client.ready()
        for frame in sent[: sockets.MOST_FRAMES // 2]:
            await client.send_to(**({"bytes_data": frame} if isinstance(frame, bytes) else {"text_data": frame}))
        await nudge("jobs", "workers", jobs=["still-there"])
        await client.until(lambda message: message.get("jobs") == ["still-there"])
    await asyncio.sleep(0)
    assert not [record for record in caplog.records if record.levelno >= 30]


def test_the_origin_of_these_tests_is_that_of_their_host():
    assert ORIGIN.endswith(HOST)
