"""The forkserver as its worker sees it: forked before the worker has threads; later started as a program of its own."""

import gc
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from django.db import connections

from jobs.registry import catalogue
from workers import tree
from workers.isolation import nursery
from workers.isolation.looks import look
from workers.protocol import CHILD_VARIABLE
from workers.streams import flush_streams

log = logging.getLogger(__name__)
START = """
import json, sys
told = json.loads(sys.argv[1])
sys.path[:] = told["path"]
import django
django.setup()
from workers.isolation.forkserver import main
main(**told)
"""
TURN = 0.01  # seconds between two looks whether it has ended


def supported() -> bool:
    """Whether this system has what child processes need (Linux 5.3 or later)."""
    return sys.platform == "linux" and hasattr(os, "pidfd_open") and hasattr(socket, "SOCK_SEQPACKET")


class ForkServer:
    """A running forkserver: its process and the channel to it. `keep` are descriptors that it holds on to."""

    def __init__(self, channel: socket.socket, pid: int, keep: Sequence[int]) -> None:
        channel.setblocking(False)
        self.channel = channel
        self.pid = pid
        self.keep = tuple(keep)
        self._reaped = False

    @classmethod
    def fork(cls, *, forget: Callable[[], None] = lambda: None, keep: Sequence[int] = ()) -> "ForkServer":
        """Fork it out of this process, with all that is loaded here: once, in the main thread, before any other thread
        and any connection to the database exists.

        `forget` is called in the forkserver to close what belongs to this process alone. `keep` names descriptors that
        the forkserver and all children hold, as long as one of them lives (the worker's lock file).
        """
        _look_alone()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        flush_streams()  # or both processes would write what waits
        gc.collect()
        gc.freeze()  # what is here now stays in pages that all processes share
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, nursery.IGNORED)  # until it ignores them
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which `_look_alone` has told
            pid = os.fork()
        if pid == 0:
            try:
                ours.close()
                nursery.ignore_signals()
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                forget()
                _no_input()
                nursery.serve(theirs)
            finally:
                os._exit(1)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
        return cls(ours, pid, keep)

    @classmethod
    def start(cls, keep: Sequence[int] = ()) -> "ForkServer":
        """Start another one as a program of its own, which loads everything anew; for when the first has died."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            broken = [problem.module for problem in catalogue.problems()]
            told = {"path": sys.path, "channel": theirs.fileno(), "keep": list(keep), "leave_out": broken}
            process = subprocess.Popen(
                [sys.executable, "-c", START, json.dumps(told)],
                stdin=subprocess.DEVNULL,
                env={**os.environ, CHILD_VARIABLE: "1"},  # what children only fork is known by it
                pass_fds=(theirs.fileno(), *keep),
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        process.returncode = 0  # it is waited for here, by its id
        return cls(ours, process.pid, keep)

    def spawn(self) -> None:
        """Ask for a child. Raises OSError when the forkserver is gone."""
        self.channel.send(nursery.SPAWN)

    def read(self) -> tuple[dict[str, Any] | None, list[int]]:
        """What it says, with descriptors; None when it is gone. Raises BlockingIOError when it says nothing."""
        try:
            return nursery.read(self.channel)
        except ConnectionError:
            return None, []

    @property
    def stopped(self) -> bool:
        """Whether its process is stopped (SIGSTOP, a debugger), or gone: then it will not answer."""
        return look(self.pid).state in {"T", "t", ""}

    def end(self, seconds: float) -> bool:
        """Close the channel: it ends all below it and itself, killed when that takes longer. Whether it ended."""
        self.channel.close()
        limit = time.monotonic() + seconds
        while not self._ended():
            if time.monotonic() > limit:
                return self.kill()
            time.sleep(TURN)
        return True

    def kill(self) -> bool:
        """Kill it and all that is below it, now, and reap it; whether nothing lives."""
        with suppress(OSError):
            self.channel.close()
        if self._ended():
            return True
        gone = tree.kill_tree(self.pid)
        limit = time.monotonic() + 1.0
        while not self._ended() and time.monotonic() < limit:
            time.sleep(TURN)
        return gone and self._reaped

    def _ended(self) -> bool:
        if not self._reaped:
            try:
                self._reaped = os.waitpid(self.pid, os.WNOHANG)[0] == self.pid
            except ChildProcessError:
                self._reaped = True
        return self._reaped


def main(*, path: Sequence[str], channel: int, keep: Sequence[int], leave_out: Sequence[str]) -> None:
    """The program: descriptors of the channel and of what to keep, and the modules that its worker found broken.

    `path` is Python's, as the worker has it: set already, and Django is set up.
    """
    from workers import logs

    logs.configure()
    for descriptor in (channel, *keep):
        os.set_inheritable(descriptor, False)
    nursery.ignore_signals()
    catalogue.leave_out(leave_out)
    catalogue.load(guarded=True)
    _look_alone()
    gc.collect()
    gc.freeze()
    nursery.serve(socket.socket(fileno=channel))


def _look_alone() -> None:
    """A fork copies locks that other threads hold, and connections: say that there are any, and close the latter."""
    others = [thread.name for thread in threading.enumerate() if thread is not threading.current_thread()]
    if others:
        log.warning("forkserver.threads", extra={"threads": others})
    open_ones = [c.alias for c in connections.all(initialized_only=True) if c.connection is not None]
    if open_ones:
        log.warning("forkserver.connections", extra={"closed": open_ones})
        connections.close_all()


def _no_input() -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
