"""The forkserver's own loop: forks children, reaps them, and ends what a dead child left before it tells of its death.

One thread; it opens no connection and runs no handler. It ends when its worker does, and everything below it first.

The worker sends "spawn". It is told, in JSON: {"ready": types}; {"spawned": number, "pid": pid} with DESCRIPTORS (the
worker's ends of `work` and `control`, both ends of `lane`, and a pidfd); {"failed": why}; {"ended": number, "exit":
code, "signal": number, "peak": bytes}. Children are numbered, for the system may give the pid of one that was reaped to
another before its death is told.
"""

import json
import logging
import os
import select
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

from jobs.registry import catalogue
from workers import tree
from workers.isolation import child
from workers.protocol import CHILD_VARIABLE
from workers.streams import block_streams, blocking_streams, flush_streams

log = logging.getLogger(__name__)
SPAWN = b"spawn"
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP)
LOOK = 200  # milliseconds between two looks at what a dead child left (each that dies is heard of at once)
DESCRIPTORS = 5  # that come with a child
ENDING = 10.0  # seconds for everything below to die at the end


@dataclass(slots=True)
class _Death:
    """A child, by its number, that was reaped. It is not reported while any of `left` lives."""

    child: int
    status: int
    peak: int
    left: set[int] = field(default_factory=set)


def ignore_signals() -> None:
    """Whoever asks the worker to stop does not ask the forkserver: it ends when the worker has ended."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)


def serve(channel: socket.socket) -> NoReturn:
    """Be the forkserver from here on."""
    code = 1
    os.environ[CHILD_VARIABLE] = "1"  # whatever children start is known by it
    try:
        with suppress(ConnectionError):  # the worker is gone: that is the end, whatever was still to be said
            _Nursery(channel).run()
        code = 0
    except BaseException:
        log.exception("forkserver.failed")
    finally:
        with suppress(Exception):
            tree.kill_below(os.getpid(), ENDING)
            tree.reap()
        os._exit(code)


class _Nursery:
    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._children: dict[int, int] = {}  # those that were not reaped: number by pid
        self._forked = 0
        self._blocking = blocking_streams()
        self._deaths: list[_Death] = []
        self._strangers: set[int] = set()
        tree.become_subreaper()
        self._wake, self._waker = socket.socketpair()
        self._wake.setblocking(False)
        self._waker.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)

    def run(self) -> None:
        """Until the worker is gone."""
        self._tell({"ready": catalogue.names()})
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while True:
            ready = {number for number, _ in poll.poll(LOOK if self._deaths else None)}
            if self._wake.fileno() in ready:
                with suppress(BlockingIOError):
                    self._wake.recv(4096)
            if self._channel.fileno() in ready:
                if not self._channel.recv(64):
                    return
                self._spawn()
            self._reap()
            if self._deaths:
                self._report()

    def _tell(self, message: dict[str, Any], *descriptors: int) -> None:
        socket.send_fds(self._channel, [json.dumps(message).encode()], descriptors)

    def _spawn(self) -> None:
        ours: list[socket.socket] = []
        pid = 0
        try:
            work, child_work = socket.socketpair()
            ours += [work, child_work]
            control, child_control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours += [control, child_control]
            lane, child_lane = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours += [lane, child_lane]
            child_lane.shutdown(socket.SHUT_WR)  # jobs go one way
            flush_streams()
            pid = os.fork()
            if pid == 0:
                self._be_child((work, control, lane), child_work, child_control, child_lane)
            self._forked += 1
            self._children[pid] = self._forked
            handle = os.pidfd_open(pid)
            try:
                given = [end.fileno() for end in (work, control, lane, child_lane)]
                self._tell({"spawned": self._forked, "pid": pid}, *given, handle)
            finally:
                os.close(handle)
        except OSError as error:  # no process, no descriptor, no memory: at this moment
            if pid:
                os.kill(pid, signal.SIGKILL)
            self._tell({"failed": str(error)})
        finally:
            for end in ours:
                end.close()

    def _be_child(self, others: tuple[socket.socket, ...], *own: socket.socket) -> NoReturn:
        try:
            for other in (*others, self._channel, self._wake, self._waker):
                other.close()
            child.run(*own)
        finally:
            os._exit(child.EXIT_BROKEN)

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._children:
                self._deaths.append(_Death(self._children.pop(pid), status, usage.ru_maxrss * 1024))
                block_streams(self._blocking)  # what it did to them it did to all of us

    def _report(self) -> None:
        """Report those of whom nothing is left: whoever is my child and was not forked here was a dead child's."""
        try:
            strangers = set(tree.children(os.getpid())) - self._children.keys()
            if strangers:
                tree.kill_below(os.getpid(), 0.0, spare=self._children)
        except OSError as error:  # no descriptor at this moment: what can't be seen is not reported
            log.warning("forkserver.blind", extra={"error": str(error)})
            return
        fresh, self._strangers = strangers - self._strangers, strangers
        waiting = []
        for death in self._deaths:
            death.left = (death.left | fresh) & strangers
            if death.left:
                waiting.append(death)
                continue
            code = os.waitstatus_to_exitcode(death.status)
            how = {"exit": code, "signal": None} if code >= 0 else {"exit": None, "signal": -code}
            self._tell({"ended": death.child, "peak": death.peak, **how})
        self._deaths = waiting


def read(channel: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """In the worker: one message and the descriptors that came with it; None when the forkserver is gone.

    Raises BlockingIOError when nothing is there.
    """
    body, descriptors, _, _ = socket.recv_fds(channel, 1024**2, DESCRIPTORS, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
    return (json.loads(body) if body else None), descriptors
