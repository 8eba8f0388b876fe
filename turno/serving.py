"""How the house meets an ASGI server: a request in one thread, and no error of Django's own reaches anybody."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core import signals
from django.core.exceptions import BadRequest, RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.db import close_old_connections
from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix
from servestatic.middleware import ServeStaticMiddleware

log = logging.getLogger(__name__)
# Requests that are answered at the same time beside as many as the pool has connections, which a database that hangs
# may hold all; few enough to share one interpreter.
BESIDE = 22
# What must be answered even when all of those are taken has threads of its own: whether this process lives, and files.
APART = ("/health/", "/static/")
AT_ONCE_APART = 8
_closing: set["asyncio.Future[None]"] = set()  # or nobody would hold them


class _Room:
    """Threads for requests. Who waits for one waits before the door, and is not let in when its sender has gone."""

    def __init__(self, name: str, threads: int, work: Callable[..., HttpResponseBase]) -> None:
        self._free = asyncio.Semaphore(threads)
        executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._work = sync_to_async(work, thread_sensitive=False, executor=executor)

    async def answered(self, scope: dict[str, Any], body: Any, receive: Any) -> HttpResponseBase | None:
        """The answer; None when nobody is there any more to have it."""
        if not self._free.locked():
            await self._free.acquire()
        elif not await self._let_in(receive):
            return None
        working = asyncio.ensure_future(self._work(scope, body))
        working.add_done_callback(lambda _: self._free.release())  # a thread goes on when its request is cancelled
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            working.add_done_callback(_thrown_away)
            raise

    async def _let_in(self, receive: Any) -> bool:
        entering, gone = asyncio.ensure_future(self._free.acquire()), asyncio.ensure_future(receive())
        entered = False
        try:
            await asyncio.wait((entering, gone), return_when=asyncio.FIRST_COMPLETED)
            entered = entering.done() and not gone.done()
            return entered
        finally:
            gone.cancel()
            if not entered and not entering.cancel():  # let in at the moment in which this request was cancelled
                self._free.release()


def _thrown_away(working: "asyncio.Future[HttpResponseBase]") -> None:
    """Nobody is there to have this answer; what streams holds something open."""
    if not working.cancelled() and working.exception() is None and working.result().streaming:
        task = asyncio.ensure_future(sync_to_async(working.result().close)())
        _closing.add(task)
        task.add_done_callback(_closing.discard)


class Handler(ASGIHandler):
    """From the signal of its start to its end a request is in one thread, which it enters once.

    Django would make two threads for each request, and enter one of them for each middleware, for the view, for the
    signals and for the end: that took more than half of the time of a short request. All that is here is written for
    threads. Only what streams is sent, and closed, as Django does: piece by piece, in a thread of its own.
    """

    def __init__(self) -> None:
        super().__init__()
        pool = settings.DATABASES["default"]["OPTIONS"].get("pool", {})
        self._room = _Room("request", pool.get("max_size", 0) + BESIDE, self._answer)
        self._apart = _Room("apart", AT_ONCE_APART, self._answer)

    def load_middleware(self, is_async: bool = False) -> None:
        """The chain is called in a thread, so nothing in it is adapted to an event loop."""
        super().load_middleware(is_async=False)

    async def handle(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Read the request, have it answered, send the answer. One that is begun is answered to the end."""
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with closing(body):
            room = self._apart if scope["path"].startswith(APART) else self._room
            response = await room.answered(scope, body, receive)
            if response is None:
                return
            if not response.streaming:
                await self.send_response(response, send)
                return
            try:
                await self._stream(response, receive, send)
            finally:
                await sync_to_async(response.close)()

    def _answer(self, scope: dict[str, Any], body: Any) -> HttpResponseBase:
        """What Django does for a request, in its order. Closing gives the database's connection back before anything
        is sent; what is to be sent is in memory by then."""
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=self.__class__, scope=scope)
        request, refused = self.create_request(scope, body)
        response: HttpResponseBase = refused if request is None else self.get_response(request)
        response._handler_class = self.__class__  # who sends the signal of its end
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        if response.streaming:
            close_old_connections()  # the rest of it is another thread's, with a connection of its own
        else:
            try:
                response.close()
            except Exception:  # somebody's receiver of the signal: what was answered is answered
                log.exception("response.not_closed")
        return response

    async def _stream(self, response: HttpResponseBase, receive: Any, send: Any) -> None:
        """Send it until it ends, or until nobody is there any more."""
        sending = asyncio.create_task(self.send_response(response, send))
        gone = asyncio.create_task(receive())
        try:
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            gone.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)
        if not sending.cancelled():
            sending.result()

    def create_request(self, scope: dict[str, Any], body_file: Any) -> Any:
        """A Content-Type that can't be read counts as none, so that the request is judged, and refused, like any other.

        Django lets the error of that one header out of the application.
        """
        try:
            return super().create_request(scope, body_file)
        except BadRequest:
            headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-type"]
            return super().create_request({**scope, "headers": headers}, body_file)


async def _never(_request: HttpRequest) -> HttpResponseBase:
    """What servestatic would go on to: it is asked for its files alone."""
    raise AssertionError("unreachable")


class StaticFiles:
    """Middleware: servestatic's files, read in the request's own thread. They are few, and small enough to be read
    whole."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response
        self._files = ServeStaticMiddleware(_never).files

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """The file of this address, or what is behind."""
        found = self._files.get(request.path_info)
        return self._get_response(request) if found is None else self._answer(found, request)

    @staticmethod
    def _answer(found: Any, request: HttpRequest) -> HttpResponse:
        """With servestatic's headers and no other: it knows of ranges, of what has not changed, and of encodings."""
        said = found.get_response(request.method or "GET", request.META)
        content = b""
        if said.file is not None:
            with said.file:
                content = said.file.read()
        answer = HttpResponse(content, status=int(said.status))
        del answer["Content-Type"]
        for name, value in said.headers:
            if value is not None:
                answer[name] = value
        return answer


async def refuse_websocket(_scope: Any, receive: Any, send: Any) -> None:
    """Where no socket is: the handshake is answered with 403."""
    await receive()
    await send({"type": "websocket.close"})
