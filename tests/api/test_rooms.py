"""The threads of requests: who waits for one waits before the door, and is not let in when its sender has gone."""

import asyncio
import threading

from turno.serving import _Room

LONG = 60.0


class Work:
    """Takes a thread until `let`; keeps what was asked for."""

    def __init__(self):
        self.asked, self.let, self.begun = [], threading.Event(), threading.Event()

    def __call__(self, scope, body):
        self.asked.append(scope["path"])
        self.begun.set()
        assert self.let.wait(LONG)
        return f"answer to {scope['path']}"


async def stays():
    """What a request is told whose sender waits."""
    await asyncio.Event().wait()


def goes_when(gone):
    """The same, whose sender goes then."""

    async def receive():
        await gone.wait()
        return {"type": "http.disconnect"}

    return receive


def test_who_goes_while_it_waits_is_dropped_and_takes_nobody_s_place():
    work = Work()

    async def story():
        room, gone = _Room("test", 1, work), asyncio.Event()

        first = asyncio.create_task(room.answered({"path": "first"}, None, stays))
        await asyncio.to_thread(work.begun.wait, LONG)
        second = asyncio.create_task(room.answered({"path": "second"}, None, goes_when(gone)))
        third = asyncio.create_task(room.answered({"path": "third"}, None, stays))
        gone.set()
        assert await asyncio.wait_for(second, LONG) is None
        assert not third.done()
        work.let.set()
        return await asyncio.wait_for(asyncio.gather(first, third), LONG)

    assert asyncio.run(story()) == ["answer to first", "answer to third"]
    assert work.asked == ["first", "third"]


def test_an_error_of_the_work_gives_the_thread_back():
    def fails(scope, body):
        raise LookupError(scope["path"])

    async def story():
        room = _Room("test", 1, fails)
        for _ in range(3):
            try:
                await asyncio.wait_for(room.answered({"path": "x"}, None, stays), LONG)
            except LookupError:
                continue
            raise AssertionError("it did not fail")

    asyncio.run(story())


def test_a_thread_that_works_for_a_request_that_was_cancelled_is_not_free():
    work = Work()

    async def story():
        room = _Room("test", 1, work)
        first = asyncio.create_task(room.answered({"path": "first"}, None, stays))
        await asyncio.to_thread(work.begun.wait, LONG)
        first.cancel()
        await asyncio.wait([first])
        gone = asyncio.Event()

        second = asyncio.create_task(room.answered({"path": "second"}, None, goes_when(gone)))
        gone.set()
        assert await asyncio.wait_for(second, LONG) is None
        work.let.set()
        return await asyncio.wait_for(room.answered({"path": "third"}, None, stays), LONG)

    assert asyncio.run(story()) == "answer to third"
    assert work.asked == ["first", "third"]


def test_who_is_cancelled_while_it_waits_takes_nobody_s_place():
    work = Work()

    async def story():
        room = _Room("test", 1, work)
        first = asyncio.create_task(room.answered({"path": "first"}, None, stays))
        await asyncio.to_thread(work.begun.wait, LONG)
        second = asyncio.create_task(room.answered({"path": "second"}, None, stays))
        await asyncio.sleep(0)
        second.cancel()
        work.let.set()
        third = asyncio.create_task(room.answered({"path": "third"}, None, stays))
        return await asyncio.wait_for(asyncio.gather(first, third), LONG)

    assert asyncio.run(story()) == ["answer to first", "answer to third"]
