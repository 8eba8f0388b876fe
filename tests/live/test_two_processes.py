"""Two web processes over one Redis: their boards show the same, and go on when Redis goes, and when it comes back."""

import asyncio
import json
import time
from contextlib import asynccontextmanager

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from jobs.announcements import SCREENS
from jobs.enqueue import enqueue
from tests.kit.processes import database_url
from tests.kit.redis_server import running_redis
from tests.kit.site import Site
from tests.kit.viewers import Socket
from tests.transitions.ear import raw_connection

pytestmark = [
    pytest.mark.crash,
    pytest.mark.django_db(transaction=True, databases=["default", "direct"]),
    pytest.mark.usefixtures("clean_tables"),
]
PATIENCE = 40.0  # the hub looks every 5 s whether Redis brings what is sent


class Page:
    """A page's socket on one of the processes; `known`: ids of jobs that it was told of, `all`: how often "any"."""

    def __init__(self, site):
        self.site, self.known, self.all = site, set(), 0
        self._news = asyncio.Event()

    async def listen(self):
        socket = await Socket.open(self.site, "/hubs/painel")
        try:
            async for text in socket.messages():
                message = json.loads(text)
                socket.say(json.dumps({"seen": message["n"]}))
                if "topics" in message:
                    self.all += message["jobs"] is None
                    self.known |= set(message["jobs"] or ())
                    self._news.set()
        finally:
            socket.close()

    async def until(self, enough):
        async with asyncio.timeout(PATIENCE):
            while not enough(self):
                self._news.clear()
                await self._news.wait()


class House:
    """Two web processes with the same settings, and a page on each."""

    def __init__(self, folder, urls):
        env = {"TURNO_DATABASE__URL": database_url(), "TURNO_REDIS__URLS": ",".join(urls)}
        for name in ("one", "other"):
            (folder / name).mkdir()
        self.sites = [Site(folder / name, env) for name in ("one", "other")]
        self.pages = [Page(site) for site in self.sites]

    async def cancel(self, by=0):
        """Enqueue a job and cancel it at one process; its id. The cancel is what this process tells all pages."""
        job = await sync_to_async(enqueue)("report.generate", {"rows": 1})
        async with httpx.AsyncClient(base_url=self.sites[by].address, trust_env=False, timeout=60) as client:
            assert (await client.post(f"/api/jobs/{job.id}/cancel")).status_code == 200
        return str(job.id)

    async def tell(self, by=0):
        """Cancel a job at one process: both pages hear of it, or that all may have changed; both processes show it.

        Its id, and whether both heard of it by that.
        """
        before = [page.all for page in self.pages]
        job = await self.cancel(by)
        for page, seen in zip(self.pages, before, strict=True):
            await page.until(lambda page, seen=seen: job in page.known or page.all > seen)
            async with httpx.AsyncClient(base_url=page.site.address, trust_env=False, timeout=60) as client:
                assert (await client.get(f"/api/jobs/{job}")).json()["state"] == "Cancelled"
        return job, all(job in page.known for page in self.pages)

    async def again(self):
        """Both are told anew that anything may have changed."""
        before = [page.all for page in self.pages]
        for page, seen in zip(self.pages, before, strict=True):
            await page.until(lambda page, seen=seen: page.all > seen)


@asynccontextmanager
async def two_processes(folder, urls):
    house = House(folder, urls)
    try:
        for site in house.sites:
            await asyncio.to_thread(site.wait_ready)
        listening = [asyncio.create_task(page.listen()) for page in house.pages]
        for page in house.pages:
            await page.until(lambda page: page.all)
        try:
            yield house
            for task in listening:
                assert not task.done(), task.exception()
        finally:
            for task in listening:
                task.cancel()
            await asyncio.gather(*listening, return_exceptions=True)
        for site in house.sites:
            assert "Traceback" not in site.log(), site.log()[-4000:]
            assert " ERROR " not in site.log(), site.log()[-4000:]
    finally:
        for site in house.sites:
            site.close()
        await sync_to_async(connections.close_all)()  # of the thread in which async code asks the database


@pytest.fixture
def by_database():
    """The nudges that went over the database since the last call."""
    with raw_connection() as connection:
        connection.execute(f"LISTEN {SCREENS}")

        def heard():
            return [json.loads(notice.payload) for notice in connection.notifies(timeout=0.2)]

        yield heard


def names(nudges, job):
    return any(job in (nudge["jobs"] or ()) for nudge in nudges)


async def over_redis_again(house, by_database):
    """Returns when what a process tells goes over Redis, and both pages hear it."""
    until = time.monotonic() + PATIENCE
    while True:
        job, heard = await house.tell()
        if heard and not names(by_database(), job):
            return
        assert time.monotonic() < until, "nudges do not go over Redis"


async def test_two_processes_show_the_same_and_outlive_redis(tmp_path, redis_server, by_database):
    async with two_processes(tmp_path, [redis_server.url]) as house:
        await over_redis_again(house, by_database)

        redis_server.kill()
        for by in (0, 1):
            job, _ = await house.tell(by)
            assert names(by_database(), job)

        redis_server.start()
        await house.again()
        await over_redis_again(house, by_database)


async def test_a_redis_that_hangs_holds_nobody_up(tmp_path, redis_server, by_database):
    async with two_processes(tmp_path, [redis_server.url]) as house:
        await over_redis_again(house, by_database)
        redis_server.freeze()
        await house.cancel()  # answered while it hangs
        await house.tell()
        redis_server.thaw()
        await over_redis_again(house, by_database)


async def test_of_several_servers_the_first_carries_the_news_and_the_others_may_be_away(tmp_path, by_database):
    with running_redis(tmp_path, 3) as servers:
        async with two_processes(tmp_path, [server.url for server in servers]) as house:
            servers[1].kill()
            servers[2].kill()
            await over_redis_again(house, by_database)

            servers[1].start()
            servers[0].kill()
            job, _ = await house.tell()
            assert names(by_database(), job)
